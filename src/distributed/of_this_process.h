// What has threads and connections of its own, and must be left alone in a forked child.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <memory>
#include <utility>

namespace cresset::distributed {

/// Owns a T, except in a forked child of the process that made it: the child has none of its threads, so that joining them would abort or
/// never end, and shares its descriptors, so that taking connections apart there would take them from the parent. The child leaves it as it
/// is.
template <class T>
class OfThisProcess {
 public:
  template <class... A>
  explicit OfThisProcess(std::in_place_t, A&&... a) : value_(std::make_unique<T>(std::forward<A>(a)...)) {}
  ~OfThisProcess() {
    if (!here()) (void)value_.release();
  }
  OfThisProcess(const OfThisProcess&) = delete;
  OfThisProcess& operator=(const OfThisProcess&) = delete;

  T* operator->() const { return value_.get(); }
  /// Is this the process that made it?
  bool here() const { return getpid() == process_; }

 private:
  std::unique_ptr<T> value_;
  const pid_t process_ = getpid();
};

}  // namespace cresset::distributed
