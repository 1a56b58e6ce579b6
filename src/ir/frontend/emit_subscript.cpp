// Subscripts, read and written. Indices of tensors become select, slice, unsqueeze and, for tensors among them, index or index_put_.
#include "ir/frontend/emitter.h"
#include "ir/frontend/values.h"

namespace cresset::jit {
namespace {

bool is_none(const Expr& e) { return e.kind == ExprKind::Constant && e.value.isNone(); }

}  // namespace

// The indices of x[i, j] and x[(i, j)]. slice(…) and Ellipsis are what the signs for them are.
std::vector<ExprPtr> Emitter::indices_of(const Expr& subscript) {
  const bool tuple = subscript.parts.size() == 2 && subscript.parts[1]->kind == ExprKind::Tuple;
  std::vector<ExprPtr> out = tuple ? subscript.parts[1]->parts : std::vector<ExprPtr>(subscript.parts.begin() + 1, subscript.parts.end());
  for (ExprPtr& i : out) {
    const bool call = i->kind == ExprKind::Call && i->parts[0]->kind == ExprKind::Name && i->keywords.empty();
    if (i->kind == ExprKind::Name && i->text == "Ellipsis" && !names_.lookup("Ellipsis")) {
      auto ellipsis = std::make_shared<Expr>(*i);
      ellipsis->kind = ExprKind::Ellipsis;
      i = std::move(ellipsis);
    } else if (call && i->parts[0]->text == "slice" && i->parts.size() >= 2 && i->parts.size() <= 4 && !names_.lookup("slice")) {
      auto slice = std::make_shared<Expr>(*i);
      slice->kind = ExprKind::Slice;
      slice->parts.erase(slice->parts.begin());
      if (slice->parts.size() == 1) slice->parts.insert(slice->parts.begin(), nullptr);  // slice(stop)
      slice->parts.resize(3);
      for (ExprPtr& bound : slice->parts)
        if (bound && is_none(*bound)) bound = nullptr;
      i = std::move(slice);
    } else if (i->kind == ExprKind::Name) {
      const Variable* known = names_.lookup(i->text);
      const auto bounds = known && known->thing ? bounds_of_slice(known->thing) : std::vector<SugaredValuePtr>();
      if (!bounds.empty()) i = slice_of(*i, bounds);
    }
  }
  return out;
}

// A slice that a name stands for, written out: its bounds get names of their own, which no program can write.
ExprPtr Emitter::slice_of(const Expr& name, const std::vector<SugaredValuePtr>& bounds) {
  auto slice = std::make_shared<Expr>(name);
  slice->kind = ExprKind::Slice;
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    auto bound = bounds[i] ? std::make_shared<Expr>(name) : nullptr;
    const Value* plain = bound ? bounds[i]->plainValue() : nullptr;
    if (const auto known = plain ? toIValue(plain) : std::nullopt) {
      bound->kind = ExprKind::Constant;
      bound->value = *known;
    } else if (bound) {
      bound->text = name.text + "." + std::to_string(i);
      names_.assign(name.range, bound->text, bounds[i]);
    }
    slice->parts.push_back(std::move(bound));
  }
  return slice;
}

SugaredValuePtr Emitter::subscript(const Expr& e, const TypePtr& hint) {
  const SugaredValuePtr base = sugared(e.parts[0]);
  Value* v = graph_value(e.range, base);
  const std::vector<ExprPtr> indices = indices_of(e);
  if (v && v->type()->kind == TypeKind::Tensor) {
    const auto [view, tensors] = view_of_tensor(e, v);
    if (tensors.empty()) return simple_value(view);
    return builtin(e.range, Symbol::aten("index"), {view, index_list(e.range, tensors)});
  }
  const bool slice = indices.size() == 1 && indices[0]->kind == ExprKind::Slice;
  if (!v && slice) return tuple_value(static_slice(e.range, base->asTuple(e.range, m_), *indices[0]));
  if (v && slice && v->type()->kind == TypeKind::Tuple) return tuple_slice(e, v, *indices[0]);
  if (v && slice) return simple_value(sliced(e.range, v, nullptr, *indices[0]));
  if (v && v->type()->kind == TypeKind::Tuple && indices.size() == 1) return tuple_index(e, v, value(indices[0]));
  if (e.parts.size() == 2) return base->getitem(e.range, m_, sugared(e.parts[1]), hint);
  if (v && v->type()->kind != TypeKind::Object && v->type()->kind != TypeKind::Dict)
    script_error(e.range,
                 "Only tensors support multi-dimensional indexing; a value of type '" + v->type()->annotation_str() + "' was given");
  return base->getitem(e.range, m_, tuple_of_indices(e), hint);
}

