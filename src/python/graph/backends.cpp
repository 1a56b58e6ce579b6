// Modules for backends that take whole modules.
#include <cresset/ir/backend.h>

#include "python/bind.h"
#include "python/convert.h"
#include "python/graph/script_convert.h"

namespace cresset::python {
namespace {

// The class of an attribute becomes another one, also where graphs of the hierarchy read it.
void replace_submodule(const jit::Module& root, const jit::Module& parent, const std::string& name, const jit::Module& by) {
  const TypePtr from = parent.attr(name).type(), to = by.type();
  parent.type()->unsafeChangeAttributeType(name, to);
  parent._ivalue()->set_slot(parent.type()->getAttributeSlot(name), IValue(by._ivalue()));
  for (const jit::Module& m : root.modules())
    for (jit::Function* f : m.type()->methods()) {
      jit::GraphFunction* function = jit::tryToGraphFunction(*f);
      if (!function) continue;
      bool changed = false;
      function->graph()->block()->visit([&](jit::Node* n) {
        for (jit::Value* v : n->outputs())
          if (*v->type() == *from) {
            v->setType(to);
            changed = true;
          }
      });
      if (changed) function->invalidate();
    }
}

// Python makes the module.
Object made_by(const char* function, PyObject* a, PyObject* b, PyObject* c) {
  const Ref package = checked(PyImport_ImportModule("cresset.jit._backends"));
  return Object(checked(PyObject_CallMethod(package.get(), function, "OOO", a, b, c)).release());
}

}  // namespace

void init_backends(PyObject* module) {
  def(module, "_jit_to_backend", [](PyObject* backend, PyObject* m, PyObject* spec) { return made_by("to_backend", backend, m, spec); });
  def(module, "_jit_to_backend_selective",
      [](PyObject* m, PyObject* lower, PyObject* paths) { return made_by("to_backend_selective", m, lower, paths); });
  def(module, "_jit_backend_preprocess", [](std::string backend, PyObject* m, PyObject* spec) {
    const IValue methods = to_ivalue(spec, *dict_of(basic_type(TypeKind::String), basic_type(TypeKind::Any)), "method_compile_spec");
    return Object(to_python(jit::backend_preprocess(backend, jit::Module(object_of(m)._ivalue()), methods.toGenericDict()), false));
  });
  def(module, "_jit_replace_submodule", [](PyObject* root, PyObject* parent, std::string name, PyObject* by) {
    replace_submodule(jit::Module(object_of(root)._ivalue()), jit::Module(object_of(parent)._ivalue()), name,
                      jit::Module(object_of(by)._ivalue()));
  });
}

}  // namespace cresset::python
