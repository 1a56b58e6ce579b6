// range, enumerate, zip and reversed: things with len and getitem, for loops and comprehensions.
#include "ir/frontend/values.h"

namespace cresset::jit {
namespace {

// Argument number `at` of range or enumerate.
Value* as_int(const SourceRange& range, GraphFunction& m, const CallArgument& a, const char* of, std::size_t at) {
  Value* v = a.value->asValue(a.range, m);
  Value* number = convert_to(a.range, *m.graph(), v, basic_type(TypeKind::Int));
  if (!number)
    script_error(range, std::string("all inputs of ") + of + " must be ints, found " + v->type()->annotation_str() + " in argument " +
                            std::to_string(at));
  return number;
}

class RangeValue final : public SugaredValue {
 public:
  RangeValue(const SourceRange& range, GraphFunction& m, const std::vector<CallArgument>& args) {
    if (args.empty()) script_error(range, "range expected at least 1 arguments, got 0");
    if (args.size() > 3) script_error(range, "range expected at most 3 arguments, got " + std::to_string(args.size()));
    std::vector<Value*> v;
    for (const CallArgument& a : args) v.push_back(as_int(range, m, a, "range", v.size()));
    if (v.size() == 1) {
      stop_ = v[0];
      return;
    }
    start_ = v[0];
    stop_ = v[1];
    step_ = v.size() == 3 ? v[2] : int_constant(range, m, 1);
  }
  std::string kind() const override { return "range"; }
  SugaredValuePtr iter(const SourceRange&, GraphFunction&) override { return shared_from_this(); }
  // range(n) runs as often as a loop with this trip count, also below zero.
  Value* len(const SourceRange& range, GraphFunction& m) override { return start_ ? exact_len(range, m) : stop_; }
  Value* exact_len(const SourceRange& range, GraphFunction& m) {
    Value* start = start_ ? start_ : int_constant(range, m, 0);
    Value* step = step_ ? step_ : int_constant(range, m, 1);
    return operator_result(range, m, Symbol::aten("__range_length"), {start, stop_, step})->asValue(range, m);
  }
  SugaredValuePtr getitem(const SourceRange& range, GraphFunction& m, const SugaredValuePtr& index, const TypePtr&) override {
    if (!start_) return index;
    return operator_result(range, m, Symbol::aten("__derive_index"), {index->asValue(range, m), start_, step_});
  }
  /// Beside things of known length a range of constants is one too.
  std::optional<std::size_t> constant_len() const {
    const auto stop = constant_as<int64_t>(stop_);
    if (start_ || !stop) return std::nullopt;
    return static_cast<std::size_t>(std::max<int64_t>(*stop, 0));
  }

 private:
  Value *start_ = nullptr, *stop_ = nullptr, *step_ = nullptr;
};

/// The numbers of enumerate; it has no end.
class Counter final : public SugaredValue {
 public:
  explicit Counter(Value* start) : start_(start) {}
  std::string kind() const override { return "enumerate"; }
  SugaredValuePtr getitem(const SourceRange& range, GraphFunction& m, const SugaredValuePtr& index, const TypePtr&) override {
    return start_ ? operator_result(range, m, Symbol::aten("add"), {index->asValue(range, m), start_}) : index;
  }

 private:
  Value* start_;
};

/// Several iterables side by side.
class ZipValue final : public SugaredValue {
 public:
  ZipValue(const SourceRange& range, std::string name, std::vector<SugaredValuePtr> children)
      : name_(std::move(name)), children_(std::move(children)) {
    bool some_unknown = false;
    for (const SugaredValuePtr& c : children_) {
      if (const auto n = c->staticLen())
        size_ = std::min(size_.value_or(*n), *n);
      else
        some_unknown = some_unknown || (!is_counter(c) && !is_constant_range(c));
    }
    if (!size_) return;
    if (some_unknown)
      script_error(range, "Can not iterate over a module list or tuple with a value that does not have a statically determinable length");
    for (const SugaredValuePtr& c : children_)
      if (const auto* r = dynamic_cast<const RangeValue*>(c.get())) size_ = std::min(*size_, *r->constant_len());
  }
  std::string kind() const override { return name_; }
  SugaredValuePtr iter(const SourceRange&, GraphFunction&) override { return shared_from_this(); }
  std::optional<std::size_t> staticLen() const override { return size_; }
  Value* len(const SourceRange& range, GraphFunction& m) override {
    if (size_) return int_constant(range, m, static_cast<int64_t>(*size_));
    std::vector<Value*> lengths;
    for (const SugaredValuePtr& c : children_)
      if (!is_counter(c)) lengths.push_back(c->len(range, m));
    if (lengths.size() == 1) return lengths[0];
    Graph& g = *m.graph();
    Value* list = g.insertNode(g.createList(basic_type(TypeKind::Int), lengths))->setSourceRange(range)->output();
    return operator_result(range, m, prim::min, {list})->asValue(range, m);
  }
  SugaredValuePtr getitem(const SourceRange& range, GraphFunction& m, const SugaredValuePtr& index, const TypePtr&) override {
    std::vector<SugaredValuePtr> parts;
    for (const SugaredValuePtr& c : children_) parts.push_back(c->getitem(range, m, index));
    return tuple_value(std::move(parts));
  }
  std::vector<SugaredValuePtr> asTuple(const SourceRange& range, GraphFunction& m, std::optional<std::size_t>) override {
    if (!size_) script_error(range, name_ + " cannot be used as a tuple: its length is not known while compiling");
    std::vector<SugaredValuePtr> parts;
    for (std::size_t i = 0; i < *size_; ++i) parts.push_back(getitem(range, m, constant_value(IValue(static_cast<int64_t>(i))), nullptr));
    return parts;
  }

