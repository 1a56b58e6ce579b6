// The extension module cresset._C_distributed: stores, options, work, process groups.
#include "python/distributed/casters.h"

namespace cresset::python {

namespace {

/// The Python class of each kind of error; borrowed from the module, which lives as long as the process.
PyObject *dist_error, *backend_error, *store_error, *queue_empty_error, *network_error;

PyObject* add_error(py::module_& module, const char* name, PyObject* base, const char* doc) {
  PyObject* cls = PyErr_NewExceptionWithDoc((std::string("cresset.distributed.") + name).c_str(), doc, base, nullptr);
  if (!cls) throw py::error_already_set();
  module.attr(name) = py::reinterpret_borrow<py::object>(cls);
  return cls;
}

void init_errors_of_communication(py::module_& module) {
  dist_error = add_error(module, "DistError", PyExc_RuntimeError, "Communication between processes failed.");
  backend_error = add_error(module, "DistBackendError", dist_error, "A backend failed: a rank is gone or late.");
  store_error = add_error(module, "DistStoreError", dist_error, "A store failed, or did not get a key in time.");
  queue_empty_error = add_error(module, "QueueEmptyError", store_error, "A queue of a store is empty.");
  network_error = add_error(module, "DistNetworkError", dist_error, "A connection could not be made, or broke.");
  py::register_exception_translator([](std::exception_ptr p) {
    try {
      if (p) std::rethrow_exception(p);
    } catch (const QueueEmptyError& e) {
      PyErr_SetString(queue_empty_error, e.what());
    } catch (const DistStoreError& e) {
      PyErr_SetString(store_error, e.what());
    } catch (const DistNetworkError& e) {
      PyErr_SetString(network_error, e.what());
    } catch (const DistBackendError& e) {
      PyErr_SetString(backend_error, e.what());
    } catch (const DistError& e) {
      PyErr_SetString(dist_error, e.what());
    } catch (const Error&) {
      translate_exception();
    } catch (const ErrorAlreadySet&) {
      translate_exception();
    }
  });
}

}  // namespace

}  // namespace cresset::python

PYBIND11_MODULE(_C_distributed, m) {
  m.doc() = "Stores, work and process groups of cresset.distributed.";
  py::module_::import("cresset._C");
  cresset::python::init_errors_of_communication(m);
  cresset::python::init_stores(m);
  cresset::python::init_works(m);
  cresset::python::init_groups(m);
}
