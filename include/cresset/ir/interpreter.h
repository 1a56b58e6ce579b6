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

/// Compiled code of a graph. The graph is kept alive and must not change any more. Copies are the same code.
class CRESSET_API Code {
 public:
  Code() = default;
  /// As compile(), of a copy of the graph.
  Code(const std::shared_ptr<Graph>& graph, std::string function_name);
  /// Raises for a graph that is not well formed (Graph::lint) and nodes that cannot run (unknown operators, opaque Python calls), naming
  /// the node and its place.
  static std::shared_ptr<const Code> compile(std::shared_ptr<const Graph> graph, std::string function_name = "graph");
  /// Takes the inputs off the stack and leaves the outputs. An error carries the script's stack below its message.
  void run(Stack& stack) const;
  std::size_t num_inputs() const;
  std::size_t num_outputs() const;
  /// The instructions, one a line.
  std::string dump() const;
  /// The graph that runs.
  std::shared_ptr<Graph> graph() const;
  explicit operator bool() const { return impl_ != nullptr; }
  friend bool operator==(const Code& a, const Code& b) { return a.impl_ == b.impl_; }
  struct Impl;

 private:
  explicit Code(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

/// Code, run under PyTorch's names. Calls do not know of each other: nothing is kept between them.
class CRESSET_API InterpreterState {
 public:
  /// With a launcher, what the code forks is given to it.
  explicit InterpreterState(Code code, TaskLauncher launcher = nullptr) : code_(std::move(code)), launcher_(std::move(launcher)) {}
  /// Takes the inputs off the stack and leaves the outputs.
  void run(Stack& stack);
  /// The same here and now; what it gives, or raises, is in the future, which is complete. Several outputs are a tuple.
  intrusive_ptr<ivalue::Future> runAsync(Stack& stack);

 private:
  Code code_;
  TaskLauncher launcher_;
};

/// Runs a graph once.
CRESSET_API std::vector<IValue> run_graph(const std::shared_ptr<const Graph>& graph, std::vector<IValue> inputs);

/// Does the value belong to the type, as prim::isinstance and guards mean it?
CRESSET_API bool value_is_of_type(const IValue& v, const Type& type);

/// Runs prim::PythonOp nodes; the bindings install one.
using PythonOpHandler = std::function<void(const Node&, Stack&)>;
CRESSET_API void set_python_op_handler(PythonOpHandler handler);

}  // namespace cresset::jit
