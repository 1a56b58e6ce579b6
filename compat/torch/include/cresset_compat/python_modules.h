// torch::python::bind_module: modules of the C++ front end in Python.
#pragma once

#include <sstream>

#include <cresset_compat/nn.h>
#include <cresset_compat/python.h>

namespace torch::python {

template <class M>
using PyModuleClass = py::class_<M, nn::Module, std::shared_ptr<M>>;

namespace detail {

// The class behind all bound modules, of one extension: what cresset.nn.cpp.ModuleWrapper asks a module for.
inline void bind_base(py::module_ place) {
  if (py::detail::get_local_type_info(typeid(nn::Module))) return;
  py::class_<nn::Module, std::shared_ptr<nn::Module>>(place, "Module", py::module_local())
      .def("_own_parameters", [](const nn::Module& m) { return m.named_parameters(false).pairs(); })
      .def("_own_buffers", [](const nn::Module& m) { return m.named_buffers(false).pairs(); })
      .def("_own_modules", [](const nn::Module& m) { return m.named_children().pairs(); })
      .def("_address", [](const nn::Module& m) { return reinterpret_cast<std::uintptr_t>(&m); })
      .def("_is_training", [](const nn::Module& m) { return m.is_training(); })
      .def("_train", [](nn::Module& m, bool on) { m.train(on); })
      .def("_clone", [](const nn::Module& m) { return m.clone(); })
      .def("__repr__", [](const nn::Module& m) {
        std::ostringstream text;
        m.pretty_print(text);
        return text.str();
      });
}

}  // namespace detail

/// Binds a subclass of nn::Module under `name`. In Python it is an nn.Module (cresset.nn.cpp.ModuleWrapper) with parameters, buffers,
/// children, train, to, state_dict and the rest; the class that comes back takes constructors and further methods:
///   torch::python::bind_module<Net>(m, "Net").def(py::init<int64_t, int64_t>()).def("forward", &Net::forward);
/// A `forward` that is one function, neither overloaded nor a template, is bound already.
template <class M>
PyModuleClass<M> bind_module(py::module_ module, const char* name) {
  py::module_ place = module.def_submodule("cpp");
  detail::bind_base(place);
  PyModuleClass<M> bound(place, name);
  if constexpr (requires { bound.def("forward", &M::forward); }) bound.def("forward", &M::forward);
  module.attr(name) = py::module_::import("cresset.nn.cpp").attr("_wrapper_class")(name, bound);
  return bound;
}

}  // namespace torch::python
