#include "ir/archive/export_tree.h"

#include <cresset/ir/tracer.h>

namespace cresset::jit {

std::size_t TreeSpec::leaves() const {
  if (kind == Kind::Leaf) return 1;
  std::size_t n = 0;
  for (const TreeSpec& c : children) n += c.leaves();
  return n;
}

namespace {
std::string key_text(const IValue& key) { return key.isString() ? "'" + key.toStringRef() + "'" : to_string(key); }
}  // namespace

std::string TreeSpec::str() const {
  if (kind == Kind::Leaf) return "*";
  std::string out = kind == Kind::List ? "[" : kind == Kind::Dict ? "{" : kind == Kind::NamedTuple ? name + "(" : "(";
  for (std::size_t i = 0; i < children.size(); ++i) {
    if (i) out += ", ";
    if (kind == Kind::Dict) out += key_text(keys[i]) + ": ";
    if (kind == Kind::NamedTuple) out += fields[i] + "=";
    out += children[i].str();
  }
  if (kind == Kind::Tuple && children.size() == 1) out += ",";
  return out + (kind == Kind::List ? "]" : kind == Kind::Dict ? "}" : ")");
}

namespace exported {

namespace {

constexpr int kDeepest = 100;

IValue parse_key(const Field& key) {
  if (key.json().is_string()) return IValue(key.text());
  if (key.json().is_boolean()) return IValue(key.boolean());
  if (key.json().is_number_integer()) return IValue(key.integer());
  key.fail("a text or an integer as key of a dictionary");
}

TreeSpec parse_node(const Field& node, const Field& named_tuples, int depth) {
  if (depth > kDeepest) node.fail("containers nested at most " + std::to_string(kDeepest) + " deep");
  TreeSpec out;
  const std::vector<Field> children = node["children_spec"].items();
  if (node["type"].json().is_null()) {
    if (!children.empty()) node.fail("a leaf without children");
    return out;
  }
  const std::string type = node["type"].text();
  for (const Field& c : children) out.children.push_back(parse_node(c, named_tuples, depth + 1));
  const auto context = [&] { return Field::parse(node["context"].text(), node.path() + ".context"); };
  if (type == "builtins.tuple" || type == "torch.Size") {
    out.kind = TreeSpec::Kind::Tuple;
  } else if (type == "builtins.list") {
    out.kind = TreeSpec::Kind::List;
  } else if (type == "builtins.dict" || type == "collections.OrderedDict") {
    out.kind = TreeSpec::Kind::Dict;
    const nlohmann::json keys = context();
    for (const Field& key : Field(keys, node.path() + ".context").items()) out.keys.push_back(parse_key(key));
    if (out.keys.size() != out.children.size()) node.fail("a key for each child");
  } else if (type == "collections.namedtuple") {
    out.kind = TreeSpec::Kind::NamedTuple;
    const nlohmann::json name = context();
    out.name = Field(name, node.path() + ".context").text();
    for (const Field& field : named_tuples[out.name.c_str()].items()) out.fields.push_back(field.text());
    if (out.fields.size() != out.children.size()) node.fail("a field name for each member of " + out.name);
  } else {
    CRESSET_THROW(Error, "export: inputs and outputs of class '", type,
                  "' are not supported; tuples, lists, dictionaries and named tuples are. Export a program that takes or gives those.");
  }
  return out;
}

// What all elements of a container are, Any when they differ.
TypePtr common_type(const std::vector<TypePtr>& types) {
  if (types.empty()) return TensorType::get();
  const TypePtr first = tracer::without_shapes(types[0]);
  for (const TypePtr& t : types)
    if (!(*tracer::without_shapes(t) == *first)) return basic_type(TypeKind::Any);
  return first;
}

TypePtr dict_type(const TreeSpec& spec, const std::vector<TypePtr>& members) {
  return dict_of(spec.keys.empty() ? basic_type(TypeKind::String) : spec.keys[0].type(), common_type(members));
}

TypePtr container_type(const TreeSpec& spec, std::vector<TypePtr> members) {
  switch (spec.kind) {
    case TreeSpec::Kind::List: return list_of(common_type(members));
    case TreeSpec::Kind::Dict: return dict_type(spec, members);
    case TreeSpec::Kind::NamedTuple: return named_tuple_of("__torch__." + spec.name, spec.fields, std::move(members));
    default: return tuple_of(std::move(members));
  }
}

// An element of a container with elements of several types, as what it is.
Value* as_type(Graph& g, Value* v, const TypePtr& type) {
  if (v->type()->kind == TypeKind::Tensor && type->kind == TypeKind::Tensor) return v->setType(type);
  if (v->type()->kind != TypeKind::Any) return v;
  Node* cast = g.insertNode(g.create(prim::unchecked_cast, {v}));
  return cast->output()->setType(type);
}

void take_apart_at(Graph& g, const TreeSpec& spec, Value* value, const std::vector<TypePtr>& types, std::size_t& at,
                   std::vector<Value*>& leaves) {
  if (spec.kind == TreeSpec::Kind::Leaf) {
    leaves.push_back(value);
    ++at;
    return;
  }
  std::vector<Value*> parts;
  if (spec.kind == TreeSpec::Kind::Dict) {
    for (const IValue& key : spec.keys) {
      Node* get = g.create(aten::__getitem__, {value, g.insertConstant(key)});
      g.insertNode(get)->output()->setType(value->type()->contained[1]);
      parts.push_back(get->output());
    }
  } else if (!spec.children.empty()) {
    Node* unpack = spec.kind == TreeSpec::Kind::List ? g.createListUnpack(value, spec.children.size()) : g.createTupleUnpack(value);
    parts = g.insertNode(unpack)->outputs();
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    std::size_t type_at = at;
    Value* part = as_type(g, parts[i], type_of_tree(spec.children[i], types, type_at));
    take_apart_at(g, spec.children[i], part, types, at, leaves);
  }
}

}  // namespace

TreeSpec parse_tree(const std::string& text, const Field& named_tuples) {
  const nlohmann::json document = Field::parse(text, "tree");
  const Field tree(document, "tree");
  const std::vector<Field> parts = tree.items();
  if (parts.size() != 2 || parts[0].integer() != 1) tree.fail("a description of version 1");
  return parse_node(parts[1], named_tuples, 0);
}

TypePtr type_of_tree(const TreeSpec& spec, const std::vector<TypePtr>& leaves, std::size_t& at) {
  if (spec.kind == TreeSpec::Kind::Leaf) return leaves.at(at++);
  std::vector<TypePtr> members;
  for (const TreeSpec& c : spec.children) members.push_back(type_of_tree(c, leaves, at));
  return container_type(spec, std::move(members));
}

void take_apart(Graph& g, const TreeSpec& spec, Value* value, const std::vector<TypePtr>& types, std::vector<Value*>& leaves) {
  std::size_t at = leaves.size();
  take_apart_at(g, spec, value, types, at, leaves);
}

Value* build(Graph& g, const TreeSpec& spec, const std::vector<Value*>& leaves, std::size_t& at) {
  if (spec.kind == TreeSpec::Kind::Leaf) return leaves.at(at++);
  std::vector<Value*> members;
  std::vector<TypePtr> types;
  for (const TreeSpec& c : spec.children) {
    members.push_back(build(g, c, leaves, at));
    const TypePtr& type = members.back()->type();
    types.push_back(type->kind == TypeKind::Tensor ? TensorType::get() : type);
  }
  Node* n = nullptr;
  switch (spec.kind) {
    case TreeSpec::Kind::List: n = g.createList(common_type(types), members); break;
    case TreeSpec::Kind::Dict: {
      std::vector<Value*> keys;
      for (const IValue& key : spec.keys) keys.push_back(g.insertConstant(key));
      const TypePtr type = dict_type(spec, types);
      n = g.createDict(type->contained[0], type->contained[1], keys, members);
      break;
    }
    case TreeSpec::Kind::NamedTuple: n = g.createTuple(members, container_type(spec, types)); break;
    default: n = g.createTuple(members);
  }
  return g.insertNode(n)->output();
}

void places(const TreeSpec& spec, const std::string& place, std::vector<std::string>& out) {
  if (spec.kind == TreeSpec::Kind::Leaf) out.push_back(place);
  for (std::size_t i = 0; i < spec.children.size(); ++i)
    places(spec.children[i],
           place + (spec.kind == TreeSpec::Kind::Dict         ? "[" + key_text(spec.keys[i]) + "]"
                    : spec.kind == TreeSpec::Kind::NamedTuple ? "." + spec.fields[i]
                                                              : "[" + std::to_string(i) + "]"),
           out);
}

void flatten(const TreeSpec& spec, const IValue& value, const std::string& place, std::vector<IValue>& leaves) {
  const auto mismatch = [&] {
    CRESSET_THROW(ValueError, "Trying to flatten user inputs with exported input tree spec: at ", place, " ", spec.str(),
                  " was expected, but actually got a value of type ", value.type()->annotation_str(), ".");
  };
  switch (spec.kind) {
    case TreeSpec::Kind::Leaf: leaves.push_back(value); return;
    case TreeSpec::Kind::Dict:
      if (!value.isGenericDict() || value.toDictImpl().items.size() != spec.keys.size()) mismatch();
      for (std::size_t i = 0; i < spec.keys.size(); ++i) {
        const IValue* element = value.toDictImpl().find(spec.keys[i]);
        if (!element) mismatch();
        flatten(spec.children[i], *element, place + "[" + key_text(spec.keys[i]) + "]", leaves);
      }
      return;
    default: {
      if (spec.kind == TreeSpec::Kind::List ? !value.isList() : !value.isTuple()) mismatch();
      const std::vector<IValue>& parts = value.isList() ? value.toListRef() : value.toTupleElements();
      if (parts.size() != spec.children.size()) mismatch();
      for (std::size_t i = 0; i < parts.size(); ++i) flatten(spec.children[i], parts[i], place + "[" + std::to_string(i) + "]", leaves);
    }
  }
}

}  // namespace exported
}  // namespace cresset::jit
