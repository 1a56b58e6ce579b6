#include "ir/archive/export_nodes.h"

#include <algorithm>
#include <limits>

#include <cresset/ir/operator.h>

#include "ir/archive/export_weights.h"

namespace cresset::jit::exported {

namespace {

// Functions on numbers, and operators that have another name for scripts.
const std::unordered_map<std::string_view, std::string_view>& functions() {
  static const std::unordered_map<std::string_view, std::string_view> table = {
      {"_operator.add", "aten::add"},
      {"_operator.sub", "aten::sub"},
      {"_operator.mul", "aten::mul"},
      {"_operator.floordiv", "aten::floordiv"},
      {"_operator.truediv", "aten::div"},
      {"_operator.mod", "aten::remainder"},
      {"_operator.pow", "aten::pow"},
      {"_operator.neg", "aten::neg"},
      {"_operator.eq", "aten::eq"},
      {"_operator.ne", "aten::ne"},
      {"_operator.lt", "aten::lt"},
      {"_operator.le", "aten::le"},
      {"_operator.gt", "aten::gt"},
      {"_operator.ge", "aten::ge"},
      {"_operator.and_", "aten::__and__"},
      {"_operator.or_", "aten::__or__"},
      {"_operator.not_", "aten::__not__"},
      {"torch._sym_sqrt", "aten::sqrt"},
      {"torch.sym_max", "prim::max"},
      {"torch.sym_min", "prim::min"},
      {"torch.sym_int", "aten::Int"},
      {"torch.sym_float", "aten::Float"},
      {"torch.sym_not", "aten::__not__"},
      {"math.ceil", "aten::ceil"},
      {"math.floor", "aten::floor"},
      {"torch.ops.aten.lift_fresh_copy.default", "aten::clone"},
      {"torch.ops.aten.sym_size.int", "aten::size"},
      {"torch.ops.aten.sym_numel.default", "aten::numel"},
      {"torch.ops.aten.sym_stride.int", "aten::stride"},
      {"torch.ops.aten.sym_storage_offset.default", "aten::storage_offset"},
  };
  return table;
}

// Statements about values that held when the program was exported; they compute nothing.
bool is_assertion(std::string_view target) {
  for (const std::string_view name :
       {"torch.ops.aten._assert_tensor_metadata", "torch.ops.aten.sym_constrain_range", "torch.ops.aten.sym_constrain_range_for_size"})
    if (target.substr(0, target.rfind('.')) == name) return true;
  return false;
}
bool is_item(std::string_view target) {
  return target == "torch.ops.aten.item.default" || target == "torch.ops.aten._local_scalar_dense.default";
}

const Type& without_optional(const Type& type) { return type.kind == TypeKind::Optional ? without_optional(*type.element()) : type; }

TypePtr int_type() { return basic_type(TypeKind::Int); }

}  // namespace

nlohmann::json Field::parse(const std::string& text, const std::string& name) {
  constexpr int kDeepest = 200;
  try {
    return nlohmann::json::parse(text, [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
      CRESSET_CHECK(depth <= kDeepest, "export: damaged program: ", name, " nests more than ", kDeepest, " deep.");
      return true;
    });
  } catch (const nlohmann::json::exception& e) {
    CRESSET_THROW(Error, "export: damaged program: ", name, " is no JSON: ", e.what());
  }
}

double Field::number() const {
  if (json_->is_number()) return json_->get<double>();
  const std::string word = json_->is_string() ? json_->get<std::string>() : std::string();
  if (word == "Infinity") return std::numeric_limits<double>::infinity();
  if (word == "-Infinity") return -std::numeric_limits<double>::infinity();
  if (word == "NaN") return std::numeric_limits<double>::quiet_NaN();
  fail("a number");
}

void NodeReader::define(const std::string& name, Value* v, const Field& where) {
  if (!values_.emplace(name, v).second) where.fail("a name that is given once ('" + name + "')");
  if (Value::isValidName(name)) v->setDebugName(name);
}

Value* NodeReader::find(const Field& name) const {
  const auto found = values_.find(name.text());
  if (found == values_.end()) name.fail("a value that was computed before ('" + name.text() + "')");
  return found->second;
}

Value* NodeReader::list(TypePtr element, const std::vector<Value*>& members) {
  return graph_->insertNode(graph_->createList(std::move(element), members))->output();
}

Value* NodeReader::argument(const Field& argument, const TypePtr& type) {
  const auto [kind, value] = argument.variant();
  const auto constant = [&](const IValue& v) {
    const Type* wanted = type ? &without_optional(*type) : nullptr;
    if (wanted && v.isInt() && wanted->kind == TypeKind::Float) return graph_->insertConstant(v.toDouble());
    return graph_->insertConstant(v);
  };
  const auto all = [&](TypePtr element, const auto& each) {
    std::vector<Value*> members;
    for (const Field& item : value.items()) members.push_back(each(item));
    return list(std::move(element), members);
  };
  const auto symbolic = [&](const Field& f, const char* number) -> Value* {
    if (f.has("as_name")) return find(f["as_name"]);
    const Field n = f[number];
    return n.json().is_boolean() ? constant(n.boolean()) : n.json().is_number_integer() ? constant(n.integer()) : constant(n.number());
  };
  const auto tensor = [&](const Field& f) { return find(f["name"]); };
  const auto optional_tensor = [&](const Field& f) {
    return f.has("as_tensor") ? tensor(f["as_tensor"]) : graph_->insertConstant(IValue());
  };

  if (kind == "as_none") return constant(IValue());
  if (kind == "as_tensor") return tensor(value);
  if (kind == "as_tensors") {
    const bool optional =
        type && without_optional(*type).kind == TypeKind::List && without_optional(*type).element()->kind == TypeKind::Optional;
    return all(optional ? optional_of(TensorType::get()) : TensorType::get(), tensor);
  }
  if (kind == "as_optional_tensor") return optional_tensor(value);
  if (kind == "as_optional_tensors") return all(optional_of(TensorType::get()), optional_tensor);
  if (kind == "as_int") return constant(value.integer());
  if (kind == "as_float") return constant(value.number());
  if (kind == "as_bool") return constant(value.boolean());
  if (kind == "as_string") return constant(value.text());
  if (kind == "as_complex") return constant(std::complex<double>(value["real"].number(), value["imag"].number()));
  if (kind == "as_ints") return all(int_type(), [&](const Field& f) { return constant(f.integer()); });
  if (kind == "as_floats") return all(basic_type(TypeKind::Float), [&](const Field& f) { return graph_->insertConstant(f.number()); });
  if (kind == "as_bools") return all(basic_type(TypeKind::Bool), [&](const Field& f) { return graph_->insertConstant(f.boolean()); });
  if (kind == "as_strings") return all(basic_type(TypeKind::String), [&](const Field& f) { return graph_->insertConstant(f.text()); });
  if (kind == "as_sym_int") return symbolic(value, "as_int");
  if (kind == "as_sym_float") return symbolic(value, "as_float");
  if (kind == "as_sym_bool") return symbolic(value, "as_bool");
  if (kind == "as_sym_ints") return all(int_type(), [&](const Field& f) { return symbolic(f, "as_int"); });
  if (kind == "as_sym_floats") return all(basic_type(TypeKind::Float), [&](const Field& f) { return symbolic(f, "as_float"); });
  if (kind == "as_sym_bools") return all(basic_type(TypeKind::Bool), [&](const Field& f) { return symbolic(f, "as_bool"); });
  if (kind == "as_scalar_type") return constant(static_cast<int64_t>(scalar_type_of(value)));
  if (kind == "as_layout") return constant(static_cast<int64_t>(layout_of(value)));
  if (kind == "as_memory_format") return constant(static_cast<int64_t>(memory_format_of(value)));
  if (kind == "as_device") return constant(device_of(value));
  argument.fail("an argument of a kind that can be read ('" + kind + "' cannot)");
}

TypePtr NodeReader::tensor_type(const Field& graph, const std::string& name) const {
  if (!graph["tensor_values"].has(name.c_str())) return TensorType::get();
  const Field meta = graph["tensor_values"][name.c_str()];
  std::vector<std::optional<int64_t>> sizes;
  for (const auto& s : sizes_of(meta)) {
    const auto* number = std::get_if<int64_t>(&s);
    sizes.push_back(number ? std::optional(*number) : std::nullopt);
  }
  return TensorType::create(scalar_type_of(meta["dtype"]), std::move(sizes), std::nullopt, std::nullopt, device_of(meta["device"]));
}

// Scope and place from what the exporter noted.
void NodeReader::place(Node* n, const Field& node) const {
  if (!node.has("metadata")) return;
  const Field metadata = node["metadata"];
  if (metadata.has("nn_module_stack")) {
    // "L__self__,,M;L__self__c1,c1,Conv2d": the paths of the modules stand between the commas.
    std::string stack = metadata["nn_module_stack"].text();
    ScopePtr scope;
    for (std::size_t at = 0; at < stack.size();) {
      const std::size_t end = std::min(stack.find(';', at), stack.size());
      const std::string entry = stack.substr(at, end - at);
      const std::size_t first = entry.find(','), second = entry.find(',', first + 1);
      const bool placeholder = entry.starts_with("_empty_nn_module_stack");  // of nodes that no module made
      if (!placeholder && second != std::string::npos && second > first + 1)
        scope = std::make_shared<Scope>(scope, "__module." + entry.substr(first + 1, second - first - 1));
      at = end + 1;
    }
    n->setScope(scope);
  }
  if (metadata.has("stack_trace")) {
    const std::string trace = metadata["stack_trace"].text();
    const std::size_t file = trace.rfind("File \""), close = trace.find("\", line ", file);
    if (file != std::string::npos && close != std::string::npos)
      n->setSourceRange(SourceRange::at(trace.substr(file + 6, close - file - 6), std::strtoul(trace.c_str() + close + 8, nullptr, 10), 0));
  }
}

void NodeReader::read(const Field& graph) {
  for (const Field& node : graph["nodes"].items()) read_node(graph, node);
}

void NodeReader::read_node(const Field& graph, const Field& node) {
  const std::string target = node["target"].text();
  const auto function = functions().find(target);
  if (function != functions().end()) return read_function(graph, node, Symbol::fromQualString(function->second));
  if (is_item(target)) return read_number(node);
  if (is_assertion(target)) return;
  if (target == "torch.ops.aten._assert_scalar.default") return read_check(node);
  if (target == "torch.ops.higher_order.cond") return read_cond(graph, node);
  if (target == "torch.ops.higher_order.while_loop") return read_while_loop(graph, node);
  CRESSET_CHECK(!target.starts_with("torch.ops.higher_order."), "export: ", node.path(), ": the control flow operator '", target,
                "' is not supported. Programs with torch.cond and torch.while_loop, and without other control flow, are.");
  CRESSET_CHECK(target.starts_with("torch.ops."), "export: ", node.path(), ": the function '", target, "' is not supported.");
  read_operator(graph, node, target);
}

void NodeReader::read_function(const Field& graph, const Field& node, Symbol kind) {
  std::vector<Value*> operands;
  for (const Field& input : node["inputs"].items()) operands.push_back(argument(input["arg"]));
  Value* result = graph_->insert(kind, operands);
  place(result->node(), node);
  define_outputs(graph, node, {result});
}

// item(): what the result is said to be decides which conversion it is.
void NodeReader::read_number(const Field& node) {
  const std::vector<Field> inputs = node["inputs"].items(), outputs = node["outputs"].items();
  if (inputs.size() != 1 || outputs.size() != 1) node.fail("a node with one operand and one result");
  const auto [kind, out] = outputs[0].variant();
  const char* conversion = kind == "as_sym_int" ? "Int" : kind == "as_sym_float" ? "Float" : kind == "as_sym_bool" ? "Bool" : nullptr;
  if (!conversion) outputs[0].fail("a number");
  Value* result = graph_->insert(Symbol::aten(conversion), {argument(inputs[0]["arg"])});
  place(result->node(), node);
  define(out["as_name"].text(), result, out);
}

void NodeReader::read_operator(const Field& graph, const Field& node, const std::string& target) {
  // "torch.ops.aten.add.Tensor"
  const std::string name = target.substr(std::string_view("torch.ops.").size());
  const std::size_t space = name.find('.'), dot = name.rfind('.');
  if (space == std::string::npos || dot == space) node["target"].fail("an operator with its overload");
  const std::string overload = name.substr(dot + 1), kind = name.substr(0, space) + "::" + name.substr(space + 1, dot - space - 1);
  const Operator* op = find_operator(overload == "default" ? kind : kind + "." + overload);
  CRESSET_CHECK(op, "export: ", node.path(), ": the operator '", kind, overload == "default" ? "" : "." + overload,
                "' is not known. Programs with operators of an extension need it to be loaded before.");
  const std::vector<Argument>& formals = op->schema().arguments();
  std::vector<Value*> operands(formals.size(), nullptr);
  std::size_t positional = 0;
  for (const Field& input : node["inputs"].items()) {
    const std::string given = input["name"].text();
    const std::size_t at = given.empty() ? positional++ : op->schema().argument_index(given).value_or(formals.size());
    if (at >= formals.size() || operands[at]) input.fail("an argument of " + op->schema().str());
    operands[at] = argument(input["arg"], formals[at].type);
  }
  for (std::size_t i = 0; i < formals.size(); ++i) {
    if (operands[i]) continue;
    if (!formals[i].default_value) node["inputs"].fail("a value for the argument '" + formals[i].name + "' of " + op->schema().str());
    const auto constant =
        tryInsertConstant(*graph_, *formals[i].default_value, TypePtr(formals[i].type, &without_optional(*formals[i].type)));
    if (!constant) node["inputs"].fail("a value for the argument '" + formals[i].name + "'");
    operands[i] = *constant;
  }
  const auto& returns = op->schema().returns();
  Node* n = graph_->insertNode(graph_->create(Symbol::fromQualString(kind), operands, returns.size()));
  place(n, node);
  if (!n->maybeOperator()) {
    // A number stands where only a tensor fits.
    for (std::size_t i = 0; i < formals.size(); ++i) {
      if (without_optional(*formals[i].type).kind != TypeKind::Tensor || !operands[i]->type()->is_subtype_of(*basic_type(TypeKind::Number)))
        continue;
      const WithInsertPoint guard(n);
      n->replaceInput(i, graph_->insertNode(graph_->createNumToTensor(operands[i]))->output());
    }
    n->getOperator();  // raises when it still does not fit
  }
  const std::vector<TypePtr> types = output_types(n->schema(), n->inputs());
  for (std::size_t i = 0; i < returns.size() && i < types.size(); ++i) n->output(i)->setType(types[i]);
  define_outputs(graph, node, n->outputs());
}

void NodeReader::define_outputs(const Field& graph, const Field& node, const std::vector<Value*>& results) {
  const std::vector<Field> outputs = node["outputs"].items();
  if (outputs.size() > results.size()) node["outputs"].fail("at most " + std::to_string(results.size()) + " results");
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto [kind, out] = outputs[i].variant();
    if (kind == "as_none") continue;
    if (kind == "as_tensor" || kind == "as_optional_tensor") {
      const Field tensor = kind == "as_tensor" ? out : out["as_tensor"];
      const std::string name = tensor["name"].text();
      if (results[i]->type()->kind == TypeKind::Tensor) results[i]->setType(tensor_type(graph, name));
      define(name, results[i], tensor);
    } else if (kind == "as_tensors") {
      const std::vector<Field> members = out.items();
      Node* unpack = graph_->insertNode(graph_->createListUnpack(results[i], members.size()));
      for (std::size_t k = 0; k < members.size(); ++k) {
        unpack->output(k)->setType(tensor_type(graph, members[k]["name"].text()));
        define(members[k]["name"].text(), unpack->output(k), members[k]);
      }
    } else if (out.has("as_name")) {
      define(out["as_name"].text(), results[i], out);
    } else {
      outputs[i].fail("a result of a kind that can be read ('" + kind + "' cannot)");
    }
  }
}

