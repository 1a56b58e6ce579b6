// What stores have in common, the store in memory, and keys under a prefix.
#include <cresset/distributed/store.h>

#include <charconv>
#include <condition_variable>

#include "distributed/key_values.h"
#include "distributed/wait_slices.h"

namespace cresset {
DistError::~DistError() = default;
DistBackendError::~DistBackendError() = default;
DistStoreError::~DistStoreError() = default;
QueueEmptyError::~QueueEmptyError() = default;
DistNetworkError::~DistNetworkError() = default;
}  // namespace cresset

namespace cresset::distributed {

Store::~Store() = default;
HashStore::~HashStore() = default;
std::string Store::get_to_str(const std::string& key) {
  const Bytes value = get(key);
  return std::string(value.begin(), value.end());
}
Store::Bytes Store::compareSet(const std::string&, const Bytes&, const Bytes&) { CRESSET_THROW(Error, "Not implemented."); }
void Store::append(const std::string& key, const Bytes& value) {
  // Others may append meanwhile: what is there is found by a comparison that fails, and asks again.
  Bytes expected, desired = value;
  for (Bytes now = compareSet(key, expected, desired); now != desired; now = compareSet(key, expected, desired)) {
    expected = desired = std::move(now);
    desired.insert(desired.end(), value.begin(), value.end());
  }
}
std::vector<Store::Bytes> Store::multiGet(const std::vector<std::string>& keys) {
  std::vector<Bytes> out;
  for (const auto& k : keys) out.push_back(get(k));
  return out;
}
void Store::multiSet(const std::vector<std::string>& keys, const std::vector<Bytes>& values) {
  check_pairs(keys.size(), values.size());
  for (std::size_t i = 0; i < keys.size(); ++i) set(keys[i], values[i]);
}
void Store::check_pairs(std::size_t keys, std::size_t values) {
  CRESSET_CHECK(keys == values, "multi_set: as many values as keys were required; ", keys, " keys and ", values, " values were given.");
}
void Store::queuePush(const std::string&, const Bytes&) { CRESSET_THROW(Error, "queue support is not implemented for this store."); }
Store::Bytes Store::queuePop(const std::string&, bool) { CRESSET_THROW(Error, "queue support is not implemented for this store."); }
int64_t Store::queueLen(const std::string&) { CRESSET_THROW(Error, "queue support is not implemented for this store."); }
std::vector<std::string> Store::listKeys() { CRESSET_THROW(Error, "listKeys is not implemented for this store."); }

// --- keys and values

int64_t counter_value(const std::string& key, const Store::Bytes* value) {
  if (!value) return 0;
  int64_t n = 0;
  const char* begin = reinterpret_cast<const char*>(value->data());
  const char* end = begin + value->size();
  const auto [rest, error] = std::from_chars(begin, end, n);
  CRESSET_CHECK(error == std::errc() && rest == end, "Store.add: a counter was required at '", key, "'; its value is no integer.");
  return n;
}

void throw_wait_timeout(Store::Timeout timeout, const std::vector<std::string>& keys, const char* prefix) {
  std::string names;
  for (const auto& k : keys) names += (names.empty() ? "" : ", ") + std::string(prefix) + k;
  CRESSET_THROW(DistStoreError, "wait timeout after ", static_cast<int64_t>(timeout.count()), "ms, keys: ", names);
}

int64_t KeyValues::add(const std::string& key, int64_t value) {
  int64_t sum = counter_value(key, find(key));
  CRESSET_CHECK(!__builtin_add_overflow(sum, value, &sum), "Store.add: the counter '", key, "' leaves 64 bits.");
  const std::string text = std::to_string(sum);
  values_[key] = Bytes(text.begin(), text.end());
  return sum;
}

KeyValues::Bytes KeyValues::compare_set(const std::string& key, const Bytes& expected, const Bytes& desired) {
  const auto it = values_.find(key);
  if (it == values_.end()) {
    if (!expected.empty()) return expected;
    return values_[key] = desired;
  }
  if (it->second == expected) it->second = desired;
  return it->second;
}

std::optional<KeyValues::Bytes> KeyValues::pop(const std::string& key) {
  const auto it = queues_.find(key);
  if (it == queues_.end()) return std::nullopt;
  Bytes value = std::move(it->second.front());
  it->second.pop_front();
  if (it->second.empty()) queues_.erase(it);
  return value;
}

std::vector<std::string> KeyValues::keys() const {
  std::vector<std::string> out;
  for (const auto& [key, value] : values_) out.push_back(key);
  return out;
}

// --- in memory

namespace {

class MemoryStore final : public HashStore {
  template <class F>
  auto change(F f) {
    struct Notify {
      std::condition_variable& c;
      ~Notify() { c.notify_all(); }
    } notify{changed_};
    const std::lock_guard lock(mutex_);
    return f();
  }

