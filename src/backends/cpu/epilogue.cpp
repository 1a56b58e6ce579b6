#include "backends/cpu/epilogue.h"

#include <cresset/base/error.h>
#include <cresset/ops/functions_activation.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_math.h>

namespace cresset::cpu {
namespace {

using dnnl::algorithm;

// oneDNN's algorithm with the step's numbers as alpha and beta, and the operator.
struct Kind {
  const char* name;
  algorithm onednn;
  Tensor (*apply)(const Tensor& y, double a, double b);
};
constexpr Kind kKinds[] = {
    {"clamp", algorithm::eltwise_clip, [](const Tensor& y, double a, double b) { return clamp(y, Scalar(a), Scalar(b)); }},
    {"elu", algorithm::eltwise_elu, [](const Tensor& y, double a, double) { return elu(y, a); }},
    {"gelu", algorithm::eltwise_gelu_erf, [](const Tensor& y, double, double) { return gelu(y); }},
    {"gelu_tanh", algorithm::eltwise_gelu_tanh, [](const Tensor& y, double, double) { return gelu(y, "tanh"); }},
    {"hardsigmoid", algorithm::eltwise_linear, [](const Tensor& y, double, double) { return hardsigmoid(y); }},
    {"hardswish", algorithm::eltwise_hardswish, [](const Tensor& y, double, double) { return hardswish(y); }},
    {"leaky_relu", algorithm::eltwise_relu, [](const Tensor& y, double a, double) { return leaky_relu(y, a); }},
    {"relu", algorithm::eltwise_relu, [](const Tensor& y, double, double) { return relu(y); }},
    {"sigmoid", algorithm::eltwise_logistic, [](const Tensor& y, double, double) { return sigmoid(y); }},
    {"silu", algorithm::eltwise_swish, [](const Tensor& y, double, double) { return silu(y); }},
    {"tanh", algorithm::eltwise_tanh, [](const Tensor& y, double, double) { return tanh(y); }},
};

const Kind* find(const std::string& name) {
  for (const Kind& k : kKinds)
    if (name == k.name) return &k;
  return nullptr;
}

}  // namespace

Epilogue::Epilogue(const std::vector<std::string>& names, const std::vector<double>& numbers) {
  CRESSET_CHECK_VALUE(numbers.size() == 2 * names.size(), "epilogue: two numbers for each of ", names.size(), " steps were required; ",
                      numbers.size(), " were given.");
  for (std::size_t i = 0; i < names.size(); ++i) {
    steps_.push_back({names[i], numbers[2 * i], numbers[2 * i + 1]});
    operands_ += steps_.back().takes_operand();
    if (!steps_.back().takes_operand() && !find(names[i])) {
      std::string all;
      for (const std::string& k : known()) all += (all.empty() ? "" : ", ") + k;
      CRESSET_THROW(ValueError, "epilogue: there is no step '", names[i], "'; there are: ", all, ".");
    }
  }
}

std::vector<std::string> Epilogue::known() {
  std::vector<std::string> out{"add", "mul"};
  for (const Kind& k : kKinds) out.emplace_back(k.name);
  return out;
}

Tensor Epilogue::apply(Tensor y, TensorList operands) const {
  std::size_t next = 0;
  for (const EpilogueStep& s : steps_) {
    if (s.name == "add")
      y = add(y, operands[next++]);
    else if (s.name == "mul")
      y = mul(y, operands[next++]);
    else
      y = find(s.name)->apply(y, s.a, s.b);
  }
  return y;
}

dnnl::post_ops Epilogue::onednn(const dnnl::memory::desc& operand) const {
  dnnl::post_ops out;
  for (const EpilogueStep& s : steps_) {
    const auto a = static_cast<float>(s.a), b = static_cast<float>(s.b);
    if (s.takes_operand()) {
      out.append_binary(s.name == "add" ? algorithm::binary_add : algorithm::binary_mul, operand);
    } else if (s.name == "hardsigmoid") {
      out.append_eltwise(1.F, algorithm::eltwise_linear, 1.F / 6, 0.5F);
      out.append_eltwise(1.F, algorithm::eltwise_clip, 0.F, 1.F);
    } else {
      out.append_eltwise(1.F, find(s.name)->onednn, s.name == "silu" ? 1.F : a, b);
    }
  }
  return out;
}

std::vector<int> Epilogue::onednn_arguments() const {
  std::vector<int> out;
  int position = 0;
  for (const EpilogueStep& s : steps_) {
    if (s.takes_operand()) out.push_back(DNNL_ARG_ATTR_MULTIPLE_POST_OP(position) | DNNL_ARG_SRC_1);
    position += s.name == "hardsigmoid" ? 2 : 1;
  }
  return out;
}

}  // namespace cresset::cpu
