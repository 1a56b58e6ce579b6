// The process group in Python: a Backend of cresset.distributed.
#include <pybind11/chrono.h>
#include <pybind11/pybind11.h>

#include <dlfcn.h>

#include <string>

#include "process_group.h"

PYBIND11_DECLARE_HOLDER_TYPE(T, cresset::intrusive_ptr<T>, true)

namespace py = pybind11;
using namespace cresset::distributed;

namespace {

/// The driver in a device's library, which is loaded already.
const simulated_driver& driver_in(const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  CRESSET_CHECK(handle, "scc: the library of a device that is in use was required; ", library, " is not loaded.");
  auto* const entry = reinterpret_cast<const simulated_driver* (*)()>(dlsym(handle, "simulated_driver_entry"));
  CRESSET_CHECK(entry, "scc: ", library, " has no driver. Build backends/simulated again.");
  return *entry();
}

cresset::intrusive_ptr<Backend> make(const cresset::intrusive_ptr<Store>& store, int rank, int size, std::chrono::milliseconds timeout,
                                     const std::string& device, const std::string& library) {
  const py::gil_scoped_release release;  // it waits for the other ranks
  return cresset::make_intrusive<simulated::SccGroup>(driver_in(library), cresset::Device(device).type(), store, rank, size, timeout);
}

}  // namespace

PYBIND11_MODULE(_process_group, m) {
  m.doc() = "The process group of the device `simulated`.";
  py::module_::import("cresset.distributed");  // has the classes Backend and Store
  m.def("make", &make, py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout"), py::arg("device"), py::arg("library"),
        py::keep_alive<0, 1>(), "Connects with the other ranks, which make the same call; RuntimeError for a library without a driver.");
}
