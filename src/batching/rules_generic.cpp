// Rules for whole classes of operators: the table says which class an operator is of, its schema says the rest.
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_reduce.h>
#include <cresset/ops/functions_view.h>

#include <algorithm>
#include <array>
#include <limits>

#include "batching/rules.h"
#include "ops/shared/promotion.h"

namespace cresset::batching {

// --- pointwise ------------------------------------------------------------------------------------------------------------

namespace {

/// A batch of zero-dimensional tensors has a dimension, and would count for more in type promotion than one example does.
/// Gives the type that the call has for one example, or Undefined when nothing can go wrong.
ScalarType promoted_for_one(const BatchCall& call) {
  bool zero_dim = false, mixed = false;
  ScalarType first = ScalarType::Undefined;
  ops::ResultType type;
  for (std::size_t i = 0; i < call.args.size(); ++i) {
    const std::string& name = call.schema.arguments()[i].name;
    if (name == "condition" || name == "mask") continue;  // it chooses among values
    each_tensor(call.args[i], [&](const Tensor& t) {
      zero_dim |= t.dim() == 0 && call.batch.has(t);
      mixed |= first != ScalarType::Undefined && first != t.scalar_type();
      first = t.scalar_type();
      type.add(t);
    });
  }
  return zero_dim && mixed ? type.get() : ScalarType::Undefined;
}

}  // namespace

void pointwise_rule(BatchCall& call) {
  call.check_written("inplace arithmetic");
  int64_t rank = 0;
  for (const IValue& v : call.args) each_tensor(v, [&](const Tensor& t) { rank = std::max(rank, t.dim()); });
  const ScalarType type = promoted_for_one(call);
  const bool written = call.schema.is_mutable();
  if (written && rank > call.given(0).toTensor().dim()) rank = call.given(0).toTensor().dim();
  call.map([&](const Tensor& t) {
    if (!call.batch.has(t)) return t;
    Tensor front = call.batch.aligned(t, rank);
    const bool widens = type != ScalarType::Undefined && t.dim() == 0 && t.scalar_type() != type && t.scalar_type() != kBool;
    return widens && !(written && t.is_same(call.given(0).toTensor())) ? cresset::_to_copy(front, type) : front;
  });
  call.give(call.invoke());
}

// --- operators that name dimensions -----------------------------------------------------------------------------------------

namespace {

bool names_dims(const std::string& name) {
  static constexpr std::string_view names[] = {"dim", "dims", "dim0", "dim1", "dim2", "dimension", "axis"};
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}
/// Their dimensions are those of the result, which has one more.
bool adds_a_dim(std::string_view base) {
  return base == "unsqueeze" || base == "unsqueeze_" || base == "unsqueeze_copy" || base == "stack" || base == "diag_embed";
}
/// They take parts along a dimension, which a number does not have.
bool takes_parts(std::string_view base) {
  static constexpr std::string_view beginnings[] = {"narrow", "roll", "select", "slice", "split", "unbind", "unsafe_split"};
  return std::any_of(std::begin(beginnings), std::end(beginnings), [&](std::string_view b) { return base.substr(0, b.size()) == b; });
}
/// In place they change what the tensor looks like, not its values.
bool changes_view(std::string_view base) {
  return base == "unsqueeze_" || base == "squeeze_" || base == "transpose_" || base == "t_" || base == "swapaxes_";
}
bool is_int_list(const TypePtr& type) {
  const Type* t = type.get();
  if (t->kind == TypeKind::Optional) t = t->element().get();
  return t->kind == TypeKind::List && (t->element()->kind == TypeKind::Int || t->element()->kind == TypeKind::SymInt);
}

/// In place, what changes sizes and strides alone: the wrapper gets another value; the tensor that was given to vmap stays as it is.
void change_view(BatchCall& call, std::string_view base) {
  const Tensor self = call.given(0).toTensor();
  CRESSET_CHECK(call.batch.has(self), base, ": under vmap the tensor itself must be batched.");
  const OperatorName& name = call.op.operator_name();
  const OperatorHandle functional = Dispatcher::singleton().findSchemaOrThrow(
      name.name == "aten::transpose_" ? "aten::transpose" : name.name.substr(0, name.name.size() - 1).c_str(),
      name.name == "aten::transpose_" ? "int" : name.overload_name.c_str());
  const Tensor changed = call.invoke(functional).front().toTensor();
  const BatchedTensorImpl* other = batched_impl(changed);
  batched_impl(self)->set_value(other->value(), other->batch_dim());
  cresset::drop(call.stack, call.args.size());
  call.stack.emplace_back(self);
}

}  // namespace

void dim_rule(BatchCall& call) {
  const std::string_view base = call.op.operator_name().base();
  const auto& parameters = call.schema.arguments();
  if (changes_view(base)) return change_view(call, base);
  call.check_written(base);
  int64_t rank = call.first_tensor().dim();
  bool keepdim = false, reduces = call.find("keepdim") >= 0;
  for (const IValue& v : call.args)
    if (v.isList()) each_tensor(v, [&](const Tensor& t) { rank = std::max(rank, t.dim()); });
  if (const int k = call.find("keepdim"); k >= 0) keepdim = call.args[static_cast<std::size_t>(k)].toBool();
  if (const int k = call.find("input_sizes"); k >= 0) {
    IValue& sizes = call.args[static_cast<std::size_t>(k)];
    std::vector<int64_t> all = sizes.toIntVector();
    rank = static_cast<int64_t>(all.size());
    all.insert(all.begin(), call.batch.size());
    sizes = IValue(all);
  }
  for (const std::string& tag : call.op.getTags()) reduces |= tag == "reduction";
  const int64_t named = rank + (adds_a_dim(base) ? 1 : 0);
  // An operator on a zero-dimensional tensor sees one with a dimension of size 1, which is gone afterwards.
  const bool scalar = rank == 0 && !adds_a_dim(base);
  bool flatten = false;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (!names_dims(parameters[i].name)) continue;
    IValue& v = call.args[i];
    if (is_int_list(parameters[i].type)) {
      std::vector<int64_t> dims;
      if (v.isInt())
        dims.push_back(v.toInt());
      else if (!v.isNone())
        dims = v.toIntVector();
      if (dims.empty() && reduces)
        for (int64_t d = 0; d < std::max<int64_t>(rank, 1); ++d) dims.push_back(d);
      flatten |= dims.empty() && base == "roll";
      for (int64_t& d : dims) d = maybe_wrap_dim(d, named) + 1;
      if (flatten) dims.push_back(1);
      v = IValue(dims);
    } else if (v.isNone()) {
      flatten = true;
      v = IValue(int64_t{1});
    } else {
      v = IValue(maybe_wrap_dim(v.toInt(), named) + 1);
    }
  }
  CRESSET_CHECK_INDEX(!scalar || flatten || !takes_parts(base), base, "() cannot be applied to a 0-dim tensor.");
  if (scalar && base == "transpose") {  // it is its own transpose, the same object
    const Tensor self = call.given(0).toTensor();
    cresset::drop(call.stack, call.args.size());
    call.stack.emplace_back(self);
    return;
  }
  DimVector before(call.first_tensor().sizes());
  call.map([&](const Tensor& t) {
    Tensor full = call.batch.full(t);
    if (scalar && t.dim() == 0) full = cresset::unsqueeze(full, 1);
    if (base == "cat" && rank > 1 && t.dim() == 1 && t.size(0) == 0) return cresset::flatten(full);  // cat leaves out what is of size [0]
    return flatten && !scalar ? cresset::flatten(full, 1, -1) : full;
  });
  std::vector<IValue> results = call.invoke();
  for (IValue& v : results)
    map_tensors(v, [&](const Tensor& t) -> Tensor {
      if (scalar && t.dim() == 2) return cresset::squeeze(t, 1);
      if (!flatten || scalar) return t;
      if (!reduces) return cresset::reshape(t, with_front(call.batch.size(), before));
      return keepdim ? cresset::reshape(t, with_front(call.batch.size(), DimVector(static_cast<std::size_t>(rank), 1))) : t;
    });
  call.give(std::move(results));
}