 public:
  using Store::set;
  void set(const std::string& key, const Bytes& value) override {
    change([&] { table_.set(key, value); });
  }
  Bytes get(const std::string& key) override {
    std::unique_lock lock(mutex_);
    wait_for(lock, {key}, timeout_);
    const Bytes* value = table_.find(key);
    return value ? *value : Bytes();
  }
  int64_t add(const std::string& key, int64_t value) override {
    return change([&] { return table_.add(key, value); });
  }
  Bytes compareSet(const std::string& key, const Bytes& expected, const Bytes& desired) override {
    return change([&] { return table_.compare_set(key, expected, desired); });
  }
  bool deleteKey(const std::string& key) override {
    return change([&] { return table_.erase(key); });
  }
  bool check(const std::vector<std::string>& keys) override {
    const std::lock_guard lock(mutex_);
    return table_.has_all(keys);
  }
  int64_t getNumKeys() override {
    const std::lock_guard lock(mutex_);
    return table_.size();
  }
  void wait(const std::vector<std::string>& keys) override { wait(keys, timeout_); }
  void wait(const std::vector<std::string>& keys, const Timeout& timeout) override {
    std::unique_lock lock(mutex_);
    wait_for(lock, keys, timeout);
  }
  bool hasExtendedApi() const override { return true; }
  void append(const std::string& key, const Bytes& value) override {
    change([&] { table_.append(key, value); });
  }
  std::vector<Bytes> multiGet(const std::vector<std::string>& keys) override {
    std::unique_lock lock(mutex_);
    wait_for(lock, keys, timeout_);
    std::vector<Bytes> out;
    for (const auto& k : keys) {
      const Bytes* value = table_.find(k);
      out.push_back(value ? *value : Bytes());
    }
    return out;
  }
  void multiSet(const std::vector<std::string>& keys, const std::vector<Bytes>& values) override {
    check_pairs(keys.size(), values.size());
    change([&] {
      for (std::size_t i = 0; i < keys.size(); ++i) table_.set(keys[i], values[i]);
    });
  }
  void queuePush(const std::string& key, const Bytes& value) override {
    change([&] { table_.push(key, value); });
  }
  Bytes queuePop(const std::string& key, bool block) override {
    std::unique_lock lock(mutex_);
    if (block) wait_for(lock, {key}, timeout_);
    if (auto value = table_.pop(key)) return *value;
    CRESSET_THROW(QueueEmptyError, "queue is empty");
  }
  int64_t queueLen(const std::string& key) override {
    const std::lock_guard lock(mutex_);
    return table_.queue_length(key);
  }
  std::vector<std::string> listKeys() override {
    const std::lock_guard lock(mutex_);
    return table_.keys();
  }
  intrusive_ptr<Store> clone() override {
    intrusive_ops::incref(this);
    return intrusive_ptr<Store>::reclaim(this);
  }

 private:
  void wait_for(std::unique_lock<std::mutex>& lock, const std::vector<std::string>& keys, Timeout timeout) {
    if (!wait_in_slices(lock, changed_, timeout, [&] { return table_.has_all(keys); })) throw_wait_timeout(timeout, keys, "");
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  KeyValues table_;
};

}  // namespace

intrusive_ptr<HashStore> make_hash_store() { return make_intrusive<MemoryStore>(); }

// --- under a prefix

PrefixStore::PrefixStore(std::string prefix, intrusive_ptr<Store> store) : prefix_(std::move(prefix)), store_(std::move(store)) {
  CRESSET_CHECK_VALUE(store_, "store argument cannot be None");
}
std::vector<std::string> PrefixStore::joined(const std::vector<std::string>& keys) const {
  std::vector<std::string> out;
  for (const auto& k : keys) out.push_back(joined(k));
  return out;
}
void PrefixStore::set(const std::string& key, const Bytes& value) { store_->set(joined(key), value); }
Store::Bytes PrefixStore::get(const std::string& key) { return store_->get(joined(key)); }
int64_t PrefixStore::add(const std::string& key, int64_t value) { return store_->add(joined(key), value); }
Store::Bytes PrefixStore::compareSet(const std::string& key, const Bytes& expected, const Bytes& desired) {
  return store_->compareSet(joined(key), expected, desired);
}
bool PrefixStore::deleteKey(const std::string& key) { return store_->deleteKey(joined(key)); }
bool PrefixStore::check(const std::vector<std::string>& keys) { return store_->check(joined(keys)); }
int64_t PrefixStore::getNumKeys() { return store_->getNumKeys(); }
void PrefixStore::wait(const std::vector<std::string>& keys) { store_->wait(joined(keys)); }
void PrefixStore::wait(const std::vector<std::string>& keys, const Timeout& timeout) { store_->wait(joined(keys), timeout); }
const Store::Timeout& PrefixStore::getTimeout() const noexcept { return store_->getTimeout(); }
void PrefixStore::setTimeout(const Timeout& timeout) { store_->setTimeout(timeout); }
bool PrefixStore::hasExtendedApi() const { return store_->hasExtendedApi(); }
void PrefixStore::append(const std::string& key, const Bytes& value) { store_->append(joined(key), value); }
std::vector<Store::Bytes> PrefixStore::multiGet(const std::vector<std::string>& keys) { return store_->multiGet(joined(keys)); }
void PrefixStore::multiSet(const std::vector<std::string>& keys, const std::vector<Bytes>& values) {
  store_->multiSet(joined(keys), values);
}
void PrefixStore::queuePush(const std::string& key, const Bytes& value) { store_->queuePush(joined(key), value); }
Store::Bytes PrefixStore::queuePop(const std::string& key, bool block) { return store_->queuePop(joined(key), block); }
int64_t PrefixStore::queueLen(const std::string& key) { return store_->queueLen(joined(key)); }
std::vector<std::string> PrefixStore::listKeys() {
  std::vector<std::string> out;
  const std::string start = prefix_ + "/";
  for (auto& key : store_->listKeys())
    if (key.starts_with(start)) out.push_back(key.substr(start.size()));
  return out;
}
intrusive_ptr<Store> PrefixStore::clone() { return make_intrusive<PrefixStore>(prefix_, store_->clone()); }
intrusive_ptr<Store> PrefixStore::getUnderlyingNonPrefixStore() const {
  intrusive_ptr<Store> store = store_;
  while (const auto* inner = dynamic_cast<const PrefixStore*>(store.get())) store = inner->store_;
  return store;
}

}  // namespace cresset::distributed
