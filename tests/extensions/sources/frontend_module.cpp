// A module of the C++ front end that Python uses like any other.
#include <torch/extension.h>

struct Mixer : torch::nn::Cloneable<Mixer> {
  Mixer(int64_t in, int64_t out) : in(in), out(out) { reset(); }
  void reset() override {
    layer = register_module("layer", torch::nn::Linear(in, out));
    scale = register_parameter("scale", torch::ones({}));
    calls = register_buffer("calls", torch::zeros({}));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    calls += 1;
    return layer(x) * scale;
  }
  void grow() { register_module("more", torch::nn::Linear(out, out)); }

  int64_t in, out;
  torch::nn::Linear layer{nullptr};
  torch::Tensor scale, calls;
};

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  torch::python::bind_module<Mixer>(m, "Mixer").def(py::init<int64_t, int64_t>()).def("grow", &Mixer::grow);
}