 private:
  static bool is_counter(const SugaredValuePtr& v) { return dynamic_cast<const Counter*>(v.get()) != nullptr; }
  static bool is_constant_range(const SugaredValuePtr& v) {
    const auto* r = dynamic_cast<const RangeValue*>(v.get());
    return r && r->constant_len();
  }
  std::string name_;
  std::vector<SugaredValuePtr> children_;
  std::optional<std::size_t> size_;
};

class ReversedValue final : public SugaredValue {
 public:
  ReversedValue(SugaredValuePtr base, Value* length) : base_(std::move(base)), length_(length) {}
  std::string kind() const override { return "reversed"; }
  SugaredValuePtr iter(const SourceRange&, GraphFunction&) override { return shared_from_this(); }
  Value* len(const SourceRange&, GraphFunction&) override { return length_; }
  SugaredValuePtr getitem(const SourceRange& range, GraphFunction& m, const SugaredValuePtr& index, const TypePtr&) override {
    Value* last = operator_result(range, m, Symbol::aten("sub"), {length_, int_constant(range, m, 1)})->asValue(range, m);
    return base_->getitem(range, m, operator_result(range, m, Symbol::aten("sub"), {last, index->asValue(range, m)}));
  }

 private:
  SugaredValuePtr base_;
  Value* length_;
};

// A loop over all elements; `body` gets each.
void each(const SourceRange& range, GraphFunction& m, const SugaredValuePtr& iterable,
          const std::function<void(const SugaredValuePtr&)>& body) {
  Graph& g = *m.graph();
  Value* trips = iterable->len(range, m);
  Value* always = g.insertConstant(IValue(true), range);
  Node* loop = g.insertNode(g.create(prim::Loop, {trips, always}, 0))->setSourceRange(range);
  Block* block = loop->addBlock();
  Value* index = block->addInput()->setType(basic_type(TypeKind::Int));
  const WithInsertPoint here(block);
  body(iterable->getitem(range, m, simple_value(index)));
  block->registerOutput(always);
}

}  // namespace

namespace {
class SliceValue final : public SugaredValue {
 public:
  explicit SliceValue(std::vector<SugaredValuePtr> bounds) : bounds(std::move(bounds)) {}
  std::string kind() const override { return "slice"; }
  const std::vector<SugaredValuePtr> bounds;
};
}  // namespace

SugaredValuePtr slice_value(const SourceRange& range, GraphFunction& m, const std::vector<CallArgument>& args,
                            const std::vector<CallArgument>& kwargs) {
  if (!kwargs.empty()) script_error(range, "Slice does not accept any keyword arguments");
  if (args.empty() || args.size() > 3) script_error(range, "slice expected 1 to 3 arguments, got " + std::to_string(args.size()));
  std::vector<SugaredValuePtr> bounds;
  for (const CallArgument& a : args) bounds.push_back(a.value->asValue(a.range, m)->mustBeNone() ? nullptr : a.value);
  if (bounds.size() == 1) bounds.insert(bounds.begin(), nullptr);  // slice(stop)
  bounds.resize(3);
  return std::make_shared<SliceValue>(std::move(bounds));
}

std::vector<SugaredValuePtr> bounds_of_slice(const SugaredValuePtr& v) {
  const auto* slice = dynamic_cast<const SliceValue*>(v.get());
  return slice ? slice->bounds : std::vector<SugaredValuePtr>();
}

Value* length_of(const SourceRange& range, GraphFunction& m, const SugaredValuePtr& v) {
  if (auto* r = dynamic_cast<RangeValue*>(v.get())) return r->exact_len(range, m);
  return v->len(range, m);
}

SugaredValuePtr range_value(const SourceRange& range, GraphFunction& m, const std::vector<CallArgument>& args) {
  return std::make_shared<RangeValue>(range, m, args);
}

SugaredValuePtr zip_value(const SourceRange& range, GraphFunction& m, const std::vector<CallArgument>& args) {
  if (args.empty()) script_error(range, "zip expected at least 1 arguments, got 0");
  std::vector<SugaredValuePtr> children;
  for (const CallArgument& a : args) children.push_back(a.value->iter(a.range, m));
  return std::make_shared<ZipValue>(range, "zip", std::move(children));
}

SugaredValuePtr enumerate_value(const SourceRange& range, GraphFunction& m, const std::vector<CallArgument>& args,
                                const std::vector<CallArgument>& kwargs) {
  if (args.empty()) script_error(range, "enumerate expected at least 1 arguments, got 0");
  const bool named_start = kwargs.size() == 1 && kwargs[0].name == "start" && args.size() == 1;
  if (args.size() > 2) script_error(range, "enumerate expected at most 2 arguments, got " + std::to_string(args.size()));
  if (!kwargs.empty() && !named_start)
    script_error(range, "enumerate expected an iterable and a start, got " + std::to_string(args.size() + kwargs.size()) + " arguments");
  Value* start = args.size() == 2 ? as_int(range, m, args[1], "enumerate", 1)
                 : named_start    ? as_int(range, m, kwargs[0], "enumerate", 1)
                                  : nullptr;
  if (start && constant_as<int64_t>(start) == 0) start = nullptr;
  return std::make_shared<ZipValue>(range, "enumerate",
                                    std::vector<SugaredValuePtr>{std::make_shared<Counter>(start), args[0].value->iter(args[0].range, m)});
}

SugaredValuePtr reversed_value(const SourceRange& range, GraphFunction& m, const CallArgument& arg) {
  const SugaredValuePtr base = arg.value->iter(arg.range, m);
  if (base->staticLen()) {
    std::vector<SugaredValuePtr> parts = base->asTuple(range, m);
    return tuple_value({parts.rbegin(), parts.rend()});
  }
  return std::make_shared<ReversedValue>(base, length_of(range, m, base));
}

Value* list_of_iterable(const SourceRange& range, GraphFunction& m, const SugaredValuePtr& iterable) {
  Graph& g = *m.graph();
  if (const Value* plain = iterable->plainValue();
      plain && (plain->type()->kind == TypeKind::List || plain->type()->kind == TypeKind::String))
    return operator_result(range, m, Symbol::aten("list"), {iterable->asValue(range, m)})->asValue(range, m);
  const SugaredValuePtr things = iterable->iter(range, m);
  if (things->staticLen()) {
    std::vector<Value*> members;
    TypePtr element;
    for (const SugaredValuePtr& part : things->asTuple(range, m)) {
      members.push_back(part->asValue(range, m));
      element = element ? unify_types(element, members.back()->type()) : members.back()->type();
      if (!element)
        script_error(range, "the elements of a list must have one type; '" + members.back()->type()->annotation_str() + "' differs");
    }
    return g.insertNode(g.createList(element ? element : basic_type(TypeKind::Tensor), members))->setSourceRange(range)->output();
  }
  Value* list = g.insertNode(g.createList(basic_type(TypeKind::Tensor), {}))->setSourceRange(range)->output();
  each(range, m, things, [&](const SugaredValuePtr& item) {
    Value* v = item->asValue(range, m);
    list->setType(list_of(v->type()));
    insert_node(range, g, aten::append, {list, v}, list->type());
  });
  return list;
}

Value* dict_of_iterable(const SourceRange& range, GraphFunction& m, const SugaredValuePtr& iterable) {
  Graph& g = *m.graph();
  const auto pair_of = [&](const SugaredValuePtr& item) {
    std::vector<Value*> pair;
    for (const SugaredValuePtr& part : item->asTuple(range, m, 2)) pair.push_back(part->asValue(range, m));
    if (pair.size() != 2)
      script_error(range, "dict: pairs of keys and values were required; a tuple of " + std::to_string(pair.size()) + " was given");
    return pair;
  };
  const SugaredValuePtr things = iterable->iter(range, m);
  if (things->staticLen()) {
    std::vector<Value*> keys, values;
    for (const SugaredValuePtr& part : things->asTuple(range, m)) {
      const std::vector<Value*> pair = pair_of(part);
      keys.push_back(pair[0]);
      values.push_back(pair[1]);
    }
    const TypePtr key = keys.empty() ? basic_type(TypeKind::String) : keys[0]->type();
    const TypePtr value = values.empty() ? basic_type(TypeKind::Tensor) : values[0]->type();
    return g.insertNode(g.createDict(key, value, keys, values))->setSourceRange(range)->output();
  }
  Value* dict =
      g.insertNode(g.createDict(basic_type(TypeKind::String), basic_type(TypeKind::Tensor), {}, {}))->setSourceRange(range)->output();
  each(range, m, things, [&](const SugaredValuePtr& item) {
    const std::vector<Value*> pair = pair_of(item);
    if (pair[0]->type()->kind == TypeKind::Union)
      script_error(range, "Dicts may only contain homogeneous keys, but the type of the first generated key was " +
                              pair[0]->type()->annotation_str());
    dict->setType(dict_of(pair[0]->type(), pair[1]->type()));
    g.insertNode(g.create(Symbol::aten("_set_item"), {dict, pair[0], pair[1]}, 0))->setSourceRange(range);
  });
  return dict;
}

}  // namespace cresset::jit
