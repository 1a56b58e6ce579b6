// Programs of torch.export: the archive, the signature, and the module that the pieces make.
#include <cresset/ir/export.h>
#include <cresset/ir/pass.h>
#include <cresset/ir/tracer.h>

#include "ir/archive/export_nodes.h"
#include "ir/archive/export_tree.h"
#include "ir/archive/export_weights.h"

namespace cresset::jit {

namespace exported {
namespace {

// The folder at the root of the archive: every file stands in it.
std::string root_of(const ZipReader& zip) {
  for (const ZipEntry& e : zip.entries()) {
    CRESSET_CHECK(e.name != "serialized_exported_program.json",
                  "export: this program was written by torch.export.save before PyTorch 2.8, in a form with pickles that is not read. Load "
                  "and save it with a newer PyTorch.");
    const std::size_t at = e.name.find("/archive_format");
    if (at != std::string::npos && at + 15 == e.name.size()) return e.name.substr(0, at + 1);
  }
  CRESSET_THROW(Error, "export: a .pt2 archive of torch.export was required; the file has no entry 'archive_format'.");
}

std::string file(const ZipReader& zip, const std::string& name) {
  const ZipEntry* entry = zip.find(name);
  CRESSET_CHECK(entry, "export: damaged program: the file '", name, "' is missing.");
  return zip.read(*entry);
}

// Modules by dotted path, made where a name needs them.
class ModuleTree {
 public:
  ModuleTree(Module root, std::shared_ptr<CompilationUnit> unit) : root_(std::move(root)), unit_(std::move(unit)) {}
  void set(const std::string& path, Tensor t, bool parameter, bool buffer) const {
    Module owner = root_;
    std::size_t at = 0;
    for (std::size_t dot; (dot = path.find('.', at)) != std::string::npos; at = dot + 1) {
      const std::string name = part(path, at, dot);
      if (!owner.hasattr(name)) owner.register_module(name, Module("__torch__.ExportedModule", unit_));
      const IValue next = owner.attr(name);
      CRESSET_CHECK(next.isScriptObject(), "export: damaged program: '", path, "' is below a tensor.");
      owner = Module(next.toObject());
    }
    const std::string name = part(path, at, path.size());
    CRESSET_CHECK(!owner.hasattr(name), "export: damaged program: '", path, "' is given twice, or is a name that cannot be used.");
    owner.register_attribute(name, basic_type(TypeKind::Tensor), std::move(t), parameter, buffer);
  }
  Value* access(Graph& g, const std::string& path) const {
    Value* v = g.inputs()[0];
    for (std::size_t at = 0; at <= path.size();) {
      const std::size_t dot = std::min(path.find('.', at), path.size());
      v = g.insertNode(g.createGetAttr(v, path.substr(at, dot - at)))->output();
      at = dot + 1;
    }
    return v;
  }

 private:
  static std::string part(const std::string& path, std::size_t from, std::size_t to) {
    CRESSET_CHECK(to > from, "export: damaged program: the name '", path, "' has an empty part.");
    return path.substr(from, to - from);
  }
  Module root_;
  std::shared_ptr<CompilationUnit> unit_;
};

class ProgramReader {
 public:
  ProgramReader(const ZipReader& zip, std::string root) : zip_(zip), root_(std::move(root)) {}

  ExportedProgram read() {
    CRESSET_CHECK(file(zip_, root_ + "archive_format") == "pt2", "export: a .pt2 archive was required; it says to be '",
                  file(zip_, root_ + "archive_format"), "'.");
    if (const ZipEntry* order = zip_.find(root_ + "byteorder"))
      CRESSET_CHECK(zip_.read(*order) == "little", "export: programs of machines with the little byte order are read; this one has '",
                    zip_.read(*order), "'.");
    const nlohmann::json document = Field::parse(file(zip_, model_file()), "model.json");
    const Field model(document, "model.json");
    constexpr int64_t kMajor = 8;
    program_.schema_major = model["schema_version"]["major"].integer();
    program_.schema_minor = model["schema_version"]["minor"].integer();
    CRESSET_CHECK(program_.schema_major == kMajor, "export: programs of version ", kMajor, " of the format are read; this one has version ",
                  program_.schema_major, ".");
    for (const auto& [symbol, range] : model["range_constraints"].entries()) {
      RangeConstraint& r = program_.range_constraints[symbol];
      if (range.has("min_val")) r.least = range["min_val"].integer();
      if (range.has("max_val")) r.most = range["max_val"].integer();
    }
    weights_ = read_weights(zip_, root_ + "data/weights/", "model_weights_config.json");
    constants_ = read_weights(zip_, root_ + "data/constants/", "model_constants_config.json");
    program_.module = Module("__torch__.ExportedModule", unit_);
    read_graph(model["graph_module"]);
    return std::move(program_);
  }

