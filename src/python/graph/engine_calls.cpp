// The short way from a compiled function into its engine: without the script around it, and with the question whether the weights that the
// engine holds are still what they were.
#include <algorithm>
#include <optional>

#include <cresset/engine/engine.h>

#include "python/convert.h"
#include "python/graph/ir.h"
#include "python/graph/lowering_settings.h"
#include "python/held_weights.h"

namespace cresset::python {

void init_engine_calls(PyObject* module);

namespace {

// What a module of one engine and nothing else is.
struct LoneEngine {
  intrusive_ptr<engine::Engine> engine;
  std::vector<uint32_t> inputs;   // which of the module's are the engine's
  std::vector<uint32_t> outputs;  // which of the engine's are the module's
};

// Where each of some values stands among others; nothing when one is not there.
std::optional<std::vector<uint32_t>> places_of(jit::ArrayRef<Value*> values, jit::ArrayRef<Value*> among) {
  std::vector<uint32_t> out;
  for (const Value* v : values) {
    const auto found = std::find(among.begin(), among.end(), v);
    if (found == among.end()) return std::nullopt;
    out.push_back(static_cast<uint32_t>(found - among.begin()));
  }
  return out;
}

// The graph of such a module: self.engine_0 runs on a list, whose members are a tuple then.
std::optional<LoneEngine> lone_engine(const jit::Module& module) {
  const std::shared_ptr<Graph> graph = module.get_method("forward").graph();
  const Node *engine = nullptr, *list = nullptr, *run = nullptr, *parts = nullptr, *tuple = nullptr;
  for (const Node* n : graph->nodes()) {
    const auto kind = n->kind();
    const Node** place = kind == jit::prim::GetAttr                                  ? &engine
                         : kind == jit::prim::ListConstruct                          ? &list
                         : kind == jit::prim::ListUnpack                             ? &parts
                         : kind == jit::prim::TupleConstruct                         ? &tuple
                         : kind == Symbol::fromQualString("cresset::execute_engine") ? &run
                                                                                     : nullptr;
    if (!place || *place) return std::nullopt;
    *place = n;
  }
  if (!engine || !list || !run || !parts || !tuple) return std::nullopt;
  const auto given = graph->inputs();
  const bool joined = engine->input(0) == given[0] && run->input(0) == list->output() && run->input(1) == engine->output() &&
                      parts->input(0) == run->output() && graph->outputs().size() == 1 && graph->outputs()[0] == tuple->output();
  if (!joined) return std::nullopt;
  const auto inputs = places_of(list->inputs(), given), outputs = places_of(tuple->inputs(), parts->outputs());
  if (!inputs || !outputs || std::find(inputs->begin(), inputs->end(), 0U) != inputs->end()) return std::nullopt;
  LoneEngine out{module.attr(engine->s(jit::attr::name)).toCustomClass<engine::Engine>(), *inputs, *outputs};
  for (uint32_t& i : out.inputs) --i;  // without self
  return out;
}

constexpr const char* kName = "cresset.engine_call";

struct EngineCall {
  LoneEngine lone;
  Ref held;  // null without weights
  std::vector<uint32_t> places;
};

// The results of a list of tensors, as a list; None where held weights changed.
PyObject* run_engine(PyObject* self, PyObject* list) {
  CRESSET_PY_TRY
  const auto* call = static_cast<const EngineCall*>(PyCapsule_GetPointer(self, kName));
  if (!call) throw ErrorAlreadySet();
  CRESSET_CHECK_TYPE(PyList_Check(list), "a list of tensors was required.");
  const auto size = static_cast<std::size_t>(PyList_GET_SIZE(list));
  const auto fits = [&](uint32_t i) { return i < size && is_tensor(PyList_GET_ITEM(list, i)); };
  CRESSET_CHECK_TYPE(
      std::all_of(call->lone.inputs.begin(), call->lone.inputs.end(), fits) && std::all_of(call->places.begin(), call->places.end(), fits),
      "a list of tensors was required, one for each input.");
  if (call->held && !weights_unchanged(call->held.get(), list, call->places)) return Py_NewRef(Py_None);
  std::vector<Tensor> inputs;
  inputs.reserve(call->lone.inputs.size());
  for (const uint32_t i : call->lone.inputs) inputs.push_back(unwrap(PyList_GET_ITEM(list, i)));
  std::vector<Tensor> results = without_lock(true, [&] { return call->lone.engine->run(inputs); });
  const Ref out = checked(PyList_New(static_cast<Py_ssize_t>(call->lone.outputs.size())));
  for (std::size_t i = 0; i < call->lone.outputs.size(); ++i)
    PyList_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), checked(wrap(results[call->lone.outputs[i]])).release());
  return Py_NewRef(out.get());
  CRESSET_PY_CATCH(nullptr)
}
PyMethodDef run_engine_method{"run", &run_engine, METH_O, "Runs the engine on a list of tensors."};

}  // namespace

void init_engine_calls(PyObject* module) {
  // A function of a list of tensors that gives a list; None for a module that is more than one engine. With weights, what _weights_held
  // gave, `places` are where they stand in the list, the module's inputs are the others, and the function gives None when a weight changed.
  def(module, "_engine_call", [](PyObject* m, std::optional<PyObject*> held, std::optional<std::vector<int64_t>> places) {
    std::optional<LoneEngine> lone = lone_engine(module_of(m));
    if (!lone) return Object(Py_NewRef(Py_None));
    auto call = std::make_unique<EngineCall>(EngineCall{std::move(*lone), held ? Ref::borrow(*held) : Ref(), {}});
    if (held) {
      const std::vector<int64_t> given = places.value_or(std::vector<int64_t>());
      call->places.assign(given.begin(), given.end());
      for (uint32_t& i : call->lone.inputs) {  // the i-th of those that are no weights
        uint32_t at = 0;
        for (uint32_t left = i;; ++at)
          if (std::find(given.begin(), given.end(), at) == given.end() && left-- == 0) break;
        i = at;
      }
    }
    const Ref self =
        checked(PyCapsule_New(call.release(), kName, [](PyObject* c) { delete static_cast<EngineCall*>(PyCapsule_GetPointer(c, kName)); }));
    return Object(PyCFunction_New(&run_engine_method, self.get()));
  });
}

}  // namespace cresset::python
