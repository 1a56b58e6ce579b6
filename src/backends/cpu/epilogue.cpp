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

// hardsigmoid is a linear step with limits behind it.
algorithm kind_of(const EpilogueStep& s) { return s.name == "hardsigmoid" ? algorithm::eltwise_clip : find(s.name)->onednn; }

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

dnnl::memory::desc Epilogue::number() { return {{1, 1, 1, 1}, dnnl::memory::data_type::f32, dnnl::memory::format_tag::nhwc}; }

bool Epilogue::is_one_pass() const {
  for (const EpilogueStep& s : steps_)
    for (const EpilogueStep& t : steps_) {
      if (s.takes_operand() || t.takes_operand()) continue;
      const bool same_numbers = s.name == t.name && s.a == t.a && s.b == t.b;
      if (!same_numbers && kind_of(s) == kind_of(t)) return false;
    }
  return true;
}

// An operand of 8 bits is added as it is stored, with y in its unit: (y / scale + stored) * scale. Factors are operands of one number.
Epilogue::Pass Epilogue::onednn(std::size_t count, const std::vector<dnnl::memory::desc>& operands, const std::vector<float>& scales,
                                float scale) const {
  Pass out;
  const auto append = [&](algorithm how, const dnnl::memory::desc& operand) {
    out.steps.append_binary(how, operand);
    return DNNL_ARG_ATTR_MULTIPLE_POST_OP(out.steps.len() - 1) | DNNL_ARG_SRC_1;
  };
  const auto times = [&](float factor) {
    if (factor != 1) out.factors.emplace_back(append(algorithm::binary_mul, number()), factor);
  };
  for (std::size_t i = 0; i < count; ++i) {
    const EpilogueStep& s = steps_[i];
    const auto a = static_cast<float>(s.a), b = static_cast<float>(s.b);
    if (s.takes_operand()) {
      const std::size_t next = out.operands.size();
      if (s.name == "add") times(1 / scales[next]);
      out.operands.push_back(append(s.name == "add" ? algorithm::binary_add : algorithm::binary_mul, operands[next]));
      times(scales[next]);
    } else if (s.name == "hardsigmoid") {
      out.steps.append_eltwise(1.F, algorithm::eltwise_linear, 1.F / 6, 0.5F);
      out.steps.append_eltwise(1.F, algorithm::eltwise_clip, 0.F, 1.F);
    } else {
      out.steps.append_eltwise(1.F, find(s.name)->onednn, s.name == "silu" ? 1.F : a, b);
    }
  }
  times(1 / scale);
  return out;
}

}  // namespace cresset::cpu
