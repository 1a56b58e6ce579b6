// The backend of PyTorch's tutorial "Customize Process Group Backends Using Cpp Extensions", in its form: collectives end at once, with
// zeros.
#include <pybind11/chrono.h>
#include <torch/python.h>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>
#include <torch/csrc/distributed/c10d/Utils.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

namespace c10d {

class WorkDummy : public Work {
 public:
  WorkDummy(OpType opType, c10::intrusive_ptr<c10::ivalue::Future> future) : Work(-1, opType), future_(std::move(future)) {}
  bool isCompleted() override { return true; }
  bool isSuccess() const override { return true; }
  bool wait(std::chrono::milliseconds timeout = kUnsetTimeout) override { return timeout == kNoTimeout; }  // as callers give none
  void blockCurrentStream() override { synchronize(); }
  c10::intrusive_ptr<c10::ivalue::Future> getFutureResult() override { return future_; }
  virtual c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

 private:
  c10::intrusive_ptr<c10::ivalue::Future> future_;
};

class BackendDummy : public Backend {
 public:
  BackendDummy(int rank, int size) : Backend(rank, size) {}
  const std::string getBackendName() const override { return "dummy"; }
  c10::intrusive_ptr<Backend::Options> getBackendOptions() override { return c10::make_intrusive<Backend::Options>("dummy"); }

  c10::intrusive_ptr<Work> allgather(std::vector<std::vector<at::Tensor>>& outputTensors, std::vector<at::Tensor>& inputTensors,
                                     const AllgatherOptions& opts = AllgatherOptions()) override {
    for (auto& outputTensorVec : outputTensors)
      for (auto& outputTensor : outputTensorVec) outputTensor.zero_();
    auto future = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::ListType::create(c10::TensorType::get())));
    future->markCompleted(c10::IValue(outputTensors));
    return c10::make_intrusive<WorkDummy>(OpType::ALLGATHER, std::move(future));
  }

  c10::intrusive_ptr<Work> allreduce(std::vector<at::Tensor>& tensors, const AllreduceOptions& opts = AllreduceOptions()) override {
    for (auto& tensor : tensors) tensor.zero_();
    auto future = c10::make_intrusive<c10::ivalue::Future>(c10::ListType::create(c10::TensorType::get()));
    future->markCompleted(c10::IValue(tensors));
    return c10::make_intrusive<WorkDummy>(OpType::ALLREDUCE, std::move(future));
  }

  c10::intrusive_ptr<Work> barrier(const BarrierOptions& opts = BarrierOptions()) override { TORCH_CHECK(false, "not supported"); }

  static c10::intrusive_ptr<Backend> createBackendDummy(const c10::intrusive_ptr<::c10d::Store>& store, int rank, int size,
                                                        const std::chrono::duration<float>& timeout) {
    store->set("dummy" + std::to_string(rank), std::string("here"));
    return c10::make_intrusive<BackendDummy>(rank, size);
  }

  static void BackendDummyConstructor() __attribute__((constructor)) {
    py::object module = py::module::import("torch.distributed");
    py::object register_backend = module.attr("Backend").attr("register_backend");
    register_backend("dummy", py::cpp_function(createBackendDummy));
  }
};

}  // namespace c10d

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("createBackendDummy", &c10d::BackendDummy::createBackendDummy); }
