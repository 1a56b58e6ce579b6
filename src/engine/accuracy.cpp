#include "engine/accuracy.h"

#include <cmath>
#include <cstdio>

#include <cresset/core/grad_mode.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_reduce.h>

namespace cresset::engine {
namespace {

void collect(const IValue& v, std::vector<Tensor>& out) {
  if (v.isTensor() && v.toTensor().defined() && isFloatingType(v.toTensor().scalar_type())) out.push_back(v.toTensor());
  if (v.isTuple())
    for (const IValue& one : v.toTuple()->elements()) collect(one, out);
  if (v.isTensorList())
    for (const Tensor& one : v.toTensorVector()) collect(one, out);
}

struct Sums {
  double largest = 0, differences = 0, squares = 0;
  int64_t rows = 0, same = 0, results = 0;

  void add(const Tensor& got, const Tensor& wanted) {
    if (got.sizes() != wanted.sizes() || wanted.numel() == 0) return;
    const Tensor a = got.to(kDouble), b = wanted.to(kDouble), d = a - b;
    largest = std::max(largest, d.abs().max().item<double>());
    differences += d.square().sum().item<double>();
    squares += b.square().sum().item<double>();
    ++results;
    if (b.dim() < 2 || b.size(-1) < 2) return;
    rows += b.numel() / b.size(-1);
    same += a.argmax(-1).eq(b.argmax(-1)).sum().item<int64_t>();
  }
};

}  // namespace

std::string accuracy_of(const jit::Method& compiled, const jit::Method& given, const std::vector<Stack>& data) {
  const NoGradGuard guard;
  Sums sums;
  for (const Stack& arguments : data) {
    std::vector<Tensor> got, wanted;
    collect(compiled(arguments), got);
    collect(given(arguments), wanted);
    for (std::size_t i = 0; i < std::min(got.size(), wanted.size()); ++i) sums.add(got[i], wanted[i]);
  }
  if (sums.results == 0) return "accuracy: there were no results of floats to compare.";
  char text[256];
  const double relative = sums.squares > 0 ? std::sqrt(sums.differences / sums.squares) : 0;
  std::snprintf(text, sizeof text, "accuracy over %zu %s: largest difference %.3g, root mean square %.3g %% of the results'", data.size(),
                data.size() == 1 ? "call" : "calls", sums.largest, 100 * relative);
  std::string out = text;
  if (sums.rows > 0) {
    std::snprintf(text, sizeof text, ", the largest of a row at the same place in %.4g %%",
                  100 * static_cast<double>(sums.same) / static_cast<double>(sums.rows));
    out += text;
  }
  return out + ".";
}

}  // namespace cresset::engine