// A function sees only its operands.
std::vector<Value*> NodeReader::read_body(const Field& graph, const std::vector<Value*>& operands) {
  constexpr int kDeepest = 50;
  CRESSET_CHECK(++depth_ <= kDeepest, "export: conditions and loops nested more than ", kDeepest, " deep are not read.");
  std::unordered_map<std::string, Value*> outer;
  outer.swap(values_);
  const std::vector<Field> inputs = graph["inputs"].items();
  if (inputs.size() != operands.size()) graph["inputs"].fail(std::to_string(operands.size()) + " inputs");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Field in = inputs[i].variant().second;
    values_.emplace(in[in.has("name") ? "name" : "as_name"].text(), operands[i]);
  }
  read(graph);
  std::vector<Value*> results;
  for (const Field& out : graph["outputs"].items()) results.push_back(argument(out));
  values_.swap(outer);
  --depth_;
  return results;
}

std::vector<Value*> NodeReader::operands(const Field& input) {
  const auto [kind, given] = input["arg"].variant();
  std::vector<Value*> found;
  if (kind == "as_tensors")
    for (const Field& item : given.items()) found.push_back(find(item["name"]));
  else if (kind != "as_none" && !(given.json().is_array() && given.json().empty()))
    input.fail("a list of tensors");
  return found;
}

