#include "python/python_kernel.h"

#include <cresset/core/tensor_impl.h>

#include "python/convert.h"

namespace cresset::python {

Ref argument_to_python(const IValue& v, const Type& type) {
  const Type& t = type.kind == TypeKind::Optional ? *type.element() : type;
  if (v.isInt()) {
    if (t.kind == TypeKind::ScalarType) return checked(wrap_dtype(v.toScalarType()));
    if (t.kind == TypeKind::Layout) return checked(wrap_layout(v.toLayout()));
    if (t.kind == TypeKind::MemoryFormat) return checked(wrap_memory_format(v.toMemoryFormat()));
  }
  if (v.isTensor()) {
    const Tensor tensor = v.toTensor();
    if (tensor.defined() && tensor.unsafeGetTensorImpl()->is_wrapped_number()) return checked(item_of(tensor));
  }
  return checked(to_python(v, false));
}

void replace_by_results(const FunctionSchema& schema, PyObject* result, Stack& stack) {
  drop(stack, schema.arguments().size());
  const auto& returns = schema.returns();
  const auto what = [&] { return schema.operator_name().str(); };
  const auto push_result = [&](PyObject* o, const Type& type) {
    if (o == Py_None && type.kind == TypeKind::Tensor) {
      stack.emplace_back(Tensor());
      return;
    }
    if (!fits(o, type))
      CRESSET_THROW(Error, what(), ": Unable to cast the Python kernel's result of type ", type_name(Py_TYPE(o)), " to the schema's '",
                    type, "'. Return what the schema declares: ", schema.str());
    stack.push_back(to_fitting_ivalue(o, type));
  };
  if (returns.empty()) return;
  if (returns.size() == 1) {
    push_result(result, *returns[0].type);
    return;
  }
  CRESSET_CHECK(PyTuple_Check(result) || PyList_Check(result), what(), ": the Python kernel must return a tuple of ", returns.size(),
                " values; it returned a ", type_name(Py_TYPE(result)), ".");
  const Ref items = checked(PySequence_Fast(result, ""));
  CRESSET_CHECK(static_cast<std::size_t>(PySequence_Fast_GET_SIZE(items.get())) == returns.size(), what(),
                ": the Python kernel must return ", returns.size(), " values; it returned ",
                static_cast<int64_t>(PySequence_Fast_GET_SIZE(items.get())), ".");
  for (std::size_t i = 0; i < returns.size(); ++i)
    push_result(PySequence_Fast_GET_ITEM(items.get(), static_cast<Py_ssize_t>(i)), *returns[i].type);
}

}  // namespace cresset::python
