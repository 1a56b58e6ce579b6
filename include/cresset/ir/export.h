// Programs of torch.export (.pt2 files): a graph of core operators, weights and constants, as the same IR as scripts.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <cresset/ir/module.h>

namespace cresset::jit {

/// Nested containers of a program's inputs or outputs, in PyTorch's words.
struct CRESSET_API TreeSpec {
  enum class Kind { Leaf, Tuple, List, Dict, NamedTuple };
  Kind kind = Kind::Leaf;
  std::vector<IValue> keys;         // of dictionaries
  std::string name;                 // of named tuples
  std::vector<std::string> fields;  // of named tuples
  std::vector<TreeSpec> children;
  std::size_t leaves() const;
  /// "(*, {'k': *})".
  std::string str() const;
};

/// One input or output of the flat graph: a kind ("parameter", "buffer", "constant_tensor", "user_input", "constant_input"; "user_output",
/// "buffer_mutation", "user_input_mutation"), its name in the graph, and the attribute it stands for.
struct ExportArgument {
  std::string kind, name, target;
  bool persistent = true;
};

/// A symbol of a size and where it lies.
struct RangeConstraint {
  std::optional<int64_t> least, most;
};

/// What a user's input must be: a tensor with these sizes (numbers, or expressions of symbols), or exactly a constant.
struct ExportCheck {
  std::string place;  // "*args[0]['k']"
  std::optional<IValue> constant;
  bool tensor = false;
  std::vector<std::variant<int64_t, std::string>> sizes;
};

struct CRESSET_API ExportedProgram {
  /// Parameters, buffers and constants by their paths; forward takes the positional inputs and then the keyword inputs.
  Module module;
  std::vector<ExportArgument> inputs, outputs;
  std::map<std::string, RangeConstraint> range_constraints;
  TreeSpec in_spec, out_spec;       // in_spec: a tuple of positional inputs and a dictionary
  std::vector<ExportCheck> checks;  // one a leaf of in_spec
  int64_t schema_major = 0, schema_minor = 0;

  std::shared_ptr<Graph> graph() const { return module.get_method("forward").graph(); }
  /// Checks the inputs against the sizes and ranges that the program was exported for, and runs it.
  IValue operator()(Stack arguments, const Kwargs& kwargs = {}) const;
  /// The check alone; `arguments` are those of forward without self.
  void check_inputs(const Stack& arguments) const;
};

/// Reads a program. Nothing in the file is run; damaged and foreign files raise an error that says what is wrong.
CRESSET_API ExportedProgram load_exported(const std::string& path);
CRESSET_API ExportedProgram load_exported_bytes(std::string bytes);

}  // namespace cresset::jit
