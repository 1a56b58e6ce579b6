// The boxed CPU fallback: what moves, what comes back, what it costs.
#include <cresset/base/fork.h>
#include <cresset/base/small_vector.h>
#include <cresset/ops/cpu_fallback.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include <cresset/core/accelerator_hooks.h>
#include <cresset/core/backend.h>
#include <cresset/core/device_generator.h>
#include <cresset/core/device_graph.h>
#include <cresset/ops/functions_copy.h>

#include "ops/shared/pointwise.h"
#include "ops/shared/structured.h"
#include "ops/shared/written_arguments.h"

namespace cresset {
namespace {

// ---- counts and modes

struct Cost {
  const impl::OperatorEntry* entry;
  std::atomic<int64_t> calls{0}, bytes{0}, nanoseconds{0};
  std::atomic<bool> warned{false};
  std::atomic<bool> can_fall_back{false};  // it has been checked
};
struct Counts {
  ForkSafe<std::mutex> mutex;
  std::unordered_map<const impl::OperatorEntry*, std::unique_ptr<Cost>> by_op;  // entries of operators live for ever
  std::atomic<int64_t> calls{0}, bytes{0};
};
Counts& counts() {
  static auto* c = new Counts;
  return *c;
}
Cost& shared_cost_of(const impl::OperatorEntry* entry) {
  Counts& c = counts();
  std::lock_guard lock(c.mutex);
  auto& slot = c.by_op[entry];
  if (!slot) slot = std::make_unique<Cost>(entry);
  return *slot;
}

// What was found before is found without the lock: costs live for ever, as entries do.
Cost& cost_of(const OperatorHandle& op) {
  static std::array<std::atomic<Cost*>, 64> found;
  std::atomic<Cost*>& slot = found[(reinterpret_cast<uintptr_t>(op.entry()) / alignof(std::max_align_t)) % found.size()];
  Cost* cost = slot.load(std::memory_order_acquire);
  if (!cost || cost->entry != op.entry()) {
    cost = &shared_cost_of(op.entry());
    slot.store(cost, std::memory_order_release);
  }
  return *cost;
}

struct Mode {
  std::atomic<CpuFallbackMode> mode{CpuFallbackMode::Allow};
  std::atomic<int64_t> calls{-1}, bytes{-1};              // the budget
  std::atomic<int64_t> calls_before{0}, bytes_before{0};  // spent before the budget was set
  Mode() {
    const char* text = std::getenv("CRESSET_CPU_FALLBACK");
    if (!text) return;
    if (std::strcmp(text, "warn") == 0) mode = CpuFallbackMode::WarnOnce;
    if (std::strcmp(text, "forbid") == 0) mode = CpuFallbackMode::Forbid;
    if (std::strncmp(text, "budget:", 7) == 0) {
      mode = CpuFallbackMode::Budget;
      calls = std::atoll(text + 7);
    }
  }
};
Mode& mode_state() {
  static auto* m = new Mode;
  return *m;
}

std::string bytes_text(int64_t n) {
  if (n < 10'000) return str(n, " B");
  if (n < 10'000'000) return str(n / 1000, " kB");
  return str(n / 1'000'000, " MB");
}

void check_allowed(const OperatorHandle& op, Device device, Cost& cost) {
  Mode& m = mode_state();
  const CpuFallbackMode mode = m.mode.load(std::memory_order_relaxed);
  if (CRESSET_LIKELY(mode == CpuFallbackMode::Allow)) return;
  const std::string name = op.operator_name().str(), kind = DeviceTypeName(device.type());
  if (mode == CpuFallbackMode::WarnOnce) {
    if (!cost.warned.exchange(true))
      warn(str(name, " has no kernel on ", kind, " and runs on the CPU. cresset.accelerator.fallback_report() shows what this costs."));
    return;
  }
  CRESSET_CHECK_NOT_IMPLEMENTED(mode != CpuFallbackMode::Forbid, "Could not run '", name, "' on ", device, ": ", kind,
                                " has no kernel for it, and the CPU fallback is forbidden.\nRegister a kernel, or allow the fallback with "
                                "cresset.accelerator.set_fallback_mode('allow').");
  const int64_t calls = counts().calls.load() - m.calls_before.load(), bytes = counts().bytes.load() - m.bytes_before.load();
  const bool spent = (m.calls.load() >= 0 && calls >= m.calls.load()) || (m.bytes.load() >= 0 && bytes >= m.bytes.load());
  CRESSET_CHECK_NOT_IMPLEMENTED(!spent, "Could not run '", name, "' on ", device, ": ", kind,
                                " has no kernel for it, and the budget of the CPU fallback is spent (", calls, " calls, ",
                                bytes_text(bytes), ").\ncresset.accelerator.fallback_report() shows the costliest operators.");
}

// ---- moving

// Argument names that may stay on the host although the others are on a device: lengths and indices.
bool may_be_on_host(const std::string& argument) {
  return argument == "indices" || argument == "lengths" || argument == "input_lengths" || argument == "target_lengths" ||
         argument == "scalars" || argument == "index" || argument == "batch_sizes";
}

// Moves the tensors of one call to the CPU and remembers where they came from.
class Mover {
 public:
  explicit Mover(const OperatorHandle& op) : op_(op) {}
  std::optional<Device> device;
  int64_t bytes = 0;

  void to_cpu(IValue& v, const Argument& argument) {
    if (v.isTensor()) {
      const Tensor t = v.toTensor();
      if (t.defined()) move_tensor(t, v, argument);
    } else if (v.isList()) {
      const ivalue::ListImpl* list = &v.toListImpl();
      if (std::none_of(list->elements.begin(), list->elements.end(), [](const IValue& e) { return e.isTensor(); })) return;
      std::vector<IValue> moved = list->elements;
      for (IValue& e : moved)
        if (e.isTensor() && e.toTensor().defined()) move_tensor(Tensor(e.toTensor()), e, argument);
      v = make_intrusive<ivalue::ListImpl>(std::move(moved), list->element_type);
    } else if (v.isDevice()) {
      // A factory: make it on the CPU, then move it to the device that was asked for.
      if (!device && !v.toDevice().is_cpu()) device = resolved_device(v.toDevice());
      v = Device(kCPU);
    } else if (v.isGenerator()) {
      const Generator g = v.toGenerator();
      generator_ = g;
      if (const auto* own = dynamic_cast<DeviceGeneratorImpl*>(g.unsafeGetGeneratorImpl())) v = IValue(own->host());
    }
  }

  // The CPU copy's content goes back to where it came from, sizes included.
  void write_back(const IValue& original, const IValue& changed) {
    if (original.isTensor()) {
      Tensor to = original.toTensor();
      const Tensor& from = changed.toTensor();
      if (!to.defined() || !from.defined() || to.is_same(from)) return;
      if (to.sizes() != from.sizes()) to.resize_(from.sizes());
      copy(from, to);
    } else if (original.isList()) {
      for (std::size_t i = 0; i < original.toListRef().size(); ++i) write_back(original.toListRef()[i], changed.toListRef()[i]);
    }
  }

  void to_device(IValue& v) {
    if (v.isTensor()) {
      const Tensor t = v.toTensor();
      if (!t.defined() || !t.is_cpu()) return;
      const Tensor result = ops::allocate({DimVector(t.sizes()), t.scalar_type(), *device, DimVector(t.strides())}, *device);
      copy(t, result);
      v = result;
    } else if (v.isList()) {
      std::vector<IValue> moved = v.toListRef();
      for (IValue& e : moved) to_device(e);
      v = make_intrusive<ivalue::ListImpl>(std::move(moved), v.toListImpl().element_type);
    }
  }

  // Tensors that stayed on the CPU and the generator must go with the device.
  void check_devices() const {
    if (generator_.defined()) {
      // Without a tensor of a device the call came here by its generator.
      const DeviceType wanted = device ? device->type() : kCPU;
      if (generator_.device().type() != wanted) cresset::detail::raise_generator_device(generator_, wanted);
    }
    if (!device || !host_.defined()) return;
    CRESSET_THROW(Error, "Expected all tensors to be on the same device, but found at least two devices, ", *device, " and cpu!\n",
                  op_.operator_name(), ": argument '", host_argument_, "' is on the CPU. Move it with .to('", *device, "').");
  }

 private:
  // `into` holds t, and gets its copy.
  void move_tensor(const Tensor& t, IValue& into, const Argument& argument) {
    if (t.is_cpu()) {
      if (t.dim() > 0 && !may_be_on_host(argument.name) && !host_.defined()) {
        host_ = t;
        host_argument_ = argument.name;
      }
      return;
    }
    if (!device) device = t.device();
    CRESSET_CHECK(t.device() == *device, "Expected all tensors to be on the same device, but found at least two devices, ", *device,
                  " and ", t.device(), "!\n", op_.operator_name(), ": argument '", argument.name, "' is on ", t.device(),
                  ". Move it with .to('", *device, "').");
    CRESSET_CHECK_NOT_IMPLEMENTED(t.has_storage(), "cpu_fallback(", op_.operator_name(), "): argument '", argument.name,
                                  "' has no storage, so it cannot be copied to the CPU as it is. Register a kernel for ",
                                  t.unsafeGetTensorImpl()->tensorimpl_type_name(), ".");
    Tensor r = ops::allocate_cpu({DimVector(t.sizes()), t.scalar_type(), Device(kCPU), dense_strides(t)});
    r.unsafeGetTensorImpl()->set_wrapped_number(t.unsafeGetTensorImpl()->is_wrapped_number());
    if (!argument.is_out()) copy(t, r);  // what out holds is not read
    into = std::move(r);
  }
  void copy(const Tensor& from, const Tensor& to) {
    if (from.numel() == 0) return;
    cresset::_copy_from(from, to, false);
    bytes += static_cast<int64_t>(from.nbytes());
  }
  static std::optional<DimVector> dense_strides(const Tensor& t) {
    if (t.is_contiguous() || !t.is_non_overlapping_and_dense()) return std::nullopt;
    return DimVector(t.strides());
  }

  const OperatorHandle& op_;
  Tensor host_;
  std::string host_argument_;
  Generator generator_;
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

void check_can_fall_back(const OperatorHandle& op, const FunctionSchema& schema) {
  const std::string& name = op.operator_name().name;
  const std::string& overload = op.operator_name().overload_name;
  // The fallback itself calls these three.
  CRESSET_CHECK_NOT_IMPLEMENTED(
      name != "aten::_copy_from" && name != "aten::empty_strided" && !(name == "aten::empty" && overload == "memory_format"),
      "cpu_fallback: a backend must register ", op.operator_name(), " itself; every other operator can run on the CPU.");
  for (const Argument& r : schema.returns())
    CRESSET_CHECK_NOT_IMPLEMENTED(!r.alias || r.alias->is_write || r.alias->before.empty(), "cpu_fallback: ", op.operator_name(),
                                  " gives a view, and a view of a copy would not be one of the argument. Register a kernel for it.");
}

// Random operators that were given no generator draw from the device's own stream.
void give_generator(const FunctionSchema& schema, std::size_t n, Stack& inner, Device device) {
  for (std::size_t i = 0; i < n; ++i) {
    if (!inner[i].isNone() || schema.arguments()[i].name != "generator" || !has_generator(device.type())) continue;
    const Generator& g = default_generator_of(device);
    if (const auto* own = dynamic_cast<DeviceGeneratorImpl*>(g.unsafeGetGeneratorImpl())) inner[i] = IValue(own->host());
  }
}

// The CPU takes no part in what a graph records.
void check_not_recorded(const OperatorHandle& op, const Stack& arguments) {
  if (CRESSET_LIKELY(!detail::is_anything_recorded())) return;
  for (const IValue& v : arguments) {
    if (!v.isTensor() || !v.toTensor().defined() || v.toTensor().is_cpu()) continue;
    const Device device = v.toTensor().device();
    CRESSET_CHECK_NOT_IMPLEMENTED(!detail::is_capturing_in_this_thread(device), "Could not run '", op.operator_name().str(), "' on ",
                                  device,
                                  ": it has no kernel there, and the CPU takes no part in what accelerator.Graph records.\n"
                                  "Register a kernel, or leave the operator out of the recorded part.");
  }
}

}  // namespace

void cpu_fallback(const OperatorHandle& op, Stack* stack) {
  const auto start = std::chrono::steady_clock::now();
  // Straight to the kernels: gradients, views and versions are the business of the layers above this one.
  AutoDispatchBelowADInplaceOrView below;
  const FunctionSchema& schema = op.schema();
  Cost& cost = cost_of(op);
  const bool known = cost.can_fall_back.load(std::memory_order_relaxed);
  if (CRESSET_UNLIKELY(!known)) check_can_fall_back(op, schema);
  const std::size_t n = schema.arguments().size();
  const auto first = stack->end() - static_cast<std::ptrdiff_t>(n);
  Stack inner(first, stack->end());
  check_not_recorded(op, inner);
  Mover mover(op);
  SmallVector<bool, 16> written(n);
  bool mutates = false;
  for (std::size_t i = 0; i < n; ++i) {
    const Argument& argument = schema.arguments()[i];
    written[i] = ops::is_written(schema, argument);
    mutates |= written[i];
    // The copy on the CPU would not show it.
    if (written[i] && argument.kwarg_only && inner[i].isTensor() && inner[i].toTensor().defined())
      ops::check_no_internal_overlap(inner[i].toTensor());
    mover.to_cpu(inner[i], argument);
  }
  mover.check_devices();
  CRESSET_CHECK_NOT_IMPLEMENTED(known || op.hasComputedKernelForDispatchKey(DispatchKey::CPU), "Could not run '", op.operator_name(),
                                "' on ", mover.device.value_or(Device(kCPU)),
                                ": neither the device nor the CPU has a kernel for it.\n`cresset explain ", op.operator_name(),
                                "` shows the table.");
  CRESSET_CHECK(mover.device, "cpu_fallback(", op.operator_name(), "): no argument names the device to return to.");
  cost.can_fall_back.store(true, std::memory_order_relaxed);
  check_allowed(op, *mover.device, cost);
  give_generator(schema, n, inner, *mover.device);

  Stack on_cpu;  // kept only where something has to be written back
  if (mutates) on_cpu = inner;
  op.redispatchBoxed(DispatchKeySet(DispatchKey::CPU), &inner);
  CRESSET_CHECK(inner.size() == schema.returns().size(), op.operator_name(), ": the CPU kernel left ", inner.size(), " results; ",
                schema.returns().size(), " were due.");
  if (mutates)
    for (std::size_t i = 0; i < n; ++i)
      if (written[i]) mover.write_back(*(first + static_cast<std::ptrdiff_t>(i)), on_cpu[i]);
  for (std::size_t i = 0; i < inner.size(); ++i) {
    if (const auto argument = mutates ? mutated_argument(schema, schema.returns()[i]) : std::nullopt)
      inner[i] = *(first + static_cast<std::ptrdiff_t>(*argument));
    else
      mover.to_device(inner[i]);
  }
  stack->resize(stack->size() - n);
  for (IValue& v : inner) stack->push_back(std::move(v));

  Counts& c = counts();
  c.calls.fetch_add(1, std::memory_order_relaxed);
  c.bytes.fetch_add(mover.bytes, std::memory_order_relaxed);
  cost.calls.fetch_add(1, std::memory_order_relaxed);
  cost.bytes.fetch_add(mover.bytes, std::memory_order_relaxed);
  const auto spent = std::chrono::steady_clock::now() - start;
  cost.nanoseconds.fetch_add(std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count(), std::memory_order_relaxed);
}

void count_round_trip(const OperatorHandle& op, Device device, int64_t bytes) {
  Cost& cost = cost_of(op);
  check_allowed(op, device, cost);
  Counts& c = counts();
  c.calls.fetch_add(1, std::memory_order_relaxed);
  c.bytes.fetch_add(bytes, std::memory_order_relaxed);
  cost.calls.fetch_add(1, std::memory_order_relaxed);
  cost.bytes.fetch_add(bytes, std::memory_order_relaxed);
}

void set_cpu_fallback_mode(CpuFallbackMode mode, CpuFallbackBudget budget) {
  Mode& m = mode_state();
  m.calls = budget.calls;
  m.bytes = budget.bytes;
  m.calls_before = counts().calls.load();
  m.bytes_before = counts().bytes.load();
  m.mode = mode;
}
CpuFallbackMode cpu_fallback_mode() { return mode_state().mode.load(); }
CpuFallbackBudget cpu_fallback_budget() { return {mode_state().calls.load(), mode_state().bytes.load()}; }

std::vector<CpuFallbackCount> cpu_fallback_counts() {
  Counts& c = counts();
  std::lock_guard lock(c.mutex);
  std::vector<CpuFallbackCount> out;
  for (const auto& [entry, cost] : c.by_op)
    if (cost->calls.load() > 0) out.push_back({entry->name.str(), cost->calls.load(), cost->bytes.load(), cost->nanoseconds.load()});
  std::sort(out.begin(), out.end(),
            [](const auto& a, const auto& b) { return a.nanoseconds != b.nanoseconds ? a.nanoseconds > b.nanoseconds : a.op < b.op; });
  return out;
}

void reset_cpu_fallback_counts() {
  Counts& c = counts();
  std::lock_guard lock(c.mutex);
  for (auto& [entry, cost] : c.by_op) {
    cost->calls = 0;
    cost->bytes = 0;
    cost->nanoseconds = 0;
    cost->warned = false;
  }
}

std::string cpu_fallback_report(std::size_t lines) {
  const std::vector<CpuFallbackCount> all = cpu_fallback_counts();
  if (all.empty()) return "No operator ran on the CPU for a device.\n";
  const auto column = [](std::string text, std::size_t width) { return std::string(width - std::min(width, text.size()), ' ') + text; };
  std::string out = str(column("calls", 8), column("moved", 10), column("ms", 10), "  operator\n");
  CpuFallbackCount rest{"", 0, 0, 0};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& c = all[i];
    if (i < lines)
      out += str(column(std::to_string(c.calls), 8), column(bytes_text(c.bytes), 10),
                 column(str(static_cast<double>(c.nanoseconds / 1000) / 1000), 10), "  ", c.op, "\n");
    else
      rest = {"", rest.calls + c.calls, rest.bytes + c.bytes, rest.nanoseconds + c.nanoseconds};
  }
  if (rest.calls > 0)
    out += str(column(std::to_string(rest.calls), 8), column(bytes_text(rest.bytes), 10),
               column(str(static_cast<double>(rest.nanoseconds / 1000) / 1000), 10), "  ", all.size() - lines, " others\n");
  return out;
}

}  // namespace cresset
