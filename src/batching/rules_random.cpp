// Random operators under vmap: a kernel for the key FuncTorchVmapMode, which every call has while a level is active.
//
// randomness "error" refuses, "same" draws once for all examples, "different" draws for all of them together.
#include <cresset/core/forward_levels.h>
#include <cresset/dispatch/library.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_random.h>
#include <cresset/ops/functions_reduce.h>

#include <algorithm>
#include <mutex>

#include "batching/batch_call.h"
#include "batching/rule_table.h"

namespace cresset::batching {
namespace {

struct RandomCall {
  RandomCall(const OperatorHandle& o, Stack& s)
      : op(o),
        schema(o.schema()),
        stack(s),
        level(levels().back()),
        args(s.end() - static_cast<std::ptrdiff_t>(schema.arguments().size()), s.end()) {
    for (const IValue& v : args)
      each_tensor(v, [&](const Tensor& t) {
        has_tensor = true;
        batched |= has(t);
        rank = std::max(rank, t.dim());
      });
    const std::string_view base = op.operator_name().base();
    inplace = schema.is_mutable();
    // Only what the tensor looks like matters.
    values_unused = base.ends_with("_like") || base == "uniform" || base == "normal_functional" || base == "log_normal" ||
                    base == "exponential" || base == "geometric" || base == "cauchy" || base == "random" ||
                    op.operator_name().str() == "aten::bernoulli.p" || (inplace && op.operator_name().str() != "aten::bernoulli_.Tensor");
  }
  bool has(const Tensor& t) const { return level_of(t) == level.number; }

  std::vector<IValue> invoke(std::vector<IValue> values) const {
    const WithoutInnermostLevel guard;
    Stack inner(std::move(values));
    op.callBoxed(inner);
    return inner;
  }
  void give(std::vector<IValue> results) const {
    cresset::drop(stack, args.size());
    for (IValue& v : results) stack.push_back(std::move(v));
  }
  Tensor wrap(const Tensor& t) const { return t.defined() ? add_batch_dim(t, 0, level.number) : t; }
  /// A tensor like one example, of no particular values.
  static Tensor example_of(const Tensor& t) { return cresset::empty(t.sizes(), t.options()); }

