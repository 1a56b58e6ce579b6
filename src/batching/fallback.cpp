// The fallback of the key FuncTorchBatched: finds an operator's rule and follows it; without one it goes through the examples.
#include <cresset/base/fork.h>
#include <cresset/dispatch/library.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_view.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>

#include "batching/rules.h"

namespace cresset::batching {

using ops::BatchRule;

Rule rule_of(const OperatorHandle& op) {
  const ArrayRef<ops::BatchRow> table = ops::batch_table();
  const std::string name = op.operator_name().str();
  const auto* row = std::lower_bound(table.begin(), table.end(), name,
                                     [](const ops::BatchRow& r, const std::string& n) { return std::strcmp(r.name, n.c_str()) < 0; });
  if (row != table.end() && name == row->name) return {row->rule, row->inner};
  if (op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd)) return {BatchRule::Decompose, 0};
  return {};
}

const char* word_of(BatchRule rule) {
  switch (rule) {
    case BatchRule::Loop: return "loop";
    case BatchRule::Decompose: return "decompose";
    case BatchRule::Pointwise: return "pointwise";
    case BatchRule::Dim: return "dim";
    case BatchRule::Full: return "full";
    case BatchRule::Leading: return "leading";
    case BatchRule::Broadcast: return "broadcast";
    case BatchRule::Fold: return "fold";
    case BatchRule::Random: return "random";
    case BatchRule::Functional: return "functional";
    case BatchRule::Code: return "code";
    case BatchRule::Dynamic: return "dynamic";
    case BatchRule::Out: return "out";
  }
  return "loop";
}

namespace {

/// rule_of, remembered for the operators of the table.
Rule cached_rule(const OperatorHandle& op) {
  struct Slot {
    const impl::OperatorEntry* op = nullptr;
    Rule rule;
  };
  constexpr std::size_t kSlots = 256;
  thread_local std::unique_ptr<Slot[]> cache;  // on the heap: the library's thread-local memory is small
  if (CRESSET_UNLIKELY(!cache)) cache = std::make_unique<Slot[]>(kSlots);
  Slot& slot = cache[(reinterpret_cast<std::uintptr_t>(op.entry()) / sizeof(impl::OperatorEntry)) % kSlots];
  if (CRESSET_LIKELY(slot.op == op.entry())) return slot.rule;
  const Rule rule = rule_of(op);
  // What users register may change: only the table's rows are kept.
  if (op.operator_name().ns() == "aten") slot = {op.entry(), rule};
  return rule;
}

bool has_composite(const OperatorHandle& op) {
  return op.hasKernelForDispatchKey(DispatchKey::CompositeImplicitAutograd) ||
         op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd);
}

/// The kernel that an operator has for every backend runs here, above autograd, on batched tensors.
void decompose(const OperatorHandle& op, DispatchKeySet ks, Stack* stack) {
  const auto slot = static_cast<std::size_t>(DispatchKey::Undefined);
  op.entry()->table[slot].load(std::memory_order_acquire)->callBoxed(op, ks, stack);
}

}  // namespace

LoopSettings& loop_settings() {
  static LoopSettings settings;
  return settings;
}

namespace {
void warn_about_loop(const OperatorHandle& op) {
  if (!loop_settings().warns) return;
  static ForkSafe<std::mutex> mutex;
  static auto& warned = *new std::set<std::string>();
  {
    const std::lock_guard lock(mutex);
    if (!warned.insert(op.operator_name().str()).second) return;
  }
  warn("There is a performance drop because we have not yet implemented the batching rule for " + op.operator_name().str() +
       ". Please file us an issue on GitHub so that we can prioritize its implementation.");
}
}  // namespace