Value* NodeReader::condition(Value* v) { return v->type()->kind == TypeKind::Tensor ? graph_->insert(Symbol::aten("Bool"), {v}) : v; }

// What torch._check said of numbers that tensors were asked for: where it does not hold, the program raises.
void NodeReader::read_check(const Field& node) {
  const std::vector<Field> inputs = node["inputs"].items();
  if (inputs.size() != 2) node["inputs"].fail("a condition and a text");
  Node* n = graph_->insertNode(graph_->create(prim::If, {condition(argument(inputs[0]["arg"]))}, 0));
  place(n, node);
  n->addBlock();
  const WithInsertPoint guard(n->addBlock());
  Value* const message = argument(inputs[1]["arg"]);
  graph_->insertNode(graph_->create(prim::RaiseException, {message, graph_->insertConstant(IValue("RuntimeError"))}, 0));
}

void NodeReader::read_cond(const Field& graph, const Field& node) {
  const std::vector<Field> inputs = node["inputs"].items(), outputs = node["outputs"].items();
  if (inputs.size() != 4) node["inputs"].fail("a condition, two graphs and their operands");
  const std::vector<Value*> given = operands(inputs[3]);
  Node* n = graph_->insertNode(graph_->create(prim::If, {condition(argument(inputs[0]["arg"]))}, outputs.size()));
  place(n, node);
  for (const std::size_t branch : {1, 2}) {
    const Field body = inputs[branch]["arg"]["as_graph"]["graph"];
    Block* block = n->addBlock();
    const WithInsertPoint guard(block);
    for (Value* v : read_body(body, given)) block->registerOutput(v);
    if (block->outputs().size() != outputs.size()) body["outputs"].fail(std::to_string(outputs.size()) + " outputs");
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) n->output(i)->setType(TensorType::get());
  define_outputs(graph, node, n->outputs());
}

