// Types of tensors in graphs, for programs that state what the inputs are: PyTorch's names over the pass infer_types.
#include <cresset/ir/pass.h>

#include "python/convert.h"
#include "python/graph/ir.h"

namespace cresset::python {

namespace {

using GraphRef = std::shared_ptr<Graph>;

void infer(const GraphRef& g) { jit::find_pass("infer_types")->run(g); }

// All but those of the inputs.
void erase_inner_types(const GraphRef& g) {
  std::vector<TypePtr> types;
  for (const Value* v : g->inputs()) types.push_back(v->type());
  jit::find_pass("erase_types")->run(g);
  for (std::size_t i = 0; i < types.size(); ++i) g->inputs()[i]->setType(types[i]);
}

// Inputs behind `self` are like these values.
void complete(const GraphRef& g, const std::vector<PyObject*>& examples) {
  std::vector<Value*> inputs = g->inputs();
  if (inputs.size() == examples.size() + 1 && inputs[0]->type()->kind == TypeKind::Object) inputs.erase(inputs.begin());
  CRESSET_CHECK(inputs.size() == examples.size(), "a graph of ", examples.size(), " inputs was required; this one has ", inputs.size(),
                ".");
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (is_tensor(examples[i]) && inputs[i]->type()->kind == TypeKind::Tensor) inputs[i]->inferTypeFrom(unwrap(examples[i]));
  infer(g);
}

}  // namespace

void init_script_types(PyObject* module) {
  constexpr std::pair<const char*, const char*> kNames[] = {{"_jit_pass_propagate_shapes_on_graph", "_jit_pass_infer_types"},
                                                            {"_jit_pass_propagate_dtype", "_jit_pass_infer_types"},
                                                            {"_jit_pass_erase_shape_information", "_jit_pass_erase_types"}};
  for (const auto& [name, pass] : kNames)
    checked(PyObject_SetAttrString(module, name, checked(PyObject_GetAttrString(module, pass)).get()));
  def(
      module, "_jit_pass_complete_shape_analysis", [](GraphRef g, std::vector<PyObject*> examples, bool) { complete(g, examples); },
      "Types of all tensors, with inputs like these.");
  def(
      module, "_jit_erase_non_input_shape_information", [](GraphRef g) { erase_inner_types(g); },
      "Forgets what types say of tensors, but for the inputs.");
}

}  // namespace cresset::python