void loop_rule(BatchCall& call) {
  const std::string name = call.op.operator_name().str();
  CRESSET_CHECK(loop_settings().enabled, "Batching rule not implemented for ", name, "; we could not generate a fallback.");
  const auto& returns = call.schema.returns();
  bool out = false;
  for (const Argument& a : call.schema.arguments()) out |= a.is_out();
  for (const Argument& r : returns) out |= r.alias && !r.is_mutable();
  CRESSET_CHECK(!out, "Batching rule not implemented for ", name, "; the fallback path doesn't work on out= or view ops.");
  for (const Argument& r : returns) {
    const TypeKind kind = r.type->kind == TypeKind::List ? r.type->element()->kind : r.type->kind;
    CRESSET_CHECK(kind == TypeKind::Tensor, "Batching rule not implemented for ", name, ". We could not generate a fallback.");
  }
  const int64_t count = call.batch.size();
  CRESSET_CHECK(count > 0, "The fallback path does not support vmap over dims of size 0. Operator: ", name);
  call.check_written(name);
  warn_about_loop(call.op);
  call.map([&](const Tensor& t) { return call.batch.front(t); });
  const std::vector<IValue> fronts = call.args;
  std::vector<std::vector<IValue>> results;
  for (int64_t i = 0; i < count; ++i) {
    call.args = fronts;
    for (std::size_t a = 0; a < call.args.size(); ++a) {
      // Only what was batched has lost its dimension: the given argument says which.
      std::vector<bool> batched;
      each_tensor(call.given(a), [&](const Tensor& t) { batched.push_back(call.batch.has(t)); });
      std::size_t at = 0;
      map_tensors(call.args[a], [&](const Tensor& t) { return batched[at++] ? cresset::select(t, 0, i) : t; });
    }
    results.push_back(call.invoke());
  }
  std::vector<IValue> stacked;
  for (std::size_t r = 0; r < returns.size(); ++r) {
    if (returns[r].is_mutable()) {
      stacked.emplace_back();
      continue;
    }
    const auto gather = [&](const auto& pick) {
      std::vector<Tensor> parts;
      for (const auto& one : results) parts.push_back(pick(one[r]));
      return parts.front().defined() ? cresset::stack(parts, 0) : Tensor();
    };
    if (results.front()[r].isTensor()) {
      stacked.emplace_back(gather([](const IValue& v) { return v.toTensor(); }));
      continue;
    }
    if (results.front()[r].isNone()) {
      stacked.emplace_back();
      continue;
    }
    std::vector<Tensor> list;
    const std::size_t length = results.front()[r].toListRef().size();
    for (const auto& one : results)
      CRESSET_CHECK(one[r].toListRef().size() == length, name, ": under vmap every example must give as many tensors; given ", length,
                    " and ", one[r].toListRef().size(), ".");
    for (std::size_t k = 0; k < length; ++k) list.push_back(gather([&](const IValue& v) { return v.toListRef()[k].toTensor(); }));
    stacked.emplace_back(list);
  }
  call.give(std::move(stacked));
}

void functional_rule(BatchCall& call) {
  const OperatorName& name = call.op.operator_name();
  call.check_written(name.base());
  const std::string functional = name.name.substr(0, name.name.size() - 1);
  const OperatorHandle op = Dispatcher::singleton().findSchemaOrThrow(functional.c_str(), name.overload_name.c_str());
  Tensor self = call.given(0).toTensor();
  const std::vector<IValue> result = call.invoke(op);
  cresset::copy_(self, result.front().toTensor());
  cresset::drop(call.stack, call.args.size());
  call.stack.emplace_back(self);
}

namespace {

void batched_fallback(const OperatorHandle& op, DispatchKeySet ks, Stack* stack) {
  const Rule rule = cached_rule(op);
  if (rule.kind == BatchRule::Decompose) return decompose(op, ks, stack);
  BatchCall call(op, *stack);
  switch (rule.kind) {
    case BatchRule::Pointwise: return pointwise_rule(call);
    case BatchRule::Dim: return dim_rule(call);
    case BatchRule::Full: return full_rule(call);
    case BatchRule::Leading: return leading_rule(call, rule.inner);
    case BatchRule::Broadcast: return broadcast_rule(call, rule.inner);
    case BatchRule::Fold: return fold_rule(call, rule.inner);
    case BatchRule::Functional: return functional_rule(call);
    case BatchRule::Out:
      CRESSET_THROW(Error, "Batching rule not implemented for ", op.operator_name(),
                    "; the fallback path doesn't work on out= or view ops.");
    case BatchRule::Dynamic:
      CRESSET_THROW(Error, "vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over ",
                    op.operator_name(), ". Please file an issue at https://github.com/pytorch/pytorch/issues if you need this feature.");
    case BatchRule::Random:  // what draws nothing arrives here: dropout outside of training
      if (has_composite(op)) return decompose(op, ks, stack);
      break;
    case BatchRule::Loop:
    case BatchRule::Code:
    case BatchRule::Decompose: break;
  }
  loop_rule(call);
}

}  // namespace

CRESSET_LIBRARY_IMPL(_, FuncTorchBatched, m) { m.fallback(CppFunction::makeFromBoxedFunction<&batched_fallback>()); }
CRESSET_LIBRARY_IMPL(_, FuncTorchVmapMode, m) { m.fallback(CppFunction::makeFallthrough()); }

}  // namespace cresset::batching
