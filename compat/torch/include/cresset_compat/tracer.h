// torch/csrc/jit/frontend/tracer.h: is a trace running, and traces of functions of C++, under PyTorch's names.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <cresset_compat/script.h>

#include <cresset/ir/tracer.h>

namespace torch::jit::tracer {

using cresset::jit::tracer::TracingState;

inline const std::shared_ptr<TracingState>& getTracingState() { return cresset::jit::tracer::current(); }
/// Begins a trace on this thread, and with null ends it. A state that takes another's place ends that one's trace.
inline void setTracingState(std::shared_ptr<TracingState> state) {
  if (state && getTracingState()) cresset::jit::tracer::set_current(nullptr);
  cresset::jit::tracer::set_current(std::move(state));
}
inline bool isTracing() { return cresset::jit::tracer::is_tracing(); }
/// Ends the trace, whatever it has.
inline void abandon() { cresset::jit::tracer::set_current(nullptr); }
/// Nothing is recorded until the function that it returns is called.
inline std::function<void()> pauseTracing() {
  std::shared_ptr<TracingState> state = getTracingState();
  setTracingState(nullptr);
  return [state = std::move(state)] { setTracingState(state); };
}

/// The value that stands for a tensor, a container of them or a number; a constant for what the trace does not know.
inline Value* getValueTrace(const IValue& v) { return getTracingState()->value_of(v); }
/// From now on `value` stands for v.
inline void setValueTrace(const IValue& v, Value* value) { getTracingState()->bind(v, value); }
inline bool hasValueTrace(const at::Tensor& t) { return getTracingState()->find(t) != nullptr; }
inline void setOutput(Value* value, const at::Tensor& output) {
  if (output.defined()) setValueTrace(output, value);
}
inline void addOutput(Node* node, const at::Tensor& output) { setOutput(node->addOutput(), output); }
inline void addOutput(Node* node, const std::vector<at::Tensor>& list) {
  Value* const value = node->addOutput()->setType(ListType::ofTensors());
  setValueTrace(list, value);
}
/// What the user passed goes into the node as its next input; the name says what for, and is not kept.
inline void addInputs(Node* node, const char* /*name*/, const IValue& v) { node->addInput(getValueTrace(v)); }

/// Sizes as tensors that the trace knows.
inline at::Tensor getSizeOf(const at::Tensor& t, int64_t dim) { return cresset::jit::tracer::traced_size(t, dim); }
inline at::Tensor getNumelOf(const at::Tensor& t) { return cresset::jit::tracer::traced_numel(t); }

/// Runs the function on the inputs while its operators are recorded; gives the state, whose graph has an output for each result, and the
/// results. The names of values are not asked for: values have numbers. Lists and dictionaries are taken as results, strict or not. Of
/// modules the calls of those below them become methods.
inline std::pair<std::shared_ptr<TracingState>, Stack> trace(Stack inputs, const std::function<Stack(Stack)>& traced_fn,
                                                             const std::function<std::string(const at::Tensor&)>& /*var_name_lookup_fn*/,
                                                             bool /*strict*/ = true, bool force_outplace = false, Module* self = nullptr,
                                                             const std::vector<std::string>& argument_names = {}) {
  const auto state = std::make_shared<TracingState>(self ? self->_ivalue() : nullptr);
  state->force_outplace = force_outplace;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    inputs[i] = state->add_input(i < argument_names.size() ? argument_names[i] : "", inputs[i]);
  cresset::jit::tracer::set_current(state);  // raises inside of another trace
  struct End {
    ~End() { cresset::jit::tracer::set_current(nullptr); }
  };
  Stack outputs;
  {
    const End end;
    outputs = traced_fn(std::move(inputs));
    for (const IValue& output : outputs) state->set_output(output);
  }
  if (self) state->make_methods();
  cresset::jit::tracer::clean_up(state->graph);
  return {state, std::move(outputs)};
}

}  // namespace torch::jit::tracer
