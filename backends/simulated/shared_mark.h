// Marks that several processes see: two counters in shared memory.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace simulated {

/// Recordings are numbered from 1; those up to `reached` have happened. Waiting asks again and again: no process can wake another's host.
class SharedMark final {
 public:
  /// A new one, whose name is gone when its maker is.
  SharedMark();
  /// Another process' one; raises when it is not there any more.
  explicit SharedMark(const std::string& name);
  ~SharedMark();
  SharedMark(const SharedMark&) = delete;
  SharedMark& operator=(const SharedMark&) = delete;

  const std::string& name() const { return name_; }
  /// The number of a new recording.
  uint64_t record();
  void reach(uint64_t recording);
  uint64_t recorded() const;
  bool has_reached(uint64_t recording) const;
  void wait_for(uint64_t recording) const;

 private:
  struct Counters {
    std::atomic<uint64_t> recorded, reached;
  };
  void map(int file);
  std::string name_;
  bool is_maker_;
  Counters* counters_ = nullptr;
};

}  // namespace simulated
