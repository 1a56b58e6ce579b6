// Reductions, options, work and its future in Python.
#include <cresset/distributed/device_work.h>

#include "python/convert.h"
#include "python/distributed/casters.h"

namespace cresset::python {

using namespace cresset::distributed;

namespace {

/// The exception that a C++ exception is in Python; None for none.
py::object to_python_exception(std::exception_ptr p) {
  if (!p) return py::none();
  try {
    std::rethrow_exception(p);
  } catch (const DistBackendError& e) {
    return py::module_::import("cresset._C_distributed").attr("DistBackendError")(e.what());
  } catch (...) {
    translate_exception();
  }
  const py::error_already_set error;
  return py::reinterpret_borrow<py::object>(error.value());
}

}  // namespace

py::object to_python_future(intrusive_ptr<ivalue::Future> future) {
  py::object result = py::module_::import("cresset.futures").attr("Future")();
  // Held for the callback, which may run on any thread and ends its life there.
  auto* held = new py::object(result);
  const py::gil_scoped_release release;
  future->then([held](ivalue::Future& f) {
    const GilAcquire lock;
    try {
      if (const auto error = f.exception_ptr())
        held->attr("set_exception")(to_python_exception(error));
      else
        held->attr("set_result")(py::reinterpret_steal<py::object>(to_python(f.value(), false)));
    } catch (py::error_already_set& e) {
      e.discard_as_unraisable("a future of cresset.distributed");
    }
    delete held;
  });
  return result;
}

namespace {

/// A future of work in a stream: it has its value at once, and who uses it comes after the work in streams, not on the host.
py::object future_of_stream(DeviceWork& work) {
  const Device device = work.stream().device();
  const py::object made = py::module_::import("cresset.futures").attr("Future")(py::arg("devices") = py::make_tuple(device));
  const StreamGuard other(impl::getDeviceGuardImpl(device.type())->getStreamFromGlobalPool(device));
  without_lock(true, [&] { work.synchronize(); });
  made.attr("set_result")(work.result());
  return made;
}

/// Work that a Python class does.
class PythonWork : public Work {
 public:
  using Work::Work;
  bool wait(std::chrono::milliseconds timeout) override { PYBIND11_OVERRIDE(bool, Work, wait, timeout); }
  bool isCompleted() override { PYBIND11_OVERRIDE_NAME(bool, Work, "is_completed", isCompleted); }
};

template <class Options>
auto bind_options(py::module_& module, const char* name) {
  return py::class_<Options>(module, name)
      .def(py::init<>())
      .def_readwrite("timeout", &Options::timeout)
      .def_readwrite("asyncOp", &Options::asyncOp);
}

/// A class of classes whose instances' isinstance also takes the kinds themselves: ReduceOp.SUM is a ReduceOp.
py::object class_of_reduce_op() {
  py::dict body;
  body["__instancecheck__"] = py::cpp_function(
      [](const py::object& self, const py::object& value) {
        auto* const cls = reinterpret_cast<PyTypeObject*>(self.ptr());
        return PyType_IsSubtype(Py_TYPE(value.ptr()), cls) != 0 || py::type::of(value).is(self.attr("RedOpType"));
      },
      py::is_method(py::none()));
  const auto base = py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(py::detail::get_internals().default_metaclass));
  return py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(&PyType_Type))("ReduceOpClass", py::make_tuple(base), body);
}