SugaredValuePtr Emitter::tuple_index(const Expr& e, Value* tuple, Value* index) {
  const std::vector<TypePtr>& members = tuple->type()->contained;
  if (index->type()->kind != TypeKind::Int) script_error(e.range, "tuple index must be an integer");
  const auto at = constant_as<int64_t>(index);
  const auto size = static_cast<int64_t>(members.size());
  if (!at) {
    for (const TypePtr& t : members)
      if (*t != *members[0])
        script_error(e.range, "Cannot index into a " + tuple->type()->annotation_str() +
                                  " with a non-integer literal because we cannot resolve the output type");
    if (members.empty()) script_error(e.range, "Cannot index into an empty tuple");
  } else if (*at < -size || *at >= size) {
    script_error(e.range, "Tuple index out of range. Tuple is length " + std::to_string(size) + " and index is " + std::to_string(*at));
  }
  const TypePtr type = at ? members[static_cast<std::size_t>(*at < 0 ? *at + size : *at)] : members[0];
  return simple_value(insert_node(m_, graph().createTupleIndex(tuple, index, type), e.range)->output());
}

// The positions that a slice of something with a known number of parts takes.
std::vector<std::size_t> Emitter::positions(const SourceRange& range, std::size_t size, const Expr& slice) {
  const auto bound = [&](std::size_t part) -> std::optional<int64_t> {
    if (!slice.parts[part] || is_none(*slice.parts[part])) return std::nullopt;
    const auto v = constant_as<int64_t>(value(slice.parts[part]));
    if (!v) script_error(range, "Slices of tuples need integer literals as bounds");
    return v;
  };
  const auto n = static_cast<int64_t>(size);
  const auto begin = bound(0), end = bound(1);
  const int64_t step = bound(2).value_or(1);
  if (step == 0) script_error(range, "slice step cannot be zero");
  const auto place = [&](int64_t i, int64_t low, int64_t high) { return std::min(std::max(i < 0 ? i + n : i, low), high); };
  std::vector<std::size_t> out;
  if (step > 0) {
    const int64_t last = end ? place(*end, 0, n) : n;
    for (int64_t i = begin ? place(*begin, 0, n) : 0; i < last; i += std::min(step, n + 1)) out.push_back(static_cast<std::size_t>(i));
  } else {
    const int64_t last = end ? place(*end, -1, n - 1) : -1;
    for (int64_t i = begin ? place(*begin, -1, n - 1) : n - 1; i > last; i += std::max(step, -n - 1))
      out.push_back(static_cast<std::size_t>(i));
  }
  return out;
}

std::vector<SugaredValuePtr> Emitter::static_slice(const SourceRange& range, const std::vector<SugaredValuePtr>& parts, const Expr& slice) {
  std::vector<SugaredValuePtr> out;
  for (const std::size_t i : positions(range, parts.size(), slice)) out.push_back(parts[i]);
  return out;
}

SugaredValuePtr Emitter::tuple_slice(const Expr& e, Value* tuple, const Expr& slice) {
  std::vector<Value*> members;
  for (const std::size_t i : positions(e.range, tuple->type()->contained.size(), slice)) {
    Value* index = constant(IValue(static_cast<int64_t>(i)), e.range);
    members.push_back(insert_node(m_, graph().createTupleIndex(tuple, index, tuple->type()->contained[i]), e.range)->output());
  }
  return simple_value(insert_node(m_, graph().createTuple(members), e.range)->output());
}

