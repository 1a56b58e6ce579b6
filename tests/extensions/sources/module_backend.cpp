// Two backends that take whole modules: one that runs two methods of a known module in its own way, and one that no machine has.
#include <torch/csrc/jit/backends/backend.h>
#include <torch/csrc/jit/backends/backend_exception.h>
#include <torch/csrc/jit/backends/backend_preprocess.h>

namespace {

template <bool available>
struct Counting : torch::jit::PyTorchBackendInterface {
  bool is_available() override { return available; }
  c10::impl::GenericDict compile(c10::IValue processed, c10::impl::GenericDict spec) override {
    c10::Dict<std::string, c10::IValue> handles;
    for (const auto& entry : c10::impl::toTypedDict<std::string, c10::IValue>(spec)) {
      const int64_t nodes = processed.toGenericDict().at(entry.key()).toInt();
      handles.insert(entry.key(), c10::IValue(std::make_tuple(entry.key(), nodes)));
    }
    return c10::impl::toGenericDict(handles);
  }
  c10::impl::GenericList execute(c10::IValue handle, c10::impl::GenericList inputs) override {
    const auto& parts = handle.toTupleRef().elements();
    TORCH_DELEGATED_BACKEND_THROW(parts[1].toInt() > 0, "no nodes", 7);
    const c10::IValue first = inputs[0], second = inputs[1];
    c10::List<at::Tensor> results;
    results.push_back(first.toTensor() + second.toTensor());
    if (parts[0].toStringRef() == "forward") results.push_back(first.toTensor() - second.toTensor());
    return c10::impl::toList(results);
  }
};

// How many nodes each method has.
c10::IValue preprocess(const torch::jit::Module& module, const c10::Dict<c10::IValue, c10::IValue>& spec,
                       const torch::jit::BackendDebugHandleGenerator& generate) {
  c10::Dict<std::string, int64_t> counts;
  for (const auto& entry : spec) {
    const auto name = entry.key().toStringRef();
    counts.insert(name, static_cast<int64_t>(generate(module.get_method(name).graph()).size()));
  }
  return counts;
}

auto here = torch::jit::backend<Counting<true>>("counting");
auto elsewhere = torch::jit::backend<Counting<false>>("elsewhere");
auto preprocess_here = torch::jit::backend_preprocess_register("counting", preprocess);
auto preprocess_elsewhere = torch::jit::backend_preprocess_register("elsewhere", preprocess);

}  // namespace
