// Backends and process groups in Python, and those written in Python.
#include <cresset/distributed/debug.h>
#include <cresset/distributed/gloo.h>

#include "python/distributed/casters.h"

namespace cresset::python {

namespace {

using namespace cresset::distributed;
using Tensors = std::vector<Tensor>;
using WorkPtr = intrusive_ptr<Work>;

/// The Python name of a collective.
constexpr const char* python_name(std::string_view name) { return name == "recvAnysource" ? "recv_anysource" : name.data(); }

// The object that Python made is the work's other half: it must live until the caller has it, in whose hands it is the same object again.
void keep_until_the_next(py::object made) {
  static thread_local PyObject* last = nullptr;
  Py_XDECREF(std::exchange(last, made.release().ptr()));
}

/// A backend or a group whose methods a Python class overrides.
template <class Base>
class PythonCollectives : public Base {
 public:
  using Base::Base;
  template <class... Args>
  WorkPtr call(const py::function& f, Args&... args) {
    py::object made = f(args...);
    auto work = made.template cast<WorkPtr>();
    keep_until_the_next(std::move(made));
    return work;
  }
#define CRESSET_OVERRIDE(name, parameters, arguments)                                                \
  WorkPtr name parameters override {                                                                 \
    {                                                                                                \
      const py::gil_scoped_acquire lock;                                                             \
      const auto pass = [&](auto&... args) -> WorkPtr {                                              \
        const py::function f = py::get_override(static_cast<const Base*>(this), python_name(#name)); \
        return f ? call(f, args...) : WorkPtr();                                                     \
      };                                                                                             \
      if (WorkPtr work = pass arguments) return work;                                                \
    }                                                                                                \
    return Base::name arguments;                                                                     \
  }
  CRESSET_COLLECTIVES(CRESSET_OVERRIDE)
#undef CRESSET_OVERRIDE
  const std::string getBackendName() const override { PYBIND11_OVERRIDE_NAME(std::string, Base, "getBackendName", getBackendName); }
  int getRank() const override { PYBIND11_OVERRIDE_NAME(int, Base, "getRank", getRank); }
  int getSize() const override { PYBIND11_OVERRIDE_NAME(int, Base, "getSize", getSize); }
};
using PythonBackend = PythonCollectives<Backend>;
class PythonGroup : public PythonCollectives<ProcessGroup> {
 public:
  using PythonCollectives::PythonCollectives;
  std::string getGroupName() const override { PYBIND11_OVERRIDE(std::string, ProcessGroup, getGroupName); }
  void setGroupName(const std::string& name) override { PYBIND11_OVERRIDE(void, ProcessGroup, setGroupName, name); }
  std::string getGroupDesc() const override { PYBIND11_OVERRIDE(std::string, ProcessGroup, getGroupDesc); }
  void setGroupDesc(const std::string& text) override { PYBIND11_OVERRIDE(void, ProcessGroup, setGroupDesc, text); }
};

template <class Class>
void bind_reductions(Class& c) {
  using G = typename Class::type;
  c.def("broadcast", &G::broadcast, py::arg("tensors"), py::arg("opts") = BroadcastOptions(), Unlocked())
      .def(
          "broadcast",
          [](G& g, Tensor t, int64_t root) {
            Tensors list{std::move(t)};
            BroadcastOptions o;
            o.rootRank = root;
            return g.broadcast(list, o);
          },
          py::arg("tensor"), py::arg("root"), Unlocked());
  const auto reduce_all = [](G& g, Tensors list, ReduceOp op) {
    AllreduceOptions o;
    o.reduceOp = op;
    return g.allreduce(list, o);
  };
  c.def("allreduce", &G::allreduce, py::arg("tensors"), py::arg("opts") = AllreduceOptions(), Unlocked())
      .def("allreduce", reduce_all, py::arg("tensors"), py::arg("op") = ReduceOp(), Unlocked())
      .def(
          "allreduce", [reduce_all](G& g, Tensor t, ReduceOp op) { return reduce_all(g, {std::move(t)}, op); }, py::arg("tensor"),
          py::arg("op") = ReduceOp(), Unlocked());
  c.def("allreduce_coalesced", &G::allreduce_coalesced, py::arg("tensors"), py::arg("opts") = AllreduceCoalescedOptions(), Unlocked());
  c.def("reduce", &G::reduce, py::arg("tensors"), py::arg("opts") = ReduceOptions(), Unlocked())
      .def(
          "reduce",
          [](G& g, Tensor t, int64_t root, ReduceOp op) {
            Tensors list{std::move(t)};
            ReduceOptions o;
            o.rootRank = root;
            o.reduceOp = op;
            return g.reduce(list, o);
          },
          py::arg("tensor"), py::arg("root"), py::arg("op") = ReduceOp(), Unlocked());
}

template <class Class>
void bind_gathers(Class& c) {
  using G = typename Class::type;
  c.def("allgather", &G::allgather, py::arg("output_tensors"), py::arg("input_tensors"), py::arg("opts") = AllgatherOptions(), Unlocked())
      .def(
          "allgather",
          [](G& g, Tensors out, Tensor in) {
            std::vector<Tensors> outputs{std::move(out)};
            Tensors inputs{std::move(in)};
            return g.allgather(outputs, inputs, AllgatherOptions());
          },
          py::arg("output_tensors"), py::arg("input_tensor"), Unlocked());
  c.def("_allgather_base", &G::_allgather_base, py::arg("output"), py::arg("input"), py::arg("opts") = AllgatherOptions(), Unlocked());
  c.def("allgather_coalesced", &G::allgather_coalesced, py::arg("output_lists"), py::arg("input_list"),
        py::arg("opts") = AllgatherOptions(), Unlocked());
  c.def("allgather_into_tensor_coalesced", &G::allgather_into_tensor_coalesced, py::arg("outputs"), py::arg("inputs"),
        py::arg("opts") = AllgatherOptions(), Unlocked());
  c.def("gather", &G::gather, py::arg("output_tensors"), py::arg("input_tensors"), py::arg("opts") = GatherOptions(), Unlocked())
      .def(
          "gather",
          [](G& g, Tensors out, Tensor in, int64_t root) {
            std::vector<Tensors> outputs;
            if (!out.empty()) outputs.push_back(std::move(out));
            Tensors inputs{std::move(in)};
            GatherOptions o;
            o.rootRank = root;
            return g.gather(outputs, inputs, o);
          },
          py::arg("output_tensors"), py::arg("input_tensor"), py::arg("root"), Unlocked());
}

template <class Class>
void bind_scatters(Class& c) {
  using G = typename Class::type;
  c.def("scatter", &G::scatter, py::arg("output_tensors"), py::arg("input_tensors"), py::arg("opts") = ScatterOptions(), Unlocked())
      .def(
          "scatter",
          [](G& g, Tensor out, Tensors in, int64_t root) {
            std::vector<Tensors> inputs;
            if (!in.empty()) inputs.push_back(std::move(in));
            Tensors outputs{std::move(out)};
            ScatterOptions o;
            o.rootRank = root;
            return g.scatter(outputs, inputs, o);
          },
          py::arg("output_tensor"), py::arg("input_tensors"), py::arg("root"), Unlocked());
  c.def("reduce_scatter", &G::reduce_scatter, py::arg("output_tensors"), py::arg("input_tensors"), py::arg("opts") = ReduceScatterOptions(),
        Unlocked())
      .def(
          "reduce_scatter",
          [](G& g, Tensor out, Tensors in, ReduceOp op) {
            Tensors outputs{std::move(out)};
            std::vector<Tensors> inputs{std::move(in)};
            ReduceScatterOptions o;
            o.reduceOp = op;
            return g.reduce_scatter(outputs, inputs, o);
          },
          py::arg("output"), py::arg("input_tensors"), py::arg("op") = ReduceOp(), Unlocked());
  c.def("_reduce_scatter_base", &G::_reduce_scatter_base, py::arg("outputTensor"), py::arg("inputTensor"),
        py::arg("opts") = ReduceScatterOptions(), Unlocked());
  c.def("reduce_scatter_tensor_coalesced", &G::reduce_scatter_tensor_coalesced, py::arg("outputs"), py::arg("inputs"),
        py::arg("opts") = ReduceScatterOptions(), Unlocked());
  c.def("alltoall_base", &G::alltoall_base, py::arg("output"), py::arg("input"), py::arg("output_split_sizes"),
        py::arg("input_split_sizes"), py::arg("opts") = AllToAllOptions(), Unlocked());
  c.def("alltoall", &G::alltoall, py::arg("output_tensors"), py::arg("input_tensors"), py::arg("opts") = AllToAllOptions(), Unlocked());
}

template <class Class>
void bind_messages(Class& c) {
  using G = typename Class::type;
  c.def("send", &G::send, py::arg("tensors"), py::arg("dstRank"), py::arg("tag"), Unlocked());
  c.def("recv", &G::recv, py::arg("tensors"), py::arg("srcRank"), py::arg("tag"), Unlocked());
  c.def("recv_anysource", &G::recvAnysource, py::arg("tensors"), py::arg("tag") = 0, Unlocked());
  c.def("barrier", &G::barrier, py::arg("opts") = BarrierOptions(), Unlocked())
      .def(
          "barrier",
          [](G& g, std::optional<std::chrono::milliseconds> timeout) {
            BarrierOptions o;
            if (timeout) o.timeout = *timeout;
            return g.barrier(o);
          },
          py::arg("timeout") = py::none(), Unlocked());
  c.def(
      "monitored_barrier",
      [](G& g, std::optional<std::chrono::milliseconds> timeout, bool wait_all_ranks) {
        BarrierOptions o;
        if (timeout) o.timeout = *timeout;
        o.asyncOp = false;
        g.monitoredBarrier(o, wait_all_ranks);
      },
      py::arg("timeout") = py::none(), py::arg("wait_all_ranks") = false, Unlocked());
  c.def("_set_sequence_number_for_group", &G::setSequenceNumberForGroup, Unlocked())
      .def("_get_sequence_number_for_group", &G::getSequenceNumberForGroup, Unlocked())
      .def(
          "_start_coalescing", [](G& g, const py::object&) { g.startCoalescing(); }, py::arg("device") = py::none())
      .def(
          "_end_coalescing", [](G& g, const py::object&) { return g.endCoalescing(); }, py::arg("device") = py::none())
      .def("set_timeout", &G::setTimeout, py::arg("timeout"), Unlocked())
      .def("_set_default_timeout", &G::setTimeout, py::arg("timeout"), Unlocked())
      .def("shutdown", &G::shutdown, Unlocked())
      .def("abort", &G::abort, Unlocked());
}

/// The collectives as PyTorch binds them: lists with options, and short forms for one tensor.
template <class Class>
void bind_collectives(Class& c) {
  using G = typename Class::type;
  c.def("rank", &G::getRank).def("size", &G::getSize);
  bind_reductions(c);
  bind_gathers(c);
  bind_scatters(c);
  bind_messages(c);
}

/// The Python object of a backend: of Gloo's Python does not know the class that does the work.
py::object own_object(const intrusive_ptr<Backend>& backend) {
  if (auto* gloo = dynamic_cast<GlooBackend*>(backend.get())) return py::cast(intrusive_ptr<GlooBackend>::reclaim_copy(gloo));
  return py::cast(backend);
}

DeviceType device_type_of(const Device& d) { return d.type(); }

struct GlooDevice {
  std::string interface, hostname;
};

void bind_gloo(py::module_& module) {
  py::class_<GlooBackend, Backend, Held<GlooBackend>> gloo(module, "ProcessGroupGloo", "The backend that runs on Gloo.");
  py::class_<GlooDevice>(gloo, "Device");
  py::class_<GlooOptions, Backend::Options, Held<GlooOptions>>(gloo, "_Options")
      .def(py::init([] { return make_intrusive<GlooOptions>(); }))
      .def_readwrite("_threads", &GlooOptions::threads)
      .def_property(
          "_devices", [](const GlooOptions& o) { return std::vector<GlooDevice>{{o.interface, o.hostname}}; },
          [](GlooOptions& o, const std::vector<GlooDevice>& devices) {
            if (devices.empty()) return;
            o.interface = devices[0].interface;
            o.hostname = devices[0].hostname;
          });
  gloo.attr("Options") = gloo.attr("_Options");
  gloo.def_static(
          "create_device",
          [](const std::string& hostname, const std::string& interface, std::optional<bool>) { return GlooDevice{interface, hostname}; },
          py::arg("hostname") = "", py::arg("interface") = "", py::arg("lazy_init") = py::none())
      .def_static(
          "create_default_device", [](std::optional<bool>) { return GlooDevice{}; }, py::arg("lazy_init") = py::none())
      .def(py::init([](const intrusive_ptr<Store>& store, int rank, int size, const intrusive_ptr<GlooOptions>& options) {
             return without_lock(true, [&] { return make_gloo(store, rank, size, options); });
           }),
           py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("options"), py::keep_alive<1, 2>())
      .def(py::init([](const intrusive_ptr<Store>& store, int rank, int size, std::chrono::milliseconds timeout) {
             return without_lock(true, [&] { return make_gloo(store, rank, size, make_intrusive<GlooOptions>(timeout)); });
           }),
           py::arg("store"), py::arg("rank"), py::arg("size"), py::arg("timeout") = kBackendDefaultTimeout, py::keep_alive<1, 2>())
      .def_property_readonly("options", &GlooBackend::options);
}

void bind_debug(py::module_& module) {
  py::enum_<DebugLevel>(module, "DebugLevel", "How much groups check.")
      .value("OFF", DebugLevel::Off)
      .value("INFO", DebugLevel::Info)
      .value("DETAIL", DebugLevel::Detail);
  module.def("get_debug_level", &debug_level, "The level that was set, else that of TORCH_DISTRIBUTED_DEBUG.");
  module.def("set_debug_level", &setDebugLevel, "Sets the level for groups that are made from now on.");
  module.def("set_debug_level_from_env", &setDebugLevelFromEnvironment,
             "Sets what TORCH_DISTRIBUTED_DEBUG says; ValueError for other words.");
  py::class_<ProcessGroupWrapper, Backend, Held<ProcessGroupWrapper>>(module, "_ProcessGroupWrapper",
                                                                      "A backend that compares the calls of all ranks first.")
      .def(py::init<intrusive_ptr<Backend>, intrusive_ptr<Backend>>(), py::arg("backend"), py::arg("compared"), py::keep_alive<1, 2>(),
           py::keep_alive<1, 3>())
      .def_property_readonly("wrapped_pg", &ProcessGroupWrapper::getWrappedPg);
}

}  // namespace

void init_groups(py::module_& module) {
  py::class_<Backend, PythonBackend, Held<Backend>> backend(module, "Backend",
                                                            "One way to communicate; a class derived from it overrides collectives.");
  py::class_<Backend::Options, Held<Backend::Options>>(backend, "Options")
      .def(py::init(
               [](const std::string& name, std::chrono::milliseconds timeout) { return make_intrusive<Backend::Options>(name, timeout); }),
           py::arg("backend"), py::arg("timeout") = kBackendDefaultTimeout)
      .def_readonly("backend", &Backend::Options::backend)
      .def_readwrite("_timeout", &Backend::Options::timeout)
      .def_readwrite("group_name", &Backend::Options::group_name)
      .def_readwrite("global_ranks_in_group", &Backend::Options::global_ranks_in_group);
  backend.def(py::init<int, int>(), py::arg("rank"), py::arg("size"));
  bind_collectives(backend);
  backend.def("name", &Backend::getBackendName)
      .def("_get_backend_name", &Backend::getBackendName)
      .def_property_readonly("supports_splitting", [](const Backend&) { return false; })
      .def_property_readonly("supports_coalescing", [](const Backend&) { return false; });
  bind_gloo(module);
  bind_debug(module);

  py::class_<ProcessGroup, PythonGroup, Held<ProcessGroup>> group(module, "ProcessGroup", py::dynamic_attr(),
                                                                  "Ranks that communicate, with a backend for each kind of device.");
  py::enum_<ProcessGroup::BackendType>(group, "BackendType")
      .value("UNDEFINED", ProcessGroup::UNDEFINED)
      .value("GLOO", ProcessGroup::GLOO)
      .value("NCCL", ProcessGroup::NCCL)
      .value("XCCL", ProcessGroup::XCCL)
      .value("UCC", ProcessGroup::UCC)
      .value("MPI", ProcessGroup::MPI)
      .value("CUSTOM", ProcessGroup::CUSTOM)
      .export_values();
  group.def(py::init<int, int>(), py::arg("rank"), py::arg("size"))
      .def(py::init<intrusive_ptr<Store>, int, int>(), py::arg("store"), py::arg("rank"), py::arg("size"), py::keep_alive<1, 2>());
  bind_collectives(group);
  group.def("name", &ProcessGroup::getBackendName)
      .def("_get_backend_name", &ProcessGroup::getBackendName)
      .def(
          "_get_backend", [](const ProcessGroup& g, const Device& d) { return own_object(g.getBackend(device_type_of(d))); },
          py::arg("device"))
      .def(
          "_register_backend",
          [](ProcessGroup& g, const Device& d, ProcessGroup::BackendType type, const std::optional<intrusive_ptr<Backend>>& b) {
            if (b) g.setBackend(device_type_of(d), type, *b);
          },
          py::arg("device"), py::arg("backend_type"), py::arg("backend") = py::none(), py::keep_alive<1, 4>())
      .def("_set_default_backend", &ProcessGroup::setDefaultBackend, py::arg("backend_type"))
      .def_property_readonly("_device_types",
                             [](const ProcessGroup& g) {
                               std::vector<Device> out;
                               for (const DeviceType t : g.getDeviceTypes()) out.emplace_back(t);
                               return out;
                             })
      .def("get_group_store", &ProcessGroup::getStore)
      .def_property("group_name", &ProcessGroup::getGroupName, &ProcessGroup::setGroupName)
      .def("_set_group_name", &ProcessGroup::setGroupName)
      .def_property("group_desc", &ProcessGroup::getGroupDesc, &ProcessGroup::setGroupDesc)
      .def("_set_group_desc", &ProcessGroup::setGroupDesc)
      .def("_has_hooks", [](const ProcessGroup&) { return false; })
      .def_property_readonly("bound_device_id", [](const ProcessGroup&) { return py::none(); });
}

}  // namespace cresset::python
