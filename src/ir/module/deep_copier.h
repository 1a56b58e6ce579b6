// Copies of values to the depth.
#pragma once

#include <functional>
#include <unordered_map>

#include <cresset/dispatch/custom_class.h>
#include <cresset/ir/class_type.h>
#include <cresset/ir/module.h>

namespace cresset::jit {

// What was met before gives the copy made then, so sharing inside stays, also between values that are copied one after the other; classes
// may be replaced on the way.
class DeepCopier {
 public:
  using ClassOf = std::function<TypePtr(const TypePtr&)>;
  using CopyOfTensor = std::function<Tensor(const Tensor&)>;
  explicit DeepCopier(ClassOf class_of = nullptr, CopyOfTensor copy_of_tensor = plain_copy)
      : class_of_(std::move(class_of)), copy_of_tensor_(std::move(copy_of_tensor)) {}

  IValue copy(const IValue& v) {
    if (v.isTensor()) return copy_tensor(v.toTensor());
    if (v.isCustomClass()) return copy_custom(v);
    if (!v.isScriptObject() && !v.isList() && !v.isTuple() && !v.isGenericDict()) return v.deepcopy();
    const void* key = identity(v);
    if (const auto found = done_.find(key); found != done_.end()) return found->second;
    CRESSET_CHECK(depth_ < kMaxDepth, "deepcopy: values nested at most ", kMaxDepth, " deep were required.");
    ++depth_;
    IValue out = copy_container(v, key);
    --depth_;
    return out;
  }
  static Tensor plain_copy(const Tensor& t) { return IValue(t).deepcopy().toTensor(); }

 private:
  static constexpr int kMaxDepth = 2000;

  static const void* identity(const IValue& v) {
    if (v.isScriptObject()) return &v.toObjectRef();
    if (v.isList()) return &v.toListImpl();
    if (v.isTuple()) return &v.toTupleRef();
    return &v.toDictImpl();
  }
  IValue copy_tensor(const Tensor& t) {
    if (!t.defined()) return t;
    IValue& out = done_[t.unsafeGetTensorImpl()];
    if (out.isNone()) {
      Tensor copied = copy_of_tensor_(t);
      if (copied.requires_grad() != t.requires_grad()) copied.set_requires_grad(t.requires_grad());
      out = std::move(copied);
    }
    return out;
  }
  // An object of C++ by its state; without one it is shared.
  IValue copy_custom(const IValue& v) {
    const CustomClassInfo* info = find_custom_class(v.type()->name);
    if (!info || !info->has_state()) return v;
    const void* key = v.toCustomClass<CustomClassHolder>().get();
    if (const auto found = done_.find(key); found != done_.end()) return found->second;
    Stack stack{copy(info->get_state(v))};
    info->methods.at("__setstate__").run(stack);
    return done_[key] = std::move(stack.at(0));
  }
  // The copy is known before its parts are made: objects may contain themselves.
  IValue copy_container(const IValue& v, const void* key) {
    if (v.isScriptObject()) {
      const ivalue::Object& from = v.toObjectRef();
      auto to = new_object(class_of_ ? class_of_(from.type) : TypePtr(from.type), from.slots.size());
      done_[key] = IValue(to);
      for (std::size_t i = 0; i < from.slots.size(); ++i) to->set_slot(i, copy(from.slots[i]));
      return to;
    }
    if (v.isList()) {
      auto to = make_intrusive<ivalue::ListImpl>(std::vector<IValue>(), v.toListImpl().element_type);
      done_[key] = IValue(to);
      for (const IValue& e : v.toListRef()) to->elements.push_back(copy(e));
      return to;
    }
    if (v.isTuple()) {
      auto to = make_intrusive<ivalue::TupleImpl>(std::vector<IValue>(), v.toTupleRef().type);
      for (const IValue& e : v.toTupleElements()) to->elements.push_back(copy(e));
      return done_[key] = IValue(to);
    }
    const ivalue::DictImpl& from = v.toDictImpl();
    auto to = make_intrusive<ivalue::DictImpl>();
    done_[key] = IValue(to);
    to->key_type = from.key_type;
    to->value_type = from.value_type;
    for (const auto& [k, e] : from.items) to->items.insert_or_assign(copy(k), copy(e));
    return to;
  }

  ClassOf class_of_;
  CopyOfTensor copy_of_tensor_;
  std::unordered_map<const void*, IValue> done_;
  int depth_ = 0;
};

}  // namespace cresset::jit
