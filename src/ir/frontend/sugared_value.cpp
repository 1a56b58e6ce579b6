// What things of the compiler cannot do by default, and those that are only parts, constants or types.
#include "ir/frontend/sugared_value.h"

#include "ir/frontend/call_matching.h"

namespace cresset::jit {

const TypePtr& inferred_tensor() {
  static const TypePtr type = TensorType::get()->copy();
  return type;
}
std::string type_words(const TypePtr& t) { return t->annotation_str() + (t == inferred_tensor() ? " (inferred)" : ""); }
std::string inferred_words(const std::string& what) {
  return "Inferred " + what + " to be of type 'Tensor' because it was not annotated with an explicit type.";
}

Value* SugaredValue::asValue(const SourceRange& range, GraphFunction&) { script_error(range, kind() + " cannot be used as a value"); }
SugaredValuePtr SugaredValue::attr(const SourceRange& range, GraphFunction&, const std::string&) {
  script_error(range, "attribute lookup is not defined on " + kind());
}
bool SugaredValue::hasAttr(const SourceRange& range, GraphFunction&, const std::string&) {
  script_error(range, "hasattr's first argument must be an object or NamedTuple, got " + kind() + " instead");
}
void SugaredValue::setAttr(const SourceRange& range, GraphFunction&, const std::string&, Value*) {
  script_error(range, "attribute assignment is not defined on " + kind());
}
SugaredValuePtr SugaredValue::call(const SourceRange& range, GraphFunction&, const std::vector<CallArgument>&,
                                   const std::vector<CallArgument>&, std::size_t) {
  script_error(range, "cannot call a " + kind());
}
SugaredValuePtr SugaredValue::getitem(const SourceRange& range, GraphFunction&, const SugaredValuePtr&, const TypePtr&) {
  script_error(range, "'" + kind() + "' object is not subscriptable");
}
std::vector<SugaredValuePtr> SugaredValue::asTuple(const SourceRange& range, GraphFunction&, std::optional<std::size_t>) {
  script_error(range, kind() + " cannot be used as a tuple");
}
SugaredValuePtr SugaredValue::iter(const SourceRange& range, GraphFunction&) {
  script_error(range, "'" + kind() + "' object is not iterable");
}
Value* SugaredValue::len(const SourceRange& range, GraphFunction& m) {
  if (const auto n = staticLen()) return m.graph()->insertConstant(IValue(static_cast<int64_t>(*n)), range);
  script_error(range, "'" + kind() + "' object has no len()");
}
SugaredValuePtr SugaredValue::enter(const SourceRange& range, GraphFunction& m) {
  return attr(range, m, "__enter__")->call(range, m, {}, {}, 1);
}
void SugaredValue::exit(const SourceRange& range, GraphFunction& m) {
  const CallArgument none{range, constant_value(IValue()), ""};
  attr(range, m, "__exit__")->call(range, m, {none, none, none}, {}, 1);
}

namespace {

class ConstantValue final : public SugaredValue {
 public:
  explicit ConstantValue(IValue v) : value_(std::move(v)) {}
  std::string kind() const override { return "value of type '" + value_.type()->annotation_str() + "'"; }
  std::optional<IValue> asConstant() const override { return value_; }
  TypePtr asType() const override { return value_.isNone() ? basic_type(TypeKind::None) : nullptr; }
  Value* asValue(const SourceRange& range, GraphFunction& m) override {
    const auto v = tryInsertConstant(*m.graph(), value_);
    if (!v) script_error(range, "a value of type '" + value_.type()->annotation_str() + "' cannot be a constant of a script");
    (*v)->node()->setSourceRange(range);
    return *v;
  }
  // Everything else is what the value can do.
  SugaredValuePtr attr(const SourceRange& range, GraphFunction& m, const std::string& field) override {
    return value(range, m)->attr(range, m, field);
  }
  bool hasAttr(const SourceRange& range, GraphFunction& m, const std::string& field) override {
    return value(range, m)->hasAttr(range, m, field);
  }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& m, const std::vector<CallArgument>& args,
                       const std::vector<CallArgument>& kwargs, std::size_t results) override {
    return value(range, m)->call(range, m, args, kwargs, results);
  }
  SugaredValuePtr getitem(const SourceRange& range, GraphFunction& m, const SugaredValuePtr& index, const TypePtr& hint) override {
    return value(range, m)->getitem(range, m, index, hint);
  }
  std::vector<SugaredValuePtr> asTuple(const SourceRange& range, GraphFunction& m, std::optional<std::size_t> size) override {
    if (!value_.isTuple()) return value(range, m)->asTuple(range, m, size);
    std::vector<SugaredValuePtr> parts;
    for (const IValue& v : value_.toTupleElements()) parts.push_back(constant_value(v));
    return parts;
  }
  std::optional<std::size_t> staticLen() const override {
    return value_.isTuple() ? std::optional(value_.toTupleElements().size()) : std::nullopt;
  }
  SugaredValuePtr iter(const SourceRange& range, GraphFunction& m) override {
    return value_.isTuple() ? shared_from_this() : value(range, m)->iter(range, m);
  }
  Value* len(const SourceRange& range, GraphFunction& m) override { return value(range, m)->len(range, m); }