void bind_reduce_op(py::module_& module) {
  py::class_<ReduceOp> op(module, "ReduceOp", py::metaclass(class_of_reduce_op()), "How values of several ranks become one.");
  py::enum_<ReduceOp::RedOpType>(op, "RedOpType")
      .value("SUM", ReduceOp::SUM)
      .value("AVG", ReduceOp::AVG)
      .value("PRODUCT", ReduceOp::PRODUCT)
      .value("MIN", ReduceOp::MIN)
      .value("MAX", ReduceOp::MAX)
      .value("BAND", ReduceOp::BAND)
      .value("BOR", ReduceOp::BOR)
      .value("BXOR", ReduceOp::BXOR)
      .value("PREMUL_SUM", ReduceOp::PREMUL_SUM)
      .export_values();
  op.def(py::init<ReduceOp::RedOpType>())
      .def_readwrite("op", &ReduceOp::op_)
      .def(
          "__eq__", [](const ReduceOp& a, ReduceOp::RedOpType b) { return a == b; }, py::is_operator())
      .def(
          "__eq__", [](const ReduceOp& a, const ReduceOp& b) { return a == b; }, py::is_operator())
      .def("__hash__", [](const ReduceOp& a) { return static_cast<int>(a.op_); })
      .def("__repr__", [](const ReduceOp& a) { return py::repr(py::cast(a.op_)); })
      .def("__copy__", [](const ReduceOp& a) { return a; })
      .def("__deepcopy__", [](const ReduceOp& a, const py::dict&) { return a; })
      .def(py::pickle([](const ReduceOp& a) { return py::make_tuple(static_cast<int>(a.op_), a.number, a.tensor); },
                      [](const py::tuple& t) {
                        ReduceOp made(static_cast<ReduceOp::RedOpType>(t[0].cast<int>()));
                        made.number = t[1].cast<std::optional<double>>();
                        if (!t[2].is_none()) made.tensor = t[2].cast<Tensor>();
                        return made;
                      }));
  py::implicitly_convertible<ReduceOp::RedOpType, ReduceOp>();
  module.def(
      "_make_nccl_premul_sum", [](double factor) { return ReduceOp(factor); }, py::arg("factor"),
      "Sums of values that each rank multiplies by its factor, a number or a tensor of one element.");
  module.def("_make_nccl_premul_sum", [](Tensor factor) { return ReduceOp(std::move(factor)); }, py::arg("factor"));
}

void bind_work(py::module_& module) {
  py::class_<Work, PythonWork, Held<Work>>(module, "Work", "A collective under way.")
      .def(py::init<>())
      .def("wait", &Work::wait, py::arg("timeout") = kNoTimeout, Unlocked(), "Waits until it is done and gives True; raises its error.")
      .def("is_completed", &Work::isCompleted, Unlocked())
      .def("is_success", &Work::isSuccess)
      .def(
          "exception", [](const Work& w) { return to_python_exception(w.exception()); }, "The error it ended with, or None.")
      .def("source_rank", &Work::sourceRank)
      .def("_source_rank", &Work::sourceRank)
      .def("result", &Work::result, "The tensors it has written.")
      .def("synchronize", &Work::synchronize, Unlocked())
      .def(
          "block_current_stream", [](Work& w) { w.wait(); }, Unlocked())
      .def(
          "get_future",
          [](Work& w) {
            auto* const in_stream = dynamic_cast<DeviceWork*>(&w);
            if (in_stream && !in_stream->exception()) return future_of_stream(*in_stream);
            return to_python_future(without_lock(true, [&] { return w.getFuture(); }));
          },
          "A future of the tensors that it writes.")
      .def("_get_op_type", [](const Work& w) { return static_cast<int>(w.retrieveOpType()); });
}

}  // namespace

void init_works(py::module_& module) {
  bind_reduce_op(module);
  bind_options<BroadcastOptions>(module, "BroadcastOptions")
      .def_readwrite("rootRank", &BroadcastOptions::rootRank)
      .def_readwrite("rootTensor", &BroadcastOptions::rootTensor);
  bind_options<AllreduceOptions>(module, "AllreduceOptions").def_readwrite("reduceOp", &AllreduceOptions::reduceOp);
  bind_options<AllreduceCoalescedOptions>(module, "AllreduceCoalescedOptions")
      .def_readwrite("reduceOp", &AllreduceCoalescedOptions::reduceOp);
  bind_options<ReduceOptions>(module, "ReduceOptions")
      .def_readwrite("reduceOp", &ReduceOptions::reduceOp)
      .def_readwrite("rootRank", &ReduceOptions::rootRank)
      .def_readwrite("rootTensor", &ReduceOptions::rootTensor);
  bind_options<AllgatherOptions>(module, "AllgatherOptions");
  bind_options<GatherOptions>(module, "GatherOptions").def_readwrite("rootRank", &GatherOptions::rootRank);
  bind_options<ScatterOptions>(module, "ScatterOptions").def_readwrite("rootRank", &ScatterOptions::rootRank);
  bind_options<ReduceScatterOptions>(module, "ReduceScatterOptions").def_readwrite("reduceOp", &ReduceScatterOptions::reduceOp);
  bind_options<AllToAllOptions>(module, "AllToAllOptions");
  bind_options<BarrierOptions>(module, "BarrierOptions")
      .def_readwrite("device_ids", &BarrierOptions::device_ids)
      .def_readwrite("device", &BarrierOptions::device);
  bind_work(module);
}

}  // namespace cresset::python