// --- reductions over everything ---------------------------------------------------------------------------------------------

namespace {
/// The median of each row. As of the operator over everything, its derivative is shared by the elements that are equal to it.
Tensor median_of_rows(const Tensor& x, bool skips_nan) {
  constexpr std::array<int64_t, 1> one{1};
  const Tensor value = std::get<0>(skips_nan ? cresset::nanmedian(x, 1, true) : cresset::median(x, 1, true));
  if (!x.is_floating_point()) return cresset::squeeze(value, 1);
  const Tensor others = cresset::logical_and(cresset::ne(x, value), cresset::eq(value, value));  // none where the median is NaN
  return cresset::amax(cresset::masked_fill(x, others, -std::numeric_limits<double>::infinity()), one);
}
}  // namespace

void full_rule(BatchCall& call) {
  const std::string_view base = call.op.operator_name().base();
  Tensor x = call.batch.front(call.given(0).toTensor());
  x = x.dim() == 1 ? cresset::unsqueeze(x, 1) : cresset::flatten(x, 1, -1);
  const int dtype_at = call.find("dtype");
  const IValue& dtype_value = dtype_at >= 0 ? call.args[static_cast<std::size_t>(dtype_at)] : IValue();
  const std::optional<ScalarType> dtype = dtype_value.isNone() ? std::nullopt : std::make_optional(dtype_value.toScalarType());
  constexpr std::array<int64_t, 1> one{1};
  const auto result = [&]() -> Tensor {
    if (base == "sum") return cresset::sum(x, one, false, dtype);
    if (base == "mean") return cresset::mean(x, one, false, dtype);
    if (base == "prod") return cresset::prod(x, 1, false, dtype);
    if (base == "max") return cresset::amax(x, one);
    if (base == "min") return cresset::amin(x, one);
    if (base == "any") return cresset::any(x, 1);
    if (base == "all") return cresset::all(x, 1);
    if (base == "median" || base == "nanmedian") return median_of_rows(x, base == "nanmedian");
    if (base == "norm") {
      const std::optional<Scalar> p = call.args[1].isNone() ? std::nullopt : std::make_optional(call.args[1].toScalar());
      return dtype ? cresset::norm(x, p, one, false, *dtype) : cresset::norm(x, p, one, false);
    }
    CRESSET_THROW(InternalError, base, ": the rule for reductions over everything does not know this operator.");
  }();
  call.give({IValue(result)});
}