 private:
  SugaredValuePtr value(const SourceRange& range, GraphFunction& m) { return simple_value(asValue(range, m)); }
  IValue value_;
};

class TupleValue final : public SugaredValue {
 public:
  explicit TupleValue(std::vector<SugaredValuePtr> parts) : parts_(std::move(parts)) {}
  std::string kind() const override { return "tuple"; }
  Value* asValue(const SourceRange& range, GraphFunction& m) override {
    std::vector<Value*> members;
    for (const SugaredValuePtr& p : parts_) members.push_back(p->asValue(range, m));
    Graph& g = *m.graph();
    return g.insertNode(g.createTuple(members))->setSourceRange(range)->output();
  }
  std::vector<SugaredValuePtr> asTuple(const SourceRange& range, GraphFunction&, std::optional<std::size_t> size) override {
    if (size && *size != parts_.size())
      script_error(range, parts_.size() < *size
                              ? "need " + std::to_string(*size) + " values to unpack but found only " + std::to_string(parts_.size())
                              : "too many values to unpack: need " + std::to_string(*size) + " but found " + std::to_string(parts_.size()));
    return parts_;
  }
  SugaredValuePtr iter(const SourceRange&, GraphFunction&) override { return shared_from_this(); }
  std::optional<std::size_t> staticLen() const override { return parts_.size(); }
  SugaredValuePtr attr(const SourceRange& range, GraphFunction& m, const std::string& field) override {
    return simple_value(asValue(range, m))->attr(range, m, field);
  }
  SugaredValuePtr getitem(const SourceRange& range, GraphFunction& m, const SugaredValuePtr& index, const TypePtr& hint) override {
    const auto constant = index->asConstant();
    if (!constant || !constant->isInt()) return simple_value(asValue(range, m))->getitem(range, m, index, hint);
    const int64_t size = static_cast<int64_t>(parts_.size()), i = constant->toInt() < 0 ? constant->toInt() + size : constant->toInt();
    if (i < 0 || i >= size)
      script_error(
          range, "Tuple index out of range: index is " + std::to_string(constant->toInt()) + " and the length is " + std::to_string(size));
    return parts_[static_cast<std::size_t>(i)];
  }

 private:
  std::vector<SugaredValuePtr> parts_;
};

}  // namespace

SugaredValuePtr constant_value(IValue v) { return std::make_shared<ConstantValue>(std::move(v)); }
SugaredValuePtr tuple_value(std::vector<SugaredValuePtr> parts) { return std::make_shared<TupleValue>(std::move(parts)); }

}  // namespace cresset::jit
