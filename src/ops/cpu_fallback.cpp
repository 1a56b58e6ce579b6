// The boxed CPU fallback.
#include <cresset/ops/cpu_fallback.h>

#include <algorithm>
#include <map>
#include <mutex>

namespace cresset {
namespace {

struct Counts {
  std::mutex mutex;
  std::map<std::string, CpuFallbackCount> by_op;
};
Counts& counts() {
  static auto* c = new Counts;
  return *c;
}

// Moves tensors of one argument to the CPU and remembers where they came from.
class Mover {
 public:
  std::optional<Device> device;
  int64_t bytes = 0;

  IValue to_cpu(const IValue& v) {
    if (v.isTensor()) return to_cpu(v.toTensor());
    if (!v.isList()) return v;
    const ivalue::ListImpl* list = &v.toListImpl();
    if (std::none_of(list->elements.begin(), list->elements.end(), [](const IValue& e) { return e.isTensor(); })) return v;
    std::vector<IValue> moved;
    for (const IValue& e : list->elements) moved.push_back(e.isTensor() ? to_cpu(e.toTensor()) : e);
    return make_intrusive<ivalue::ListImpl>(std::move(moved), list->element_type);
  }

  // The CPU copy's content goes back to where it came from, sizes included.
  void write_back(const IValue& original, const IValue& changed) {
    if (original.isTensor()) {
      Tensor to = original.toTensor();
      const Tensor& from = changed.toTensor();
      if (!to.defined() || !from.defined() || to.is_same(from)) return;
      if (to.sizes() != from.sizes()) to.resize_(from.sizes());
      to.copy_(from);
      bytes += static_cast<int64_t>(from.nbytes());
    } else if (original.isList()) {
      for (std::size_t i = 0; i < original.toListRef().size(); ++i) write_back(original.toListRef()[i], changed.toListRef()[i]);
    }
  }

  IValue to_device(const IValue& v) {
    if (v.isTensor()) {
      const Tensor& t = v.toTensor();
      if (!t.defined() || !device || t.device() == *device) return v;
      bytes += static_cast<int64_t>(t.nbytes());
      return t.to(t.options().device(*device));
    }
    if (!v.isList()) return v;
    std::vector<IValue> moved;
    for (const IValue& e : v.toListRef()) moved.push_back(to_device(e));
    return make_intrusive<ivalue::ListImpl>(std::move(moved), v.toListImpl().element_type);
  }

 private:
  Tensor to_cpu(const Tensor& t) {
    if (!t.defined() || t.is_cpu()) return t;
    if (!device) device = t.device();
    bytes += static_cast<int64_t>(t.nbytes());
    Tensor r = t.to(t.options().device(kCPU));
    r.unsafeGetTensorImpl()->set_wrapped_number(t.unsafeGetTensorImpl()->is_wrapped_number());
    return r;
  }
};

// Which argument a result is by its alias set: the mutated one whose set it names, or none.
std::optional<std::size_t> mutated_argument(const FunctionSchema& schema, const Argument& result) {
  if (!result.alias || !result.alias->is_write) return std::nullopt;
  for (std::size_t i = 0; i < schema.arguments().size(); ++i) {
    const Argument& a = schema.arguments()[i];
    if (a.is_mutable() && a.alias->before == result.alias->before) return i;
  }
  return std::nullopt;
}

// The fallback itself calls these three.
void check_backend_has_them(const OperatorHandle& op) {
  const std::string name = op.operator_name().str();
  CRESSET_CHECK_NOT_IMPLEMENTED(name != "aten::_copy_from" && name != "aten::empty.memory_format" && name != "aten::empty_strided",
                                "cpu_fallback: a backend must register ", name, " itself; every other operator can run on the CPU.");
}

}  // namespace

void cpu_fallback(const OperatorHandle& op, Stack* stack) {
  check_backend_has_them(op);
  const FunctionSchema& schema = op.schema();
  const std::size_t n = schema.arguments().size();
  const std::vector<IValue> originals(stack->end() - static_cast<std::ptrdiff_t>(n), stack->end());
  Mover mover;
  std::vector<IValue> on_cpu;
  on_cpu.reserve(n);
  for (std::size_t i = 0; i < n; ++i) {
    on_cpu.push_back(mover.to_cpu(originals[i]));
    if (originals[i].isDevice()) {
      // A factory: make it on the CPU, then move it to the device that was asked for.
      if (!mover.device && !originals[i].toDevice().is_cpu()) mover.device = originals[i].toDevice();
      on_cpu.back() = Device(kCPU);
    }
  }
  CRESSET_CHECK(mover.device, "cpu_fallback(", op.operator_name(), "): no argument names the device to return to.");

  Stack inner = on_cpu;
  op.callBoxed(&inner);

  for (std::size_t i = 0; i < n; ++i)
    if (schema.arguments()[i].is_mutable()) mover.write_back(originals[i], on_cpu[i]);
  stack->resize(stack->size() - n);
  CRESSET_CHECK(inner.size() == schema.returns().size(), op.operator_name(), ": the CPU kernel left ", inner.size(), " results; ",
                schema.returns().size(), " were due.");
  for (std::size_t i = 0; i < inner.size(); ++i) {
    if (const auto argument = mutated_argument(schema, schema.returns()[i]))
      stack->push_back(originals[*argument]);
    else
      stack->push_back(mover.to_device(inner[i]));
  }

  Counts& c = counts();
  std::lock_guard lock(c.mutex);
  CpuFallbackCount& entry = c.by_op[op.operator_name().str()];
  ++entry.calls;
  entry.bytes += mover.bytes;
}

std::vector<CpuFallbackCount> cpu_fallback_counts() {
  Counts& c = counts();
  std::lock_guard lock(c.mutex);
  std::vector<CpuFallbackCount> out;
  for (auto& [name, entry] : c.by_op) out.push_back({name, entry.calls, entry.bytes});
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return out;
}

void reset_cpu_fallback_counts() {
  Counts& c = counts();
  std::lock_guard lock(c.mutex);
  c.by_op.clear();
}

}  // namespace cresset