 private:
  std::string model_file() const {
    const std::string folder = root_ + "models/";
    if (zip_.find(folder + "model.json")) return folder + "model.json";
    std::string found;
    for (const ZipEntry& e : zip_.entries()) {
      if (!e.name.starts_with(folder) || !e.name.ends_with(".json")) continue;
      CRESSET_CHECK(found.empty(), "export: an archive with one program was required; it has '", found, "' and '", e.name, "'.");
      found = e.name;
    }
    CRESSET_CHECK(!found.empty(), "export: damaged program: there is no graph in 'models/'.");
    return found;
  }

  void read_graph(const Field& graph_module) {
    const Field graph = graph_module["graph"], signature = graph_module["signature"];
    const std::vector<Field> calls = graph_module["module_call_graph"].items();
    if (calls.empty() || !calls[0].has("signature")) graph_module["module_call_graph"].fail("the signature of the program");
    const Field call = calls[0]["signature"];
    static const nlohmann::json none = nlohmann::json::object();
    const Field named_tuples = graph_module.has("treespec_namedtuple_fields") ? graph_module["treespec_namedtuple_fields"]
                                                                              : Field(none, "treespec_namedtuple_fields");
    program_.in_spec = parse_tree(call["in_spec"].text(), named_tuples);
    program_.out_spec = parse_tree(call["out_spec"].text(), named_tuples);
    const TreeSpec& in = program_.in_spec;
    if (in.kind != TreeSpec::Kind::Tuple || in.children.size() != 2 || in.children[0].kind != TreeSpec::Kind::Tuple ||
        in.children[1].kind != TreeSpec::Kind::Dict)
      call["in_spec"].fail("a tuple of positional inputs and a dictionary");

    tree_.emplace(program_.module, unit_);
    body_ = std::make_shared<Graph>();
    NodeReader nodes(body_);
    body_->addInput("self")->setType(program_.module.type());
    read_inputs(graph, signature["input_specs"], nodes, argument_names(call));
    nodes.read(graph);
    read_outputs(graph, signature["output_specs"], nodes);
    eliminate_common_subexpressions(body_);
    tracer::clean_up(body_);
    FunctionSchema schema = tracer::traced_schema(*body_, "forward");
    add_defaults(schema);
    const ClassTypePtr cls = program_.module.type();
    auto forward = make_intrusive<GraphFunction>(cls->name + ".forward", body_);
    forward->setSchema(std::move(schema));
    cls->addMethod(std::move(forward));
  }

  // Names of forward's arguments: those of the Python function, then the keywords.
  std::vector<std::string> argument_names(const Field& call) const {
    std::vector<std::string> names;
    const TreeSpec &positional = program_.in_spec.children[0], &keywords = program_.in_spec.children[1];
    const std::vector<Field> given = call.has("forward_arg_names") ? call["forward_arg_names"].items() : std::vector<Field>();
    for (std::size_t i = 0; i < positional.children.size(); ++i)
      names.push_back(i < given.size() ? given[i].text() : "arg_" + std::to_string(i));
    for (const IValue& key : keywords.keys) {
      if (!key.isString()) call["in_spec"].fail("names of keyword inputs");
      names.push_back(key.toStringRef());
    }
    return names;
  }

  void read_inputs(const Field& graph, const Field& specs, NodeReader& nodes, const std::vector<std::string>& names) {
    const std::vector<Field> all = specs.items();
    std::vector<std::string> leaf_places, leaf_names;
    places(program_.in_spec.children[0], "*args", leaf_places);
    places(program_.in_spec.children[1], "**kwargs", leaf_places);
    std::vector<TypePtr> types;
    for (const Field& spec : all) {
      auto [kind, value] = spec.variant();
      if (kind == "parameter" || kind == "buffer" || kind == "tensor_constant") {
        read_attribute(kind, value, nodes);
        continue;
      }
      CRESSET_CHECK(kind == "user_input" || kind == "constant_input", "export: inputs of kind '", kind, "' are not supported.");
      if (types.size() >= leaf_places.size()) spec.fail("as many inputs as the description of the call has");
      ExportCheck check{leaf_places[types.size()], std::nullopt, false, {}};
      std::string name;
      if (kind == "constant_input") {
        name = value["name"].text();
        types.push_back(read_constant(value["value"], check));
      } else {
        const auto [what, leaf] = value["arg"].variant();
        if (what == "as_tensor") {
          name = leaf["name"].text();
          check.tensor = true;
          check.sizes = sizes_of(graph["tensor_values"][name.c_str()]);
          types.push_back(nodes.tensor_type(graph, name));
        } else if (what == "as_sym_int" && leaf.has("as_name")) {
          name = leaf["as_name"].text();
          types.push_back(basic_type(TypeKind::Int));
        } else {
          types.push_back(read_constant(value["arg"], check));
        }
      }
      program_.inputs.push_back({kind, name, ""});
      leaf_names.push_back(check.constant ? "" : name);
      program_.checks.push_back(std::move(check));
    }
    if (types.size() != leaf_places.size()) specs.fail("as many inputs as the description of the call has");
    std::vector<TreeSpec> tops = program_.in_spec.children[0].children;
    tops.insert(tops.end(), program_.in_spec.children[1].children.begin(), program_.in_spec.children[1].children.end());
    std::vector<Value*> leaves;
    for (std::size_t i = 0; i < tops.size(); ++i) {
      std::size_t at = leaves.size();
      Value* input = body_->addInput(Value::isValidName(names[i]) ? names[i] : "");
      input->setType(type_of_tree(tops[i], types, at));
      take_apart(*body_, tops[i], input, types, leaves);
    }
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (leaf_names[i].empty()) continue;
      const bool is_input = leaves[i]->node() == body_->param_node();
      const std::string name = leaves[i]->debugName();
      nodes.define(leaf_names[i], leaves[i], specs);
      if (is_input) leaves[i]->setDebugName(name);  // inputs keep the names of the function's arguments
    }
  }