// The condition is computed before the loop, and at the end of each pass.
void NodeReader::read_while_loop(const Field& graph, const Field& node) {
  const std::vector<Field> inputs = node["inputs"].items();
  if (inputs.size() != 4) node["inputs"].fail("two graphs, what the loop carries and operands");
  const Field test = inputs[0]["arg"]["as_graph"]["graph"], body = inputs[1]["arg"]["as_graph"]["graph"];
  std::vector<Value*> carried = operands(inputs[2]);
  const std::vector<Value*> others = operands(inputs[3]);
  const auto goes_on = [&](std::vector<Value*> values) {
    values.insert(values.end(), others.begin(), others.end());
    const std::vector<Value*> results = read_body(test, values);
    if (results.size() != 1) test["outputs"].fail("one output");
    return condition(results[0]);
  };
  const std::size_t count = carried.size();
  std::vector<Value*> begin{graph_->insertConstant(std::numeric_limits<int64_t>::max()), goes_on(carried)};
  begin.insert(begin.end(), carried.begin(), carried.end());
  Node* n = graph_->insertNode(graph_->create(prim::Loop, begin, count));
  place(n, node);
  Block* block = n->addBlock();
  block->addInput()->setType(int_type());
  for (Value*& v : carried) (v = block->addInput())->setType(TensorType::get());
  {
    const WithInsertPoint guard(block);
    carried.insert(carried.end(), others.begin(), others.end());
    const std::vector<Value*> next = read_body(body, carried);
    if (next.size() != count) body["outputs"].fail(std::to_string(count) + " outputs");
    block->registerOutput(goes_on(next));
    for (Value* v : next) block->registerOutput(v);
  }
  for (Value* out : n->outputs()) out->setType(TensorType::get());
  define_outputs(graph, node, n->outputs());
}

}  // namespace cresset::jit::exported