Value* Emitter::sliced(const SourceRange& range, Value* v, Value* dim, const Expr& slice) {
  std::vector<Value*> args = {v};
  if (dim) args.push_back(dim);
  for (std::size_t part = 0; part < 2; ++part) args.push_back(slice.parts[part] ? value(slice.parts[part]) : constant(IValue(), range));
  args.push_back(slice.parts[2] ? value(slice.parts[2]) : constant(IValue(int64_t{1}), range));
  return builtin(range, Symbol::aten("slice"), args)->asValue(range, m_);
}

std::pair<Value*, std::vector<Value*>> Emitter::view_of_tensor(const Expr& e, Value* tensor) {
  const std::vector<ExprPtr> indices = indices_of(e);
  std::size_t left = 0;  // indices from here on that stand for a dimension
  for (const ExprPtr& i : indices) left += !is_none(*i) && i->kind != ExprKind::Ellipsis;
  bool behind_ellipsis = false;
  int64_t dim = 0;
  std::vector<Value*> tensors;
  for (const ExprPtr& i : indices) {
    // Behind an ellipsis dimensions count from the end.
    const auto at = [&](int64_t extra) { return constant(IValue(behind_ellipsis ? -static_cast<int64_t>(left) - extra : dim), e.range); };
    if (i->kind == ExprKind::Ellipsis) {
      if (behind_ellipsis) script_error(e.range, "an index can only have a single ellipsis ('...')");
      behind_ellipsis = true;
      continue;
    }
    if (i->kind == ExprKind::Slice) {
      tensor = sliced(i->range, tensor, at(0), *i);
      ++dim;
      --left;
      continue;
    }
    Value* index = value(i);
    const TypeKind kind = index->type()->kind;
    if (kind == TypeKind::None) {
      if (!is_none(*i)) --left;
      tensor = builtin(e.range, Symbol::aten("unsqueeze"), {tensor, at(1)})->asValue(e.range, m_);
      ++dim;
      continue;
    }
    if (kind == TypeKind::Int) {
      Value* where = at(0);
      tensor = builtin(e.range, Symbol::aten("select"), {tensor, where, index})->asValue(e.range, m_);
      --left;
      continue;
    }
    if (kind == TypeKind::List)
      index = graph().insert(Symbol::aten("tensor"), {index}, {{"dtype", IValue(static_cast<int64_t>(ScalarType::Long))}}, i->range);
    const TypePtr type = index->type()->kind == TypeKind::Optional ? index->type()->element() : index->type();
    if (type->kind != TypeKind::Tensor)
      script_error(e.range, "Unsupported operation: indexing tensor with unsupported index type '" + index->type()->annotation_str() +
                                "'. Only ints, slices, lists and tensors are supported");
    if (behind_ellipsis) script_error(e.range, "Ellipses followed by tensor indexing is currently not supported");
    tensors.resize(static_cast<std::size_t>(dim) + 1);
    tensors[static_cast<std::size_t>(dim)] = index;
    ++dim;
    --left;
  }
  return {tensor, tensors};
}

Value* Emitter::index_list(const SourceRange& range, const std::vector<Value*>& tensors) {
  std::vector<Value*> members;
  for (Value* t : tensors) members.push_back(t ? t : constant(IValue(), range));
  return insert_node(m_, graph().createList(optional_of(TensorType::get()), members), range)->output();
}

// A number that goes into a tensor takes its dtype and device.
Value* Emitter::tensor_like(const SourceRange& range, Value* v, Value* tensor) {
  if (v->type()->kind == TypeKind::Tensor) return v;
  Value* dtype = builtin(range, prim::dtype, {tensor})->asValue(range, m_);
  Value* device = builtin(range, prim::device, {tensor})->asValue(range, m_);
  return graph().insert(Symbol::aten("tensor"), {v}, {{"dtype", dtype}, {"device", device}}, range);
}