  const OperatorHandle& op;
  const FunctionSchema& schema;
  Stack& stack;
  Level level;
  std::vector<IValue> args;
  bool has_tensor = false, batched = false, inplace = false, values_unused = false;
  int64_t rank = 0;
};

/// Inside of a forward level values have a batch dimension for the sake of their tangents. Where all examples are equal, one of them is put
/// into the place of the batch; gives false where they are not.
bool take_one_example(RandomCall& call) {
  if (detail::forward_levels.load(std::memory_order_relaxed) == 0 || levels().size() != 1) return false;
  std::vector<IValue> values = call.args;
  bool equal = true;
  for (IValue& v : values)
    map_tensors(v, [&](const Tensor& t) {
      if (!call.has(t) || !equal) return t;
      const Tensor full = remove_batch_dim(t, call.level.number, call.level.batch_size, 0), first = full.select(0, 0);
      equal = cresset::equal(full, first.unsqueeze(0).expand(full.sizes()));
      return first;
    });
  if (equal) call.args = std::move(values);
  return equal;
}

void draw_same(RandomCall& call) {
  if (!call.batched) return call.give(call.invoke(call.args));
  const std::string_view base = call.op.operator_name().base();
  if (base == "native_dropout" || base == "dropout") {
    const Tensor input = call.args[0].toTensor();
    std::vector<IValue> values = call.args;
    values[0] = IValue(cresset::ones(input.sizes(), input.options()));
    std::vector<IValue> drawn = call.invoke(std::move(values));
    drawn[0] = IValue(cresset::mul(input, drawn[0].toTensor()));
    return call.give(std::move(drawn));
  }
  // What is written in place is of no particular values; the others must be the same for all.
  const auto is_batched = [&](const IValue& v) {
    bool found = false;
    each_tensor(v, [&](const Tensor& t) { found |= call.has(t); });
    return found;
  };
  const bool only_written = call.inplace && std::none_of(call.args.begin() + 1, call.args.end(), is_batched);
  if (!call.values_unused && !only_written && take_one_example(call)) return call.give(call.invoke(call.args));
  CRESSET_CHECK(call.values_unused || only_written,
                "Vmap does not currently support same randomness with a batched tensor input. Please file an issue with functorch");
  std::vector<IValue> values = call.args;
  for (IValue& v : values)
    if (call.values_unused || &v == values.data()) map_tensors(v, [&](const Tensor& t) { return RandomCall::example_of(t); });
  std::vector<IValue> drawn = call.invoke(std::move(values));
  if (call.inplace) {
    Tensor self = call.args[0].toTensor();
    cresset::copy_(self, drawn[0].toTensor());
    drawn[0] = IValue(self);
  }
  call.give(std::move(drawn));
}

void draw_different(RandomCall& call) {
  const int64_t count = call.level.batch_size;
  const std::string_view base = call.op.operator_name().base();
  std::vector<IValue> values = call.args;
  if (call.has_tensor) {
    const Tensor self = call.args[0].toTensor();
    CRESSET_CHECK(
        !call.inplace || call.has(self),
        "vmap: Cannot ask for different inplace randomness on an unbatched tensor. This will appear like same randomness. If this is "
        "necessary for your usage, please file an issue with functorch.");
    const bool rows = base == "multinomial" && call.rank == 2;
    for (IValue& v : values)
      map_tensors(v, [&](const Tensor& t) {
        const Tensor full = insert_ones(remove_batch_dim(t, call.level.number, count, 0), 1, call.rank - t.dim());
        return rows ? merge_dims(full, 0) : full;
      });
    std::vector<IValue> drawn = call.invoke(std::move(values));
    if (call.inplace) return call.give({IValue(self)});
    for (IValue& v : drawn) map_tensors(v, [&](const Tensor& t) { return call.wrap(rows ? split_dim(t, 0, count) : t); });
    return call.give(std::move(drawn));
  }
  if (base == "randperm") {
    std::vector<Tensor> parts;
    for (int64_t i = 0; i < count; ++i) parts.push_back(call.invoke(values)[0].toTensor());
    return call.give({IValue(call.wrap(cresset::stack(parts, 0)))});
  }
  const auto size = call.schema.argument_index("size");
  CRESSET_CHECK(size, "vmap: ", call.op.operator_name(), " has neither a tensor nor a size to draw different values for.");
  std::vector<int64_t> sizes = values[*size].toIntVector();
  sizes.insert(sizes.begin(), count);
  values[*size] = IValue(sizes);
  call.give({IValue(call.wrap(call.invoke(std::move(values))[0].toTensor()))});
}

void random_kernel(const OperatorHandle& op, DispatchKeySet ks, Stack* stack) {
  // Another thread may carry this one's keys on, but not its levels.
  if (levels().empty()) return op.redispatchBoxed(ks.remove(DispatchKey::FuncTorchVmapMode), stack);
  RandomCall call(op, *stack);
  if (const auto train = call.schema.argument_index("train")) {
    // Dropout outside of training, of nothing or of everything is no random operator.
    const IValue& v = call.args[*train];
    const auto p = call.schema.argument_index("p");
    if ((!v.isNone() && !v.toBool()) || (p && (call.args[*p].toDouble() == 0 || call.args[*p].toDouble() == 1)))
      return op.redispatchBoxed(ks.remove(DispatchKey::FuncTorchVmapMode), stack);
  }
  CRESSET_CHECK(
      call.level.randomness != Randomness::Error,
      "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness flags on "
      "vmap or perform the randomness operation out of vmap");
  if (call.level.randomness == Randomness::Same)
    draw_same(call);
  else
    draw_different(call);
}

}  // namespace

void register_random_rules() {
  static std::once_flag once;
  std::call_once(once, [] {
    static auto& kept = *new std::vector<RegistrationHandleRAII>();
    for (const ops::BatchRow& row : ops::batch_table())
      if (row.rule == ops::BatchRule::Random)
        kept.push_back(Dispatcher::singleton().registerImpl(parse_operator_name(row.name), DispatchKey::FuncTorchVmapMode,
                                                            KernelFunction::makeFromBoxedFunction<&random_kernel>(), std::nullopt, nullptr,
                                                            "src/batching/rules_random.cpp"));
  });
}

}  // namespace cresset::batching
