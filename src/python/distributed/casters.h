// pybind11 casters of tensors and devices, and what the parts of cresset._C_distributed share.
#pragma once

#include <pybind11/chrono.h>
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <cresset/distributed/backend.h>

#include "python/bind.h"

PYBIND11_DECLARE_HOLDER_TYPE(T, cresset::intrusive_ptr<T>, true)

namespace py = pybind11;

namespace cresset::python {

/// What an object of Python holds: an intrusive_ptr that can also begin with a new object, as pybind11 asks. It adds no members, so that
/// modules that only know intrusive_ptr read it.
template <class T>
struct Held : intrusive_ptr<T> {
  explicit Held(T* p) : intrusive_ptr<T>(p->use_count() ? intrusive_ptr<T>::reclaim_copy(p) : intrusive_ptr<T>(std::unique_ptr<T>(p))) {}
  Held(intrusive_ptr<T> p) : intrusive_ptr<T>(std::move(p)) {}
};

}  // namespace cresset::python

PYBIND11_DECLARE_HOLDER_TYPE(T, cresset::python::Held<T>, true)

namespace pybind11::detail {

template <>
struct type_caster<cresset::Tensor> {
  PYBIND11_TYPE_CASTER(cresset::Tensor, const_name("torch.Tensor"));
  bool load(handle source, bool) {
    if (!cresset::python::is_tensor(source.ptr())) return false;
    value = cresset::python::unwrap(source.ptr());
    return true;
  }
  static handle cast(const cresset::Tensor& t, return_value_policy, handle) {
    return t.defined() ? cresset::python::wrap(t) : none().release().ptr();
  }
};
template <>
struct type_caster<cresset::Device> {
  static constexpr auto name = const_name("torch.device");
  template <class U>
  using cast_op_type = cresset::Device;
  operator cresset::Device() { return *value_; }
  bool load(handle source, bool) {
    try {
      value_.emplace(cresset::python::to_device(source.ptr()));
    } catch (...) {
      PyErr_Clear();
      return false;
    }
    return true;
  }
  static handle cast(const cresset::Device& d, return_value_policy, handle) { return cresset::python::wrap_device(d); }

 private:
  std::optional<cresset::Device> value_;
};

}  // namespace pybind11::detail

namespace cresset::python {

/// Lets other threads run while a call blocks, and Ctrl-C stop it.
using Unlocked = py::call_guard<GilRelease>;

/// cresset.futures.Future of a future in C++.
py::object to_python_future(intrusive_ptr<ivalue::Future> future);

void init_stores(py::module_& module);
void init_works(py::module_& module);
void init_groups(py::module_& module);

}  // namespace cresset::python
