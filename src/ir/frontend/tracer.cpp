// Tracing: the map from tensors to values, and the kernel of the key Tracer that records operators.
#include <cresset/ir/tracer.h>

#include <algorithm>
#include <array>

#include <cresset/dispatch/library.h>
#include <cresset/ir/pass.h>

#include "core/traced_alias.h"
#include "ir/frontend/call_matching.h"
#include "ir/rewrite/type_facts.h"

namespace cresset::jit::tracer {

namespace {

thread_local constinit std::shared_ptr<TracingState>* state_of_thread = nullptr;  // on the heap: thread-local storage is scarce

SourceRange (*source_range_provider)() = nullptr;
std::string (*name_provider)(const Tensor&) = nullptr;
void (*warning_provider)(const char*) = nullptr;
SourceRange source_range() { return source_range_provider ? source_range_provider() : SourceRange(); }

std::string text_of(const IValue& v) {
  constexpr std::size_t kMost = 1000;
  std::string text = to_string(v);
  return text.size() > kMost ? text.substr(0, kMost) + "..." : text;
}

const TypePtr& plain_tensor() {
  static const TypePtr type = TensorType::get();
  return type;
}

bool holds_tensors(const Type& type) {
  if (type.kind == TypeKind::Tensor) return true;
  return std::any_of(type.contained.begin(), type.contained.end(), [](const TypePtr& t) { return holds_tensors(*t); });
}

}  // namespace

TypePtr without_shapes(const TypePtr& type) { return without_facts(type); }

// ---- the state

TracingState::TracingState(intrusive_ptr<ivalue::Object> self) : graph(std::make_shared<Graph>()), self_(std::move(self)) {
  if (!self_) return;
  Value* v = graph->addInput("self");
  v->setType(self_->type);
  attribute_values_.emplace("", v);
  AttributePath path;
  note_attributes(self_, path);
}
TracingState::~TracingState() = default;

// An attribute met by two paths keeps the first one.
void TracingState::note_attributes(const intrusive_ptr<ivalue::Object>& object, AttributePath& path) {
  constexpr std::size_t kDeepest = 1000;
  CRESSET_CHECK(path.size() < kDeepest, "trace: modules nested less than ", kDeepest, " deep were required.");
  if (!modules_.emplace(object.get(), path).second) return;
  const auto cls = object->type->expect<ClassType>();
  for (std::size_t i = 0; i < std::min(object->slots.size(), cls->numAttributes()); ++i) {
    const IValue& v = object->slot(i);
    path.push_back(cls->attributes()[i].name);
    if (v.isTensor() && v.toTensor().defined()) attributes_.emplace(v.toTensor().unsafeGetTensorImpl(), path);
    if (v.isScriptObject()) note_attributes(v.toObject(), path);
    path.pop_back();
  }
}

Node* TracingState::create(Symbol kind, const std::vector<Value*>& inputs, std::size_t outputs) {
  Node* n = graph->create(kind, inputs, outputs);
  n->setSourceRange(source_range());
  n->setScope(graph->current_scope());
  return graph->insertNode(n);
}

Value* TracingState::constant(const IValue& v, const TypePtr& type) {
  if (v.isTensor())
    CRESSET_CHECK(!v.toTensor().requires_grad(),
                  "Cannot insert a Tensor that requires grad as a constant. Consider making it a parameter or input, or detaching the "
                  "gradient\nTensor:\n",
                  text_of(v));
  const auto out = tryInsertConstant(*graph, v, type);
  CRESSET_CHECK(out, "Tracer cannot make a constant of a ", v.tagKind(), ".");
  (*out)->node()->setSourceRange(source_range());
  (*out)->node()->setScope(graph->current_scope());
  return *out;
}

Value* TracingState::list_of_values(TypePtr element, const std::vector<Value*>& members) {
  Node* n = create(prim::ListConstruct, members);
  n->output()->setType(list_of(std::move(element)));
  return n->output();
}

const TensorImpl* TracingState::original(const TensorImpl* t) const {
  for (auto at = aliases_.find(t); at != aliases_.end() && !known_.contains(t); at = aliases_.find(t)) t = at->second.of;
  return t;
}

Value* TracingState::find(const Tensor& t) const {
  const auto found = known_.find(original(t.unsafeGetTensorImpl()));
  return found == known_.end() ? nullptr : found->second.value;
}

void TracingState::bind_alias(const Tensor& known, const Tensor& alias) {
  const TensorImpl *of = known.unsafeGetTensorImpl(), *t = alias.unsafeGetTensorImpl();
  if (of == t || original(of) == t) return;
  if (Value* value = find(known)) {
    known_[t] = {weak_intrusive_ptr<TensorImpl>(alias.getIntrusivePtr()), value};
    return;
  }
  // An attribute that nothing has asked for, or the result of an operator that runs.
  known_.erase(t);
  aliases_[t] = {weak_intrusive_ptr<TensorImpl>(alias.getIntrusivePtr()), weak_intrusive_ptr<TensorImpl>(known.getIntrusivePtr()), of};
}

Value* TracingState::attribute(const AttributePath& path) {
  std::string name;
  Value* object = attribute_values_.at("");
  for (const std::string& part : path) {
    name += name.empty() ? part : "." + part;
    Value*& v = attribute_values_[name];
    if (!v) {
      Node* n = graph->createGetAttr(object, part)->setScope(nullptr);
      n->insertAfter(attributes_end_ ? attributes_end_ : graph->param_node());
      attributes_end_ = n;
      v = n->output();
      if (v->type()->kind == TypeKind::Tensor) v->setType(plain_tensor());
      v->setDebugName(Value::isValidName(part) ? part : "_" + part);
    }
    object = v;
  }
  return object;
}

Value* TracingState::value_of(const IValue& v, const TypePtr& type) {
  switch (v.tag()) {
    case IValue::Tag::Tensor: {
      const Tensor& t = v.toTensor();
      if (!t.defined()) return constant(IValue());
      if (Value* known = find(t)) {
        if (names_values && name_provider && !known->hasDebugName())
          if (const std::string name = name_provider(t); Value::isValidName(name)) known->setDebugName(name);
        return known;
      }
      const auto at = attributes_.find(original(t.unsafeGetTensorImpl()));
      Value* out = at == attributes_.end() ? constant(v) : attribute(at->second);
      known_[t.unsafeGetTensorImpl()] = {weak_intrusive_ptr<TensorImpl>(t.getIntrusivePtr()), out};
      return out;
    }
    case IValue::Tag::List: {
      const auto& list = v.toListRef();
      TypePtr element = type && type->kind == TypeKind::List ? type->element() : v.type()->element();
      const bool plain =
          !list.empty() && !list[0].isInt() && !list[0].isDouble() && !holds_tensors(*element) && element->kind != TypeKind::Any;
      if (plain || (list.empty() && !holds_tensors(*element) && element->kind != TypeKind::Int && element->kind != TypeKind::SymInt))
        return constant(v);
      std::vector<Value*> members;
      for (const IValue& e : list) members.push_back(value_of(e, element));
      if (element->kind == TypeKind::SymInt) element = basic_type(TypeKind::Int);
      return list_of_values(without_shapes(element), members);
    }
    case IValue::Tag::Tuple: {
      std::vector<Value*> members;
      for (const IValue& e : v.toTupleElements()) members.push_back(value_of(e));
      Node* n = graph->createTuple(members, v.toTupleRef().type);
      return graph->insertNode(n->setScope(graph->current_scope()))->output();
    }
    case IValue::Tag::Dict: {
      std::vector<Value*> keys, values;
      for (const auto& [key, value] : v.toDictImpl().items) {
        keys.push_back(constant(key));
        values.push_back(value_of(value));
      }
      CRESSET_CHECK(!keys.empty(), "Tracer cannot infer type of {}\n:Dictionary inputs must have entries");
      Node* n = graph->createDict(keys[0]->type(), without_shapes(values[0]->type()), keys, values);
      return graph->insertNode(n->setScope(graph->current_scope()))->output();
    }
    case IValue::Tag::ScriptObject: {
      const auto at = modules_.find(&v.toObjectRef());
      return at == modules_.end() ? constant(v) : attribute(at->second);
    }
    case IValue::Tag::Generator: return constant(IValue());  // a generator is state: programs draw from their device's own
    case IValue::Tag::None: return constant(v);
    default: return constant(v, type);
  }
}

void TracingState::bind(const IValue& v, Value* value) {
  switch (v.tag()) {
    case IValue::Tag::Tensor:
      if (!v.toTensor().defined()) return;
      if (value->type()->kind == TypeKind::Tensor) value->setType(hint_from(v.toTensor()));
      known_[v.toTensor().unsafeGetTensorImpl()] = {weak_intrusive_ptr<TensorImpl>(v.toTensor().getIntrusivePtr()), value};
      return;
    case IValue::Tag::List: {
      const auto& list = v.toListRef();
      if (list.empty() || !holds_tensors(*value->type())) return;
      Node* n = graph->createListUnpack(value, list.size());
      graph->insertNode(n->setScope(graph->current_scope()));
      for (std::size_t i = 0; i < list.size(); ++i) bind(list[i], n->output(i));
      return;
    }
    case IValue::Tag::Tuple: {
      const auto& members = v.toTupleElements();
      if (!holds_tensors(*value->type())) return;
      Node* n = graph->createTupleUnpack(value);
      graph->insertNode(n->setScope(graph->current_scope()));
      for (std::size_t i = 0; i < members.size(); ++i) bind(members[i], n->output(i));
      return;
    }
    case IValue::Tag::Dict:
      for (const auto& [key, element] : v.toDictImpl().items) {
        Node* n = create(aten::__getitem__, {value, constant(key)});
        n->output()->setType(value->type()->kind == TypeKind::Dict ? value->type()->contained[1] : element.type());
        bind(element, n->output());
      }
      return;
    default: return;
  }
}

namespace {

// Is it made of tensors alone?
bool traceable(const IValue& v, int depth = 0) {
  constexpr int kDeepest = 100;
  if (depth > kDeepest) return false;
  const auto all = [&](const std::vector<IValue>& parts) {
    return !parts.empty() && std::all_of(parts.begin(), parts.end(), [&](const IValue& e) { return traceable(e, depth + 1); });
  };
  if (v.isTensor()) return v.toTensor().defined();
  if (v.isList()) return all(v.toListRef());
  if (v.isTuple()) return all(v.toTupleElements());
  if (v.isGenericDict()) {
    const auto& items = v.toDictImpl().items;
    return !items.empty() && std::all_of(items.begin(), items.end(), [&](const auto& i) { return traceable(i.second, depth + 1); });
  }
  return false;
}

// Tensors that the map or the module knows already get another identity.
IValue with_own_tensors(const TracingState& state, const IValue& v, std::vector<const TensorImpl*>& seen) {
  const auto each = [&](const std::vector<IValue>& parts) {
    std::vector<IValue> out;
    for (const IValue& e : parts) out.push_back(with_own_tensors(state, e, seen));
    return out;
  };
  if (v.isTensor()) {
    Tensor t = v.toTensor();
    if (state.find(t) || state.is_attribute(t) || std::find(seen.begin(), seen.end(), t.unsafeGetTensorImpl()) != seen.end())
      t = t.view(t.sizes());
    seen.push_back(t.unsafeGetTensorImpl());
    return t;
  }
  if (v.isList()) return make_intrusive<ivalue::ListImpl>(each(v.toListRef()), v.toListImpl().element_type);
  if (v.isTuple()) return make_intrusive<ivalue::TupleImpl>(each(v.toTupleElements()), v.toTupleRef().type);
  if (v.isGenericDict()) {
    auto out = make_intrusive<ivalue::DictImpl>();
    out->key_type = v.toDictImpl().key_type;
    out->value_type = v.toDictImpl().value_type;
    for (const auto& [key, element] : v.toDictImpl().items) out->items.insert_or_assign(key, with_own_tensors(state, element, seen));
    return out;
  }
  return v;
}

// The type of an input: tensors as they are; inside of lists and dictionaries nothing is known of them.
TypePtr input_type(const IValue& v) {
  if (v.isTensor()) return hint_from(v.toTensor());
  if (v.isTuple() && !v.toTupleRef().type) {
    std::vector<TypePtr> members;
    for (const IValue& e : v.toTupleElements()) members.push_back(input_type(e));
    return tuple_of(std::move(members));
  }
  return without_shapes(v.type());
}

}  // namespace

void check_input(const IValue& v) {
  CRESSET_CHECK(traceable(v), "Type '", v.type()->annotation_str(),
                "' cannot be traced. Only Tensors and (possibly nested) Lists, Dicts, and Tuples of Tensors can be traced");
}

IValue TracingState::add_input(const std::string& name, IValue v) {
  check_input(v);
  const impl::ExcludeDispatchKeyGuard guard(DispatchKey::Tracer);
  std::vector<const TensorImpl*> seen;
  v = with_own_tensors(*this, v, seen);
  Value* value = graph->addInput(name);
  value->setType(input_type(v));
  bind(v, value);
  return v;
}

void TracingState::set_output(const IValue& v) {
  if (v.isGenericDict()) {
    for (const auto& [key, element] : v.toDictImpl().items)
      CRESSET_CHECK(element.isTensor() || (element.isTuple() && traceable(element)), "output 1 (", text_of(v),
                    ") of traced region cannot be understood by the tracer, only outputs matching dict[Union[str, Tensor], Union[Tensor, "
                    "Tuple[Tensor, ...]]] can be a dictionary output of a traced function");
  }
  const bool nothing = v.isTuple() && v.toTupleElements().empty();
  CRESSET_CHECK(nothing || traceable(v),
                "Only tensors, lists, tuples of tensors, or dictionary of tensors can be output from traced functions");
  graph->registerOutput(value_of(v));
}

// ---- sizes and numbers

namespace {

// A number that only lives for the trace, with the value that it stands for.
Tensor traced_number(int64_t number, Value* value) {
  Tensor t = cresset::detail::empty_cpu({}, kLong);
  *static_cast<int64_t*>(t.data_ptr()) = number;
  TracingState& state = *current();
  value->setType(basic_type(TypeKind::Int));
  Value* tensor = state.create(prim::NumToTensor, {value})->output();
  tensor->setType(TensorType::create(kLong, std::vector<std::optional<int64_t>>{}, std::nullopt, std::nullopt, Device(kCPU)));
  Value* known = tensor;
  const TypePtr type = tensor->type();
  state.bind(t, known);
  known->setType(type);
  return t;
}

Symbol conversion_to(const IValue& number, bool scalar) {
  static const Symbol to_int = Symbol::aten("Int"), to_float = Symbol::aten("Float"), to_scalar = Symbol::aten("ScalarImplicit");
  return scalar ? to_scalar : number.isInt() ? to_int : to_float;
}

}  // namespace

Tensor traced_size(const Tensor& t, int64_t dim) {
  TracingState& state = *current();
  const int64_t number = t.size(dim);
  Value* tensor = state.value_of(t);
  Value* which = state.value_of(IValue(dim < 0 ? dim + t.dim() : dim));
  return traced_number(number, state.create(aten::size, {tensor, which})->output());
}

Tensor traced_numel(const Tensor& t) {
  static const Symbol numel = Symbol::aten("numel");
  TracingState& state = *current();
  return traced_number(t.numel(), state.create(numel, {state.value_of(t)})->output());
}

void stash(std::string_view argument, int64_t element, const Tensor& t, const IValue& number) {
  TracingState& state = *current();
  Value* tensor = state.find(t);
  if (!tensor) return;
  // An empty name: the number of a subscript, which the caller keeps.
  Node* conversion = state.create(conversion_to(number, false), {tensor});
  // Beside what it converts, as in PyTorch's traces: programs that read them look for the pair.
  if (Node* n = tensor->node(); n->kind() != prim::Param && n->owningBlock() == conversion->owningBlock()) conversion->moveAfter(n);
  Value* value = conversion->output()->setType(basic_type(number.isInt() ? TypeKind::Int : TypeKind::Float));
  state.stashed.push_back({std::string(argument), element, number, value});
}

void same_value(const Tensor& outer, const Tensor& inner) {
  TracingState& state = *current();
  if (Value* v = state.find(outer)) {
    const TypePtr type = v->type();
    state.bind(inner, v);
    v->setType(type);
  }
}

// ---- recording

namespace {

// Composite operators that never are nodes of their own: what they call is recorded.
bool recorded_by_parts(const OperatorHandle& op) {
  static constexpr std::array<std::string_view, 10> names = {
      "aten::conv1d",           "aten::conv2d",    "aten::conv3d",   "aten::conv_transpose1d", "aten::conv_transpose2d",
      "aten::conv_transpose3d", "aten::lstm_cell", "aten::gru_cell", "aten::rnn_tanh_cell",    "aten::rnn_relu_cell"};
  const auto& [name, overload] = op.operator_name();
  return std::find(names.begin(), names.end(), name) != names.end() || (name == "aten::split" && overload == "sizes");
}

bool same_number(const IValue& a, const IValue& b) {
  if (a.isInt() && b.isInt()) return a.toInt() == b.toInt();
  return a.isDouble() && b.isDouble() && a.toDouble() == b.toDouble();
}

Value* stashed_value(const TracingState& state, std::string_view argument, int64_t element, const IValue& number) {
  for (const TracingState::Stashed& s : state.stashed)
    if (s.argument == argument && s.element == element && same_number(s.number, number)) return s.value;
  return nullptr;
}

// The subscript that this operator is the work of: subscripts that need none are passed over.
std::optional<TracingState::Subscript> take_subscript(TracingState& state, const OperatorHandle& op, const IValue* arguments) {
  const std::string& name = op.operator_name().name;
  const bool slice = name == "aten::slice";
  if (state.subscripts.empty() || (!slice && name != "aten::select")) return std::nullopt;
  const auto same = [](const IValue& a, const IValue& b) { return a.isNone() ? b.isNone() : same_number(a, b); };
  for (std::size_t i = 0; i < state.subscripts.size(); ++i) {
    const auto& s = state.subscripts[i];
    if (s.slice != slice) continue;
    bool fits = true;
    for (std::size_t k = 0; k < s.numbers.size() && fits; ++k) fits = same(s.numbers[k], arguments[2 + k]);
    if (!fits) continue;
    auto found = std::move(state.subscripts[i]);
    state.subscripts.erase(state.subscripts.begin(), state.subscripts.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    return found;
  }
  return std::nullopt;
}

}  // namespace

// A number of the next operator, or a list of them, may be a tensor of the trace.
Value* TracingState::operand(const Argument& formal, const IValue& v) {
  const Type* type = formal.type.get();
  while (type->kind == TypeKind::Optional) type = type->element().get();
  if (v.isList() && type->kind == TypeKind::List && (type->element()->kind == TypeKind::Int || type->element()->kind == TypeKind::SymInt)) {
    std::vector<Value*> members;
    for (std::size_t k = 0; k < v.toListRef().size(); ++k) {
      const IValue& e = v.toListRef()[k];
      Value* known = stashed_value(*this, formal.name, static_cast<int64_t>(k), e);
      members.push_back(known ? known : constant(e));
    }
    return list_of_values(basic_type(TypeKind::Int), members);
  }
  Value* value = stashed_value(*this, formal.name, -1, v);
  if (!value) return value_of(v, TypePtr(formal.type, type));
  if (type->kind == TypeKind::Number)
    value = create(conversion_to(v, true), {value->node()->input()})->output()->setType(basic_type(TypeKind::Number));
  return value;
}

std::vector<Value*> TracingState::operands(const OperatorHandle& op, const IValue* arguments) {
  const auto& formals = op.schema().arguments();
  const auto subscript = take_subscript(*this, op, arguments);
  std::vector<Value*> out;
  for (std::size_t i = 0; i < formals.size(); ++i) {
    Value* value = subscript && i >= 2 ? subscript->values[i - 2] : nullptr;
    out.push_back(value ? value : operand(formals[i], arguments[i]));
  }
  if (!by_parts) stashed.clear();
  return out;
}

namespace {

bool is_recorded(const FunctionSchema& schema) {
  const auto& returns = schema.returns();
  if (returns.empty()) return true;
  if (std::any_of(returns.begin(), returns.end(), [](const Argument& a) { return holds_tensors(*a.type); })) return true;
  return std::any_of(schema.arguments().begin(), schema.arguments().end(), [](const Argument& a) { return a.is_mutable(); });
}

// The forms that PyTorch's traces have: convolutions with the flags of an operator that no backend here looks at, and `to` without the
// options that it was not given. Operators with two names have one in graphs.
Node* create_node(TracingState& state, const OperatorName& op, std::vector<Value*> operands, std::size_t outputs) {
  if (op.name == "aten::convolution") {
    for (const bool flag : {false, false, true, true}) operands.push_back(state.value_of(IValue(flag)));
    return state.create(Symbol::aten("_convolution"), operands, outputs);
  }
  if (op.name == "aten::to" && op.overload_name == "dtype_layout") {
    const auto left_out = [&](std::size_t i) { return operands[i]->mustBeNone(); };
    enum : std::size_t { kSelf, kDtype, kLayout, kDevice, kPin, kNonBlocking, kCopy, kFormat };
    if (left_out(kLayout) && left_out(kPin) && !left_out(kDtype)) {
      std::vector<Value*> fewer = {operands[kSelf]};
      if (!left_out(kDevice)) fewer.push_back(operands[kDevice]);
      for (const std::size_t i : {kDtype, kNonBlocking, kCopy, kFormat}) fewer.push_back(operands[i]);
      operands = std::move(fewer);
    }
  }
  return state.create(canonical_operator(Symbol::fromQualString(op.name)), operands, outputs);
}

bool writes_first(const FunctionSchema& schema) {
  return !schema.arguments().empty() && schema.arguments()[0].is_mutable() && !schema.arguments()[0].is_out();
}

void warn_of_references(const TracingState& state, const std::string& name, const Tensor& written) {
  if (!written.defined() || !written.has_storage()) return;
  const auto references = written.storage().use_count();
  if (references <= 1) return;
  const std::string text = str(
      "There are ", references, " live references to the data region being modified when tracing in-place operator ", name,
      state.assigning || name == "copy_" ? " (possibly due to an assignment)" : "",
      ". This might cause the trace to be incorrect, because all other views that also reference this data will not reflect this change in "
      "the trace! On the other hand, if all other views use the same memory chunk, but are disjoint (e.g. are outputs of torch.split), "
      "this "
      "might still be safe.");
  if (warning_provider) warning_provider(text.c_str());
}

Node* create_if_known(TracingState& state, std::string_view name, const std::vector<Value*>& operands) {
  Node* n = state.create(Symbol::aten(std::string(name)), operands);
  if (n->maybeSchema()) return n;
  n->destroy();
  return nullptr;
}

// The call without its writes, null where there is no such operator.
Node* create_outplace(TracingState& state, const OperatorHandle& op, std::vector<Value*> operands, const IValue* arguments) {
  constexpr std::string_view kNamespace = "aten::";
  const FunctionSchema& schema = op.schema();
  std::string name = op.operator_name().name;
  if (!name.starts_with(kNamespace) || schema.returns().size() != 1 || schema.returns()[0].type->kind != TypeKind::Tensor) return nullptr;
  name.erase(0, kNamespace.size());
  if (!writes_first(schema)) {
    const std::size_t all = operands.size();
    for (std::size_t i = schema.arguments().size(); i-- > 0;)
      if (schema.arguments()[i].is_out()) operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(i));
    return operands.size() == all ? nullptr : create_if_known(state, name, operands);
  }
  if (!name.ends_with('_') || name.ends_with("__")) return nullptr;
  if (state.force_outplace) warn_of_references(state, name, arguments[0].toTensor());
  if (name == "copy_") {
    if (state.assigning) return nullptr;
    Node* n = state.create(Symbol::aten("expand_as"), {operands[1], operands[0]});
    if (arguments[0].toTensor().scalar_type() == arguments[1].toTensor().scalar_type()) return n;
    n->output()->setType(plain_tensor());
    return state.create(Symbol::aten("type_as"), {n->output(), operands[0]});
  }
  if (name == "fill_" && state.assigning) return nullptr;
  if (name == "zero_" || name == "fill_") {
    constexpr int kOptions = 5;  // dtype, layout, device, pin_memory, memory_format
    for (int i = 0; i < kOptions; ++i) operands.push_back(state.value_of(IValue()));
    return create_if_known(state, name == "zero_" ? "zeros_like" : "full_like", operands);
  }
  name.pop_back();
  return create_if_known(state, name, operands);
}

void record_parts(TracingState& state, const OperatorHandle& op, DispatchKeySet below, Stack* stack) {
  // The sizes of `split` have another name in the operator that is recorded, split_with_sizes.
  if (op.operator_name().name == "aten::split")
    for (TracingState::Stashed& s : state.stashed)
      if (s.argument == "split_size") s.argument = "split_sizes";
  struct Parts {
    TracingState& state;
    explicit Parts(TracingState& s) : state(s) { state.by_parts = true; }
    ~Parts() {
      state.by_parts = false;
      state.stashed.clear();
    }
  };
  const Parts parts(state);
  op.redispatchBoxed(below, stack);
}

void record(const OperatorHandle& op, DispatchKeySet keys, Stack* stack) {
  const DispatchKeySet below = keys & DispatchKeySet(DispatchKeySet::FULL_AFTER, DispatchKey::Tracer);
  const std::shared_ptr<TracingState> state = current();
  if (state && recorded_by_parts(op)) return record_parts(*state, op, below, stack);
  const FunctionSchema& schema = op.schema();
  if (!state || !is_recorded(schema)) {
    const impl::ExcludeDispatchKeyGuard guard(DispatchKey::Tracer);
    return op.redispatchBoxed(below, stack);
  }
  const std::size_t arguments = schema.arguments().size();
  const std::vector<Value*> operands = state->operands(op, stack->data() + (stack->size() - arguments));
  Node* outplace = nullptr;
  const bool detaches = op.operator_name().name == "aten::detach_";  // a write that nobody sees in the values
  if ((state->force_outplace || detaches) && schema.is_mutable()) {
    const impl::ExcludeDispatchKeyGuard guard(DispatchKey::Tracer);
    outplace = create_outplace(*state, op, operands, stack->data() + (stack->size() - arguments));
  }
  {
    const impl::ExcludeDispatchKeyGuard guard(DispatchKey::Tracer);
    op.redispatchBoxed(below, stack);
  }
  const impl::ExcludeDispatchKeyGuard guard(DispatchKey::Tracer);
  const auto& returns = schema.returns();
  Node* n = outplace ? outplace : create_node(*state, op.operator_name(), operands, returns.size());
  const IValue* results = stack->data() + (stack->size() - returns.size());
  for (std::size_t i = 0; i < returns.size(); ++i) n->output(i)->setType(without_shapes(returns[i].type));
  for (std::size_t i = 0; i < returns.size(); ++i) state->bind(results[i], n->output(i));
}

void note_alias(const TensorBase& known, const TensorBase& alias) {
  if (const std::shared_ptr<TracingState>& state = current()) state->bind_alias(Tensor(known), Tensor(alias));
}
const bool aliases_are_noted = [] {
  cresset::detail::traced_alias = &note_alias;
  return true;
}();

const RegistrationHandleRAII registration = Dispatcher::singleton().registerFallback(
    DispatchKey::Tracer, KernelFunction::makeFromBoxedFunction<&record>(), str("registered at ", __FILE__, ":", __LINE__));

}  // namespace

void call_function(Function& f, Stack& stack) {
  const std::shared_ptr<TracingState> state = current();
  const auto& formals = f.getSchema().arguments();
  CRESSET_CHECK(stack.size() >= formals.size(), f.name(), "() is called with too few arguments.");
  const std::size_t first = stack.size() - formals.size();
  std::vector<Value*> operands;
  const auto cls = !formals.empty() && stack[first].isScriptObject() ? stack[first].toObjectRef().type->cast<ClassType>() : nullptr;
  const bool method = cls && cls->findMethod(f.name()) == &f;
  if (!method) operands.push_back(state->value_of(IValue(intrusive_ptr<ivalue::FunctionBase>::reclaim_copy(&f))));
  for (std::size_t i = 0; i < formals.size(); ++i) operands.push_back(state->operand(formals[i], stack[first + i]));
  state->stashed.clear();
  const impl::ExcludeDispatchKeyGuard guard(DispatchKey::Tracer);
  f.run(stack);
  Node* n = state->create(method ? prim::CallMethod : prim::CallFunction, operands);
  if (method) n->s_(attr::name, f.name());
  const auto& returns = f.getSchema().returns();
  if (returns.empty()) return;
  n->output()->setType(without_shapes(returns[0].type));
  const IValue& result = stack.back();
  if (result.isNone()) return;
  CRESSET_CHECK(traceable(result), "Tracer cannot set value trace for type ", result.tagKind(),
                ". Supported types are tensor, tensor list, and tuple of tensors.");
  state->bind(result, n->output());
}

// ---- the thread's trace

const std::shared_ptr<TracingState>& current() {
  static const std::shared_ptr<TracingState> none;
  return state_of_thread ? *state_of_thread : none;
}

void set_current(std::shared_ptr<TracingState> state) {
  CRESSET_CHECK(!state || !state_of_thread, "Tracing can't be nested");
  impl::tls_set_dispatch_key_included(DispatchKey::Tracer, state != nullptr);
  delete state_of_thread;
  state_of_thread = state ? new std::shared_ptr<TracingState>(std::move(state)) : nullptr;
}

std::shared_ptr<Graph> trace(const std::vector<std::string>& names, std::vector<IValue> inputs,
                             const std::function<IValue(const std::vector<IValue>&)>& function) {
  CRESSET_CHECK(names.size() == inputs.size(), "trace: a name for each input was required; ", names.size(), " names and ", inputs.size(),
                " inputs were given.");
  const auto state = std::make_shared<TracingState>();
  for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = state->add_input(names[i], inputs[i]);
  set_current(state);
  struct End {
    ~End() { set_current(nullptr); }
  };
  {
    const End end;
    state->set_output(function(inputs));
  }
  clean_up(state->graph);
  return state->graph;
}

void clean_up(const std::shared_ptr<Graph>& graph) {
  eliminate_dead_code(graph);
  graph->lint();
}

void set_source_range_provider(SourceRange (*provider)()) { source_range_provider = provider; }
void set_name_provider(std::string (*provider)(const Tensor&)) { name_provider = provider; }
void set_warning_provider(void (*provider)(const char*)) { warning_provider = provider; }

}  // namespace cresset::jit::tracer
