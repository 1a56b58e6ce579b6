// Objects and futures.
#include <cresset/base/interrupt.h>
#include <cresset/dispatch/script_values.h>

#include <chrono>

namespace cresset::ivalue {

intrusive_ptr<Object> Object::copy() const {
  auto other = make_intrusive<Object>(type, slots.size(), unit_);
  other->slots = slots;
  return other;
}

void Future::finish(std::unique_lock<std::mutex> lock) {
  CRESSET_CHECK(!completed_, "Future: it may be completed once; it already is.");
  completed_ = true;
  std::vector<std::function<void(Future&)>> callbacks = std::move(callbacks_);
  callbacks_.clear();
  lock.unlock();
  changed_.notify_all();
  for (auto& callback : callbacks) callback(*this);
}
void Future::mark_completed(IValue v) {
  std::unique_lock lock(mutex_);
  if (!completed_) value_ = std::move(v);
  finish(std::move(lock));
}
void Future::set_error(std::exception_ptr e) {
  std::unique_lock lock(mutex_);
  if (!completed_) error_ = std::move(e);
  finish(std::move(lock));
}
bool Future::completed() const {
  const std::lock_guard lock(mutex_);
  return completed_;
}
bool Future::has_error() const {
  const std::lock_guard lock(mutex_);
  return error_ != nullptr;
}
std::exception_ptr Future::exception_ptr() const {
  const std::lock_guard lock(mutex_);
  return error_;
}
IValue Future::wait() {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, std::chrono::milliseconds(50), [&] { return completed_; })) {
    lock.unlock();
    check_signals();
    lock.lock();
  }
  if (error_) std::rethrow_exception(error_);
  return value_;
}
IValue Future::value() const {
  const std::lock_guard lock(mutex_);
  CRESSET_CHECK(completed_, "Future: value() needs a completed future; this one is not. Call wait().");
  if (error_) std::rethrow_exception(error_);
  return value_;
}
void Future::then(std::function<void(Future&)> callback) {
  {
    const std::lock_guard lock(mutex_);
    if (!completed_) {
      callbacks_.push_back(std::move(callback));
      return;
    }
  }
  callback(*this);
}

}  // namespace cresset::ivalue
