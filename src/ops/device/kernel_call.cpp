// The contract of operators around a device's kernels.
#include <cresset/ops/kernel_call.h>

#include <algorithm>
#include <bit>
#include <mutex>

#include <cresset/base/small_vector.h>
#include <cresset/core/grad_mode.h>
#include <cresset/ops/cpu_fallback.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>

#include "ops/shared/promotion.h"

namespace cresset {
namespace {

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
  Tensor m = cresset::detail::empty_meta(t.sizes(), t.strides(), t.scalar_type());
  m.unsafeGetTensorImpl()->set_wrapped_number(t.unsafeGetTensorImpl()->is_wrapped_number());
  return m;
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
  op.redispatchBoxed(DispatchKeySet(DispatchKey::Meta), &stack);
  return stack;
}

// All that a Meta kernel looks at, as numbers; false for arguments of which more would have to be kept.
using Facts = SmallVector<int64_t, 40>;
bool facts_of(const IValue* values, std::size_t n, Facts& facts) {
  enum Kind : int64_t { None, Undefined, Dense, Flag, Whole, Real, Wholes };
  const auto add = [&](IntArrayRef numbers) { facts.append(numbers.begin(), numbers.end()); };
  facts.push_back(static_cast<int64_t>(get_default_dtype()));
  for (std::size_t i = 0; i < n; ++i) {
    const IValue& v = values[i];
    if (v.isNone()) {
      facts.push_back(None);
    } else if (v.isTensor() && !v.toTensor().defined()) {
      facts.push_back(Undefined);
    } else if (v.isTensor()) {
      const Tensor& t = v.toTensor();
      if (t.layout() != kStrided) return false;
      add({Dense, static_cast<int64_t>(t.scalar_type()), t.unsafeGetTensorImpl()->is_wrapped_number(), t.dim()});
      add(t.sizes());
      add(t.strides());
    } else if (v.isBool()) {
      add({Flag, v.toBool()});
    } else if (v.isInt()) {
      add({Whole, v.toInt()});
    } else if (v.isDouble()) {
      add({Real, std::bit_cast<int64_t>(v.toDouble())});
    } else if (v.isIntList()) {
      const auto& list = v.toListRef();
      add({Wholes, static_cast<int64_t>(list.size())});
      for (const IValue& e : list) facts.push_back(e.toInt());
    } else {
      return false;
    }
  }
  return true;
}

// on_meta, which remembers the last call: in a loop over batches it costs more than many kernels. A Meta kernel that is replaced is asked.
class Descriptions {
 public:
  Stack of(const OperatorHandle& op, const IValue* values, std::size_t n) {
    Facts facts;
    if (!facts_of(values, n, facts)) return on_meta(op, values, n);
    const KernelFunction& meta = op.entry()->lookup(DispatchKeySet(DispatchKey::Meta));
    {
      const std::unique_lock lock(mutex_, std::try_to_lock);
      if (lock && meta == kernel_ && std::equal(facts.begin(), facts.end(), facts_.begin(), facts_.end())) return described_;
    }
    Stack described = on_meta(op, values, n);
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock) return described;
    kernel_ = KernelFunction();
    facts_.assign(facts.begin(), facts.end());
    described_ = described;
    kernel_ = meta;  // last: what failed before it is no description
    return described;
  }

 private:
  std::mutex mutex_;  // tried, never waited for
  KernelFunction kernel_;
  std::vector<int64_t> facts_;
  Stack described_;
};

// Contiguous memory of the described tensor's type and sizes.
Tensor plain(const Tensor& described, Device device) { return cresset::empty(described.sizes(), described.options().device(device)); }

bool is_number(const Tensor& t) { return t.is_cpu() && t.dim() == 0; }