// --- operators whose leading dimensions are batches ---------------------------------------------------------------------------

namespace {
/// Results that the operator was not asked to fill are empty tensors, whatever the batch.
void give_leading(BatchCall& call, std::vector<IValue> results) {
  for (IValue& v : results)
    map_tensors(v, [&](const Tensor& t) {
      const bool batched = t.dim() > 0 && (t.size(0) == call.batch.size() || t.numel() > 0);
      return batched ? t : remove_batch_dim(t, call.batch.level(), call.batch.size(), 0);
    });
  call.give(std::move(results));
}

/// An example of too few dimensions would take the batch for one of them. The operator itself refuses one such example, or takes it.
void check_example(const BatchCall& call, int64_t dims, int64_t least) {
  if (dims >= least) return;
  Stack example(call.args);
  for (IValue& v : example)
    map_tensors(v, [](const Tensor& t) { return cresset::empty(t.sizes(), TensorOptions().dtype(t.scalar_type()).device(t.device())); });
  call.op.callBoxed(example);
}
}  // namespace

void leading_rule(BatchCall& call, int64_t least) {
  check_example(call, call.first_tensor().dim(), least);
  call.check_written(call.op.operator_name().base());
  call.map([&](const Tensor& t) { return call.batch.full(t); });
  give_leading(call, call.invoke());
}

void broadcast_rule(BatchCall& call, int64_t least) {
  int64_t rank = 0, smallest = least;
  for (const IValue& v : call.args)
    each_tensor(v, [&](const Tensor& t) { rank = std::max(rank, t.dim()), smallest = std::min(smallest, t.dim()); });
  check_example(call, smallest, least);
  call.map([&](const Tensor& t) { return call.batch.aligned(t, rank); });
  give_leading(call, call.invoke());
}

// --- operators on (N, C, …) -----------------------------------------------------------------------------------------------------

void fold_rule(BatchCall& call, int64_t inner) {
  const int64_t count = call.batch.size();
  const bool has_n = call.first_tensor().dim() > inner;
  const auto& parameters = call.schema.arguments();
  for (std::size_t i = 0; i < call.args.size(); ++i) {
    // The samples of fractional pooling have N even where the input has none.
    const bool merge = has_n || parameters[i].name == "random_samples";
    map_tensors(call.args[i], [&](const Tensor& t) {
      const Tensor full = call.batch.full(t);
      return merge && t.dim() > 0 ? merge_dims(full, 0) : full;
    });
  }
  for (const char* name : {"input_size", "input_sizes"})
    if (const int at = call.find(name); at >= 0) {
      IValue& v = call.args[static_cast<std::size_t>(at)];
      std::vector<int64_t> sizes = v.toIntVector();
      if (has_n && !sizes.empty()) sizes[0] *= count;
      v = IValue(sizes);
    }
  std::vector<IValue> results = call.invoke();
  if (has_n)
    for (IValue& v : results) map_tensors(v, [&](const Tensor& t) { return split_dim(t, 0, count); });
  call.give(std::move(results));
}

}  // namespace cresset::batching