  TypePtr read_constant(const Field& value, ExportCheck& check) {
    const auto [kind, v] = value.variant();
    if (kind == "as_none")
      check.constant = IValue();
    else if (kind == "as_bool")
      check.constant = v.boolean();
    else if (kind == "as_int")
      check.constant = v.integer();
    else if (kind == "as_float")
      check.constant = v.number();
    else if (kind == "as_string")
      check.constant = v.text();
    else
      value.fail("an input of a kind that can be read ('" + kind + "' cannot)");
    return check.constant->type();
  }

  void read_attribute(const std::string& kind, const Field& value, NodeReader& nodes) {
    const bool parameter = kind == "parameter", buffer = kind == "buffer";
    const std::string target = value[parameter ? "parameter_name" : buffer ? "buffer_name" : "tensor_constant_name"].text();
    const bool persistent = !value.has("persistent") || value["persistent"].boolean();
    const auto& first = buffer || parameter ? weights_ : constants_;
    const auto& second = buffer || parameter ? constants_ : weights_;  // buffers that are not part of the state
    auto found = first.find(target);
    if (found == first.end()) {
      found = second.find(target);
      if (found == second.end()) value.fail("data of '" + target + "'");
    }
    tree_->set(target, found->second.tensor, parameter, buffer);
    const std::string name = value["arg"]["name"].text();
    Value* v = tree_->access(*body_, target);
    nodes.define(name, v, value);
    attributes_[target] = v;
    program_.inputs.push_back({parameter ? kind : buffer ? kind : "constant_tensor", name, target, persistent});
  }

  void read_outputs(const Field& graph, const Field& specs, NodeReader& nodes) {
    static const Symbol copy = Symbol::aten("copy_");
    const std::vector<Field> all = specs.items(), outputs = graph["outputs"].items();
    if (all.size() != outputs.size()) specs.fail("a description for each output");
    std::vector<Value*> leaves;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto [kind, value] = all[i].variant();
      Value* v = nodes.argument(outputs[i]);
      ExportArgument note{kind, v->debugName(), ""};
      if (kind == "user_output") {
        leaves.push_back(v);
      } else if (kind == "buffer_mutation" || kind == "parameter_mutation") {
        note.target = value[kind == "buffer_mutation" ? "buffer_name" : "parameter_name"].text();
        const auto target = attributes_.find(note.target);
        if (target == attributes_.end()) value.fail("a known attribute ('" + note.target + "')");
        body_->insert(copy, {target->second, v});
      } else if (kind == "user_input_mutation") {
        note.target = value["user_input_name"].text();
        body_->insert(copy, {nodes.find(value["user_input_name"]), v});
      } else {
        CRESSET_THROW(Error, "export: outputs of kind '", kind, "' are not supported.");
      }
      program_.outputs.push_back(std::move(note));
    }
    if (leaves.size() != program_.out_spec.leaves()) specs.fail("as many outputs as the description of the call has");
    std::size_t at = 0;
    body_->registerOutput(build(*body_, program_.out_spec, leaves, at));
  }

  // Inputs that are constants of the program may be left out.
  void add_defaults(FunctionSchema& schema) const {
    std::vector<Argument> arguments = schema.arguments();
    std::size_t leaf = 0, i = 1;
    for (const TreeSpec& part : program_.in_spec.children)
      for (const TreeSpec& top : part.children) {
        if (top.kind == TreeSpec::Kind::Leaf && program_.checks[leaf].constant)
          arguments[i].default_value = *program_.checks[leaf].constant;
        leaf += top.leaves();
        ++i;
      }
    schema = FunctionSchema(OperatorName{"forward", ""}, std::move(arguments), schema.returns());
  }

  const ZipReader& zip_;
  std::string root_;
  std::shared_ptr<CompilationUnit> unit_ = std::make_shared<CompilationUnit>();
  std::map<std::string, Weight> weights_, constants_;
  std::optional<ModuleTree> tree_;
  std::shared_ptr<Graph> body_;
  std::unordered_map<std::string, Value*> attributes_;
  ExportedProgram program_;
};

ExportedProgram read_program(const std::shared_ptr<const ZipReader>& zip) { return ProgramReader(*zip, root_of(*zip)).read(); }

}  // namespace
}  // namespace exported

ExportedProgram load_exported(const std::string& path) { return exported::read_program(ZipReader::open(path)); }
ExportedProgram load_exported_bytes(std::string bytes) { return exported::read_program(ZipReader::of_bytes(std::move(bytes))); }

}  // namespace cresset::jit