// Are all tensors the device's, of types that it computes in, but for numbers?
bool runs_here(const IValue* values, std::size_t n, const KernelOptions& options, Device& device) {
  bool here = true, any = false;
  for_tensors(values, n, [&](const Tensor& t) {
    if (t.is_cpu()) {
      here &= options.lifts_numbers && is_number(t);
      return;
    }
    if (!any) device = t.device();
    any = true;
    here &= t.device() == device;
  });
  for_tensors(values, n, [&](const Tensor& t) { here &= !options.takes_type || options.takes_type(device, t.scalar_type()); });
  return here && any;
}

Tensor on_device(const Tensor& number, Device device) {
  Tensor there = cresset::empty({}, number.options().device(device));
  there.fill_(number.item());
  return there;
}

// The call's values with numbers of the CPU on the device.
Stack lifted(const IValue* values, std::size_t n, Device device) {
  Stack out(values, values + n);
  for (IValue& v : out) {
    const Tensor* t = tensor_in(v);
    if (!t || !is_number(*t)) continue;
    Tensor there = on_device(*t, device);
    there.unsafeGetTensorImpl()->set_wrapped_number(t->unsafeGetTensorImpl()->is_wrapped_number());
    v = IValue(std::move(there));
  }
  return out;
}

bool shares(const Tensor& a, const IValue* values, std::size_t n) {
  bool found = false;
  for_tensors(values, n, [&](const Tensor& t) { found |= t.is_alias_of(a); });
  return found;
}

struct Functional final : OperatorKernel {
  Functional(DeviceKernel k, KernelOptions o) : kernel(k), options(o) {}
  void operator()(const OperatorHandle& op, DispatchKeySet, Stack* stack) {
    const std::size_t n = op.schema().arguments().size(), first = stack->size() - n;
    Device device(kCPU);
    if (!runs_here(stack->data() + first, n, options, device) || (options.takes && !options.takes(KernelCall(stack->data() + first, {}))))
      return cpu_fallback(op, stack);
    const AutoDispatchBelowADInplaceOrView below;
    const Stack arguments = lifted(stack->data() + first, n, device);
    const IValue* values = arguments.data();
    std::vector<Tensor> results, targets;
    for (const IValue& described : descriptions.of(op, values, n)) {
      const Tensor* d = tensor_in(described);
      results.push_back(d ? empty_strided(d->sizes(), d->strides(), d->options().device(device)) : Tensor());
      targets.push_back(d && !results.back().is_contiguous() ? plain(*d, device) : results.back());
    }
    KernelCall call(values, targets, stack->data() + first);
    if (!kernel(call)) return cpu_fallback(op, stack);
    for (std::size_t i = 0; i < results.size(); ++i)
      if (results[i].defined() && !results[i].is_same(targets[i])) _copy_from(targets[i], results[i], false);
    stack->resize(first);
    for (Tensor& t : results) stack->emplace_back(std::move(t));
  }
  DeviceKernel kernel;
  KernelOptions options;
  Descriptions descriptions;
};

struct Out final : OperatorKernel {
  Out(DeviceKernel k, OperatorHandle f, KernelOptions o) : kernel(k), functional(f), options(o) {}
  void operator()(const OperatorHandle& op, DispatchKeySet, Stack* stack) {
    const std::size_t all = op.schema().arguments().size(), outs = op.schema().returns().size(), n = all - outs;
    const std::size_t first = stack->size() - all;
    const IValue* values = stack->data() + first;
    Device device(kCPU);
    if (!runs_here(values, all, options, device) || (options.takes && !options.takes(KernelCall(values, {}))))
      return cpu_fallback(op, stack);
    const AutoDispatchBelowADInplaceOrView below;
    Stack arguments = lifted(values, n, device), described = descriptions.of(functional, arguments.data(), n);
    std::vector<Tensor> given, targets;
    for (std::size_t i = 0; i < outs; ++i) given.push_back(values[n + i].toTensor());
    fit(op, values, all, described, given);
    if (take_type_of_out(arguments, described, given)) described = on_meta(functional, arguments.data(), n);
    for (std::size_t i = 0; i < outs; ++i) {
      const Tensor& d = described[i].toTensor();
      const bool direct = given[i].is_contiguous() && given[i].scalar_type() == d.scalar_type() && !shares(given[i], values, n);
      targets.push_back(direct ? given[i] : plain(d, device));
    }
    KernelCall call(arguments.data(), targets, values);
    if (!kernel(call)) return cpu_fallback(op, stack);
    for (std::size_t i = 0; i < outs; ++i)
      if (!given[i].is_same(targets[i])) _copy_from(targets[i], given[i], false);
    stack->resize(first);
    for (Tensor& t : given) stack->emplace_back(std::move(t));
  }
  // An absent argument `dtype` is the type of out, where out may have another type than the result has without.
  bool take_type_of_out(Stack& arguments, const Stack& described, const std::vector<Tensor>& given) const {
    const ScalarType type = given[0].scalar_type();
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
      if (resized[i].toTensor().sizes() != given[i].sizes()) given[i].resize_(resized[i].toTensor().sizes());
  }
  DeviceKernel kernel;
  OperatorHandle functional;
  KernelOptions options;
  Descriptions descriptions;
};

