// Running graphs: flat code on frames of registers.
//
// Values of type int, float and bool live unboxed in one register file, all others as IValues in another. Frames come from an arena of
// the thread, so that a call allocates nothing once it has run before. Code is immutable: any number of threads may run it, and operators
// may call back into it.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <cresset/dispatch/script_values.h>
#include <cresset/ir/ir.h>
#include <cresset/ir/script_effects.h>

namespace cresset::jit {

/// Compiled code of a graph. The graph is kept alive and must not change any more.
class CRESSET_API Code {
 public:
  /// Raises for a graph that is not well formed (Graph::lint) and nodes that cannot run (unknown operators, opaque Python calls), naming
  /// the node and its place.
  static std::shared_ptr<const Code> compile(std::shared_ptr<const Graph> graph, std::string function_name = "graph");
  ~Code();
  Code(const Code&) = delete;
  /// Takes the inputs off the stack and leaves the outputs. An error carries the script's stack below its message.
  void run(Stack& stack) const;
  std::size_t num_inputs() const;
  std::size_t num_outputs() const;
  /// The instructions, one a line.
  std::string dump() const;
  struct Impl;

 private:
  explicit Code(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Runs a graph once.
CRESSET_API std::vector<IValue> run_graph(const std::shared_ptr<const Graph>& graph, std::vector<IValue> inputs);

/// Does the value belong to the type, as prim::isinstance and guards mean it?
CRESSET_API bool value_is_of_type(const IValue& v, const Type& type);

/// Runs prim::PythonOp nodes; the bindings install one.
using PythonOpHandler = std::function<void(const Node&, Stack&)>;
CRESSET_API void set_python_op_handler(PythonOpHandler handler);

}  // namespace cresset::jit
