// GraphExecutor: a graph that runs, without a function around it.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include <cresset/ir/interpreter.h>

namespace cresset::jit {

/// Compiles a copy of the graph when it first runs.
class GraphExecutor {
 public:
  GraphExecutor() = default;
  GraphExecutor(const std::shared_ptr<Graph>& graph, std::string function_name)
      : state_(std::make_shared<State>(graph->copy(), std::move(function_name))) {}
  /// Takes the inputs off the stack and leaves the outputs.
  void run(Stack& inputs) { state_->code().run(inputs); }
  /// The same here and now, as a completed future; what it forks goes to the launcher.
  intrusive_ptr<ivalue::Future> runAsync(Stack& inputs, TaskLauncher launcher = nullptr) {
    return InterpreterState(state_->code(), std::move(launcher)).runAsync(inputs);
  }
  std::shared_ptr<Graph> graph() const { return state_->graph; }
  explicit operator bool() const { return state_ != nullptr; }

 private:
  struct State {
    State(std::shared_ptr<Graph> g, std::string n) : graph(std::move(g)), name(std::move(n)) {}
    const Code& code() {
      std::call_once(once, [this] { compiled = Code::compile(graph->copy(), name); });
      return *compiled;
    }
    std::shared_ptr<Graph> graph;
    std::string name;
    std::once_flag once;
    std::shared_ptr<const Code> compiled;
  };
  std::shared_ptr<State> state_;
};

}  // namespace cresset::jit