void Emitter::assign_subscript(const Expr& target, Value* v, const SourceRange& range) {
  const SugaredValuePtr base = sugared(target.parts[0]);
  Value* container = base->asValue(target.range, m_);
  if (container->type()->kind == TypeKind::Tensor) {
    const auto [view, tensors] = view_of_tensor(target, container);
    v = tensor_like(range, v, view);
    if (tensors.empty())
      graph().insert(Symbol::aten("copy_"), {view, v}, {}, range);
    else
      graph().insert(Symbol::aten("index_put_"), {view, index_list(target.range, tensors), v}, {}, range);
    return;
  }
  if (target.parts.size() == 2 && indices_of(target)[0]->kind == ExprKind::Slice)
    script_error(target.range, "Sliced expression not yet supported for subscripted assignment. Assign the elements");
  const SugaredValuePtr index = target.parts.size() == 2 ? sugared(target.parts[1]) : tuple_of_indices(target);
  if (container->type()->kind == TypeKind::Object) {
    base->attr(range, m_, "__setitem__")->call(range, m_, {{range, index, {}}, {range, simple_value(v), {}}}, {}, 0);
    return;
  }
  const TypePtr& type = container->type();
  if (type->kind == TypeKind::Tuple) script_error(range, type->annotation_str() + " does not support subscripted assignment");
  if (type->kind == TypeKind::List) v = converted(range, v, type->element());
  if (type->kind == TypeKind::Dict) v = converted(range, v, type->contained[1]);
  builtin_function(Symbol::aten("_set_item"))
      ->call(range, m_, {{range, simple_value(container), {}}, {range, index, {}}, {range, simple_value(v), {}}}, {}, 0);
}

SugaredValuePtr Emitter::tuple_of_indices(const Expr& e) {
  std::vector<SugaredValuePtr> parts;
  for (const ExprPtr& i : indices_of(e)) parts.push_back(sugared(i));
  return tuple_value(std::move(parts));
}

void Emitter::augmented_subscript(const Stmt& s) {
  const Expr& target = *s.targets[0];
  const SugaredValuePtr base = sugared(target.parts[0]);
  Value* container = base->asValue(target.range, m_);
  bool in_place = false;
  if (container->type()->kind == TypeKind::Tuple)
    script_error(s.range, "'" + container->type()->annotation_str() + "' does not support augmented assignment to its items");
  if (container->type()->kind == TypeKind::Tensor) {
    const auto [view, tensors] = view_of_tensor(target, container);
    if (tensors.empty()) {
      Value* result = augmented(s.text, s.range, simple_value(view), value(s.value), in_place);
      if (!in_place) graph().insert(Symbol::aten("copy_"), {view, result}, {}, s.range);
      return;
    }
    Value* list = index_list(target.range, tensors);
    Value* old = builtin(target.range, Symbol::aten("index"), {view, list})->asValue(target.range, m_);
    Value* result = augmented(s.text, s.range, simple_value(old), value(s.value), in_place);
    graph().insert(Symbol::aten("index_put_"), {view, list, result}, {}, s.range);
    return;
  }
  const SugaredValuePtr index = target.parts.size() == 2 ? sugared(target.parts[1]) : tuple_of_indices(target);
  const SugaredValuePtr old = base->getitem(target.range, m_, index);
  Value* result = augmented(s.text, s.range, old, value(s.value), in_place);
  if (container->type()->kind == TypeKind::Object)
    base->attr(s.range, m_, "__setitem__")->call(s.range, m_, {{s.range, index, {}}, {s.range, simple_value(result), {}}}, {}, 0);
  else
    builtin_function(Symbol::aten("_set_item"))
        ->call(s.range, m_, {{s.range, simple_value(container), {}}, {s.range, index, {}}, {s.range, simple_value(result), {}}}, {}, 0);
}

}  // namespace cresset::jit
