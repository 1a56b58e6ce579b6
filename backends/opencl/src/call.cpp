#include "call.h"

#include <cresset/ops/cpu_fallback.h>

#include <algorithm>

namespace cresset_opencl {
namespace {

using cresset::CppFunction;
using cresset::DispatchKeySet;
using cresset::OperatorHandle;
using cresset::Stack;

const Tensor* tensor_in(const IValue& v) { return v.isTensor() && v.toTensor().defined() ? &v.toTensor() : nullptr; }

// Calls f with every defined tensor of the values, those in lists too.
template <class F>
void for_tensors(const IValue* values, std::size_t n, F f) {
  for (std::size_t i = 0; i < n; ++i) {
    if (const Tensor* t = tensor_in(values[i])) f(*t);
    if (values[i].isList())
      for (const IValue& e : values[i].toListRef())
        if (const Tensor* t = tensor_in(e)) f(*t);
  }
}

Tensor image(const Tensor& t) {
  return cresset::empty_strided(t.sizes(), t.strides(), t.options().device(cresset::Device(cresset::kMeta)));
}

IValue image(const IValue& v) {
  if (const Tensor* t = tensor_in(v)) return image(*t);
  if (!v.isList()) return v;
  const auto& list = v.toListRef();
  if (std::none_of(list.begin(), list.end(), [](const IValue& e) { return tensor_in(e) != nullptr; })) return v;
  std::vector<Tensor> images;
  for (const IValue& e : list) images.push_back(tensor_in(e) ? image(*tensor_in(e)) : Tensor());
  return IValue(images);
}

// The operator's Meta kernel on images of the arguments: the results' sizes, strides and types, or its error.
Stack on_meta(const OperatorHandle& op, const IValue* values, std::size_t n) {
  Stack stack;
  for (std::size_t i = 0; i < n; ++i) stack.push_back(image(values[i]));
  op.redispatchBoxed(DispatchKeySet(cresset::DispatchKey::Meta), &stack);
  return stack;
}

// Contiguous memory of the described tensor's type and sizes.
Tensor plain(const Tensor& described, cresset::Device device) {
  return cresset::empty(described.sizes(), described.options().device(device));
}

bool runs_here(const IValue* values, std::size_t n, cresset::Device& device) {
  bool here = true, any = false;
  for_tensors(values, n, [&](const Tensor& t) {
    if (t.is_cpu()) {
      here = false;
      return;
    }
    if (!any) device = t.device();
    any = true;
    here &= t.device() == device && computes(device_of(t), t.scalar_type());
  });
  return here && any;
}

bool shares(const Tensor& a, const IValue* values, std::size_t n) {
  bool found = false;
  for_tensors(values, n, [&](const Tensor& t) { found |= t.is_alias_of(a); });
  return found;
}

struct Functional final : cresset::OperatorKernel {
  Functional(Kernel k, bool (*t)(const Call&)) : kernel(k), takes(t) {}
  void operator()(const OperatorHandle& op, DispatchKeySet, Stack* stack) {
    const std::size_t n = op.schema().arguments().size(), first = stack->size() - n;
    const IValue* values = stack->data() + first;
    cresset::Device device(cresset::kCPU);
    if (!runs_here(values, n, device) || (takes && !takes(Call(values, {})))) return cresset::cpu_fallback(op, stack);
    std::vector<Tensor> results, targets;
    for (const IValue& described : on_meta(op, values, n)) {
      const Tensor* d = tensor_in(described);
      results.push_back(d ? cresset::empty_strided(d->sizes(), d->strides(), d->options().device(device)) : Tensor());
      targets.push_back(d && !results.back().is_contiguous() ? plain(*d, device) : results.back());
    }
    Call call(values, targets);
    if (!kernel(call)) return cresset::cpu_fallback(op, stack);
    for (std::size_t i = 0; i < results.size(); ++i)
      if (results[i].defined() && !results[i].is_same(targets[i])) cresset::_copy_from(targets[i], results[i], false);
    stack->resize(first);
    for (Tensor& t : results) stack->emplace_back(std::move(t));
  }
  Kernel kernel;
  bool (*takes)(const Call&);
};

struct Out final : cresset::OperatorKernel {
  Out(Kernel k, OperatorHandle f) : kernel(k), functional(f) {}
  void operator()(const OperatorHandle& op, DispatchKeySet, Stack* stack) {
    const std::size_t all = op.schema().arguments().size(), outs = op.schema().returns().size(), n = all - outs;
    const std::size_t first = stack->size() - all;
    const IValue* values = stack->data() + first;
    cresset::Device device(cresset::kCPU);
    if (!runs_here(values, all, device)) return cresset::cpu_fallback(op, stack);
    Stack arguments(values, values + n), described = on_meta(functional, values, n);
    std::vector<Tensor> given, targets;
    for (std::size_t i = 0; i < outs; ++i) given.push_back(values[n + i].toTensor());
    fit(op, values, all, described, given);
    if (take_type_of_out(arguments, described, given)) described = on_meta(functional, arguments.data(), n);
    for (std::size_t i = 0; i < outs; ++i) {
      const Tensor& d = described[i].toTensor();
      const bool direct = given[i].is_contiguous() && given[i].scalar_type() == d.scalar_type() && !shares(given[i], values, n);
      targets.push_back(direct ? given[i] : plain(d, device));
    }
    Call call(arguments.data(), targets);
    if (!kernel(call)) return cresset::cpu_fallback(op, stack);
    for (std::size_t i = 0; i < outs; ++i)
      if (!given[i].is_same(targets[i])) cresset::_copy_from(targets[i], given[i], false);
    stack->resize(first);
    for (Tensor& t : given) stack->emplace_back(std::move(t));
  }
  // An absent argument `dtype` is the type of out, where out may have another type than the result has without.
  bool take_type_of_out(Stack& arguments, const Stack& described, const std::vector<Tensor>& given) const {
    const cresset::ScalarType type = given[0].scalar_type();
    if (described[0].toTensor().scalar_type() == type) return false;
    const std::optional<std::size_t> dtype = functional.schema().argument_index("dtype");
    if (!dtype || !arguments[*dtype].isNone()) return false;
    arguments[*dtype] = type;
    return true;
  }
  // Sizes and types as the results'. Where they differ the Meta kernel of the out form decides, and says what becomes of them.
  static void fit(const OperatorHandle& op, const IValue* values, std::size_t all, const Stack& described, std::vector<Tensor>& given) {
    bool same = true;
    for (std::size_t i = 0; i < given.size(); ++i) {
      const Tensor& d = described[i].toTensor();
      same &= d.sizes() == given[i].sizes() && d.scalar_type() == given[i].scalar_type() && given[i].is_non_overlapping_and_dense();
    }
    if (same) return;
    const Stack resized = on_meta(op, values, all);
    for (std::size_t i = 0; i < given.size(); ++i)
      if (resized[i].toTensor().sizes() != given[i].sizes()) cresset::resize_(given[i], resized[i].toTensor().sizes());
  }
  Kernel kernel;
  OperatorHandle functional;
};

struct InPlace final : cresset::OperatorKernel {
  explicit InPlace(Kernel k) : kernel(k) {}
  void operator()(const OperatorHandle& op, DispatchKeySet, Stack* stack) {
    const std::size_t n = op.schema().arguments().size(), first = stack->size() - n;
    const IValue* values = stack->data() + first;
    cresset::Device device(cresset::kCPU);
    if (!runs_here(values, n, device)) return cresset::cpu_fallback(op, stack);
    on_meta(op, values, n);
    Tensor self = values[0].toTensor();
    const Tensor target = dense(self);
    Call call(values, {target});
    if (self.numel() > 0 && !kernel(call)) return cresset::cpu_fallback(op, stack);
    if (!target.is_same(self)) cresset::_copy_from(target, self, false);
    stack->resize(first);
    stack->emplace_back(std::move(self));
  }
  Kernel kernel;
};

template <class K, class... Args>
void impl(cresset::Library& m, const char* name, Args... args) {
  m.impl(name, CppFunction::makeFromBoxedFunctor(cresset::make_intrusive<K>(args...)).debug("opencl"));
}

}  // namespace

std::vector<Tensor> Call::tensors(int i) const {
  std::vector<Tensor> out;
  for (const IValue& v : values_[i].toListRef()) out.push_back(v.isTensor() ? v.toTensor() : Tensor());
  return out;
}

void give(cresset::Library& m, const char* functional, const char* out, Kernel kernel, bool (*takes)(const Call&)) {
  impl<Functional>(m, functional, kernel, takes);
  if (!out) return;
  const auto op = cresset::Dispatcher::singleton().findSchema(cresset::parse_operator_name(std::string("aten::") + functional));
  CRESSET_CHECK(op, "opencl: there is no operator aten::", functional, ".");
  impl<Out>(m, out, kernel, *op);
}

void give_in_place(cresset::Library& m, const char* name, Kernel kernel) { impl<InPlace>(m, name, kernel); }

int64_t product(IntArrayRef sizes, int64_t from, int64_t to) {
  int64_t n = 1;
  for (int64_t d = from; d < to; ++d) n *= sizes[static_cast<std::size_t>(d)];
  return n;
}

}  // namespace cresset_opencl