struct InPlace final : OperatorKernel {
  InPlace(DeviceKernel k, KernelOptions o) : kernel(k), options(o) {}
  void operator()(const OperatorHandle& op, DispatchKeySet, Stack* stack) {
    const std::size_t n = op.schema().arguments().size(), first = stack->size() - n;
    Device device(kCPU);
    if (!runs_here(stack->data() + first, n, options, device)) return cpu_fallback(op, stack);
    const AutoDispatchBelowADInplaceOrView below;
    const Stack arguments = lifted(stack->data() + first, n, device);
    const IValue* values = arguments.data();
    on_meta(op, values, n);
    Tensor self = values[0].toTensor();
    const Tensor target = self.is_contiguous() ? self : self.contiguous();
    KernelCall call(values, {target}, stack->data() + first);
    if (self.numel() > 0 && !kernel(call)) return cpu_fallback(op, stack);
    if (!target.is_same(self)) _copy_from(target, self, false);
    stack->resize(first);
    stack->emplace_back(std::move(self));
  }
  DeviceKernel kernel;
  KernelOptions options;
};

template <class K, class... Args>
void impl_boxed(Library& m, const char* name, Args... args) {
  m.impl(name, CppFunction::makeFromBoxedFunctor(make_intrusive<K>(args...)).debug("register_kernel"));
}

}  // namespace

std::vector<Tensor> KernelCall::tensors(int i) const {
  std::vector<Tensor> out;
  for (const IValue& v : values_[i].toListRef()) out.push_back(v.isTensor() ? v.toTensor() : Tensor());
  return out;
}

Tensor KernelCall::strided_operand(int i, ScalarType type) const {
  Tensor t = tensor(i);
  if (t.scalar_type() != type) {
    const Tensor& given = given_[i].toTensor();
    // A number is converted where its value is known.
    t = is_number(given) ? on_device(given.to(type), result().device()) : t.to(type);
  }
  return t.sizes() == result().sizes() ? t : t.expand(result().sizes());
}

Tensor KernelCall::operand(int i, ScalarType type) const { return strided_operand(i, type).contiguous(); }

ScalarType KernelCall::common_type(std::initializer_list<int> arguments) const {
  std::vector<Tensor> tensors;
  for (const int i : arguments) tensors.push_back(tensor(i));
  return ops::result_type_of(tensors);
}

void register_kernel(Library& m, const char* functional, const char* out, DeviceKernel kernel, KernelOptions options) {
  impl_boxed<Functional>(m, functional, kernel, options);
  if (!out) return;
  const auto op = Dispatcher::singleton().findSchema(parse_operator_name(std::string("aten::") + functional));
  CRESSET_CHECK(op, "register_kernel: there is no operator aten::", functional, ".");
  impl_boxed<Out>(m, out, kernel, *op, options);
}

void register_in_place_kernel(Library& m, const char* name, DeviceKernel kernel, KernelOptions options) {
  impl_boxed<InPlace>(m, name, kernel, options);
}

}  // namespace cresset
