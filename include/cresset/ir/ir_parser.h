// Reading IR text. Printing (Graph::toString) and reading are exact inverses.
#pragma once

#include <cresset/ir/class_type.h>
#include <cresset/ir/ir.h>

namespace cresset::jit {

struct ParseOptions {
  /// `<Tensor>` of a complete type reads as zeros; otherwise it is an error, because the contents are lost.
  bool parse_tensor_constants = false;
  /// Classes by name; unknown ones are opaque.
  TypeResolver resolver;
  /// Functions by name for constants of functions; may be null.
  std::function<intrusive_ptr<ivalue::FunctionBase>(const std::string&)> functions;
  std::string filename;
};

/// The classes, enums and named tuples that a graph mentions; for reading the text of a graph of another program (an archive).
CRESSET_API TypeResolver types_in(const Graph& g);

/// Reads a graph with its subgraph and constant sections. Errors name line and column and show the line. `names` receives the values by
/// their names in the text.
CRESSET_API std::shared_ptr<Graph> parse_ir(std::string_view text, const ParseOptions& options = {},
                                            std::unordered_map<std::string, Value*>* names = nullptr);

/// Reads a text into a graph; `values` receives its values by their names in the text. As with PyTorch's function of this name, inputs keep
/// their names and results of nodes have numbers.
CRESSET_API void parseIR(const std::string& text, Graph* graph, bool parse_tensor_constants = false);
CRESSET_API void parseIR(const std::string& text, Graph* graph, std::unordered_map<std::string, Value*>& values,
                         bool parse_tensor_constants = false);

}  // namespace cresset::jit
