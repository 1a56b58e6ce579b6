// The keys, values and queues of a store, without locks, time or waiting: what a hash store, the server of a TCP store and a file share.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <cresset/distributed/store.h>

namespace cresset::distributed {

class KeyValues {
 public:
  using Bytes = Store::Bytes;
  void set(const std::string& key, Bytes value) { values_[key] = std::move(value); }
  const Bytes* find(const std::string& key) const {
    const auto it = values_.find(key);
    return it == values_.end() ? nullptr : &it->second;
  }
  /// A key counts as there, too, when a value waits in its queue.
  bool has(const std::string& key) const { return values_.contains(key) || queues_.contains(key); }
  bool has_all(const std::vector<std::string>& keys) const {
    for (const auto& k : keys)
      if (!has(k)) return false;
    return true;
  }
  int64_t add(const std::string& key, int64_t value);
  Bytes compare_set(const std::string& key, const Bytes& expected, const Bytes& desired);
  bool erase(const std::string& key) { return values_.erase(key) > 0; }
  void append(const std::string& key, const Bytes& value) {
    Bytes& there = values_[key];
    there.insert(there.end(), value.begin(), value.end());
  }
  void push(const std::string& key, Bytes value) { queues_[key].push_back(std::move(value)); }
  std::optional<Bytes> pop(const std::string& key);
  int64_t queue_length(const std::string& key) const {
    const auto it = queues_.find(key);
    return it == queues_.end() ? 0 : static_cast<int64_t>(it->second.size());
  }
  int64_t size() const { return static_cast<int64_t>(values_.size()); }
  std::vector<std::string> keys() const;

 private:
  std::unordered_map<std::string, Bytes> values_;
  std::unordered_map<std::string, std::deque<Bytes>> queues_;  // none is empty
};

/// The number that a counter has as text; 0 for none. RuntimeError for text that is no number.
int64_t counter_value(const std::string& key, const Store::Bytes* value);
/// "wait timeout after 100ms, keys: /a, /b", as a DistStoreError.
[[noreturn]] void throw_wait_timeout(Store::Timeout timeout, const std::vector<std::string>& keys, const char* prefix = "/");

}  // namespace cresset::distributed
