// Values that only scripts have: objects with slots, enumerators and futures.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>

#include <cresset/dispatch/ivalue.h>

namespace cresset::jit {
class ClassType;
class CompilationUnit;
}  // namespace cresset::jit

namespace cresset::ivalue {

/// The type of an object; called, its class.
struct ObjectType : TypePtr {
  ObjectType(TypePtr type) : TypePtr(std::move(type)) {}
  CRESSET_API std::shared_ptr<jit::ClassType> operator()() const;
};

/// An instance of a script's class: one slot an attribute, in the order of the class's attributes.
struct CRESSET_API Object final : intrusive_ptr_target {
  Object(TypePtr type, std::size_t slots, std::shared_ptr<void> unit = nullptr)
      : type(std::move(type)), slots(std::vector<IValue>(slots)), unit_(std::move(unit)) {}
  const IValue& slot(std::size_t i) const { return slots.at(i); }
  /// Attributes may be added to the class after the object was made: the slot appears when it is first written.
  void set_slot(std::size_t i, IValue v) {
    if (i >= slots.size()) slots.resize(i + 1);
    slots[i] = std::move(v);
  }
  // Under PyTorch's names; type() and slots() are the members. Attributes that the class does not have raise.
  const IValue& getSlot(std::size_t i) const { return slot(i); }
  void setSlot(std::size_t i, IValue v) { set_slot(i, std::move(v)); }
  std::string name() const;
  IValue getAttr(const std::string& name) const;
  void setAttr(const std::string& name, IValue v);
  bool hasAttr(const std::string& name) const;
  /// The unit of the class; null when it has none.
  std::shared_ptr<jit::CompilationUnit> compilation_unit() const;
  /// Another object with the same values.
  intrusive_ptr<Object> copy() const;
  /// The same: graphs hold objects as they are.
  intrusive_ptr<Object> copy_to_weak_compilation_ref() const { return copy(); }

  const ObjectType type;
  Field<std::vector<IValue>> slots;

 private:
  std::shared_ptr<void> unit_;  // owns the methods of the class: they live as long as any object does
};

/// One enumerator: its enum type, its name and its value.
struct CRESSET_API EnumHolder final : intrusive_ptr_target {
  EnumHolder(TypePtr type, std::string name, IValue value) : type(std::move(type)), name(std::move(name)), value(std::move(value)) {}
  // Also functions: type(), name(), value().
  const Field<TypePtr> type;
  const Field<std::string> name;
  const Field<IValue> value;
};

/// A value that another thread will deliver.
struct CRESSET_API Future final : intrusive_ptr_target {
  explicit Future(TypePtr element = nullptr) : element(std::move(element)) {}
  void mark_completed(IValue v);
  void set_error(std::exception_ptr e);
  bool completed() const;
  bool has_error() const;
  /// Blocks until the value is there; rethrows the error it came with.
  IValue wait();
  /// The value of a completed future.
  IValue value() const;
  /// Runs when completed: at once when it already is, else on the thread that completes it.
  void then(std::function<void(Future&)> callback);
  // Under PyTorch's names.
  void markCompleted(IValue v) { mark_completed(std::move(v)); }
  void setError(std::exception_ptr e) { set_error(std::move(e)); }
  bool hasError() const { return has_error(); }
  /// The error it was completed with; null when there is none.
  std::exception_ptr exception_ptr() const;
  TypePtr elementType() const { return element; }
  void addCallback(std::function<void(Future&)> callback) { then(std::move(callback)); }
  const TypePtr element;

 private:
  void finish(std::unique_lock<std::mutex> lock);
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool completed_ = false;
  IValue value_;
  std::exception_ptr error_;
  std::vector<std::function<void(Future&)>> callbacks_;
};

}  // namespace cresset::ivalue
