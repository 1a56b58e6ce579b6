// Uses a tensor, a gradient and an operator of its own through the installed headers and library.
#include <cresset/cresset.h>
#include <cresset/version.h>

#include <iostream>

namespace {

cresset::Tensor twice_plus(const cresset::Tensor& self, double offset) { return self * 2 + offset; }

}  // namespace

CRESSET_LIBRARY(installed_example, m) { m.def("twice_plus(Tensor self, float offset) -> Tensor", &twice_plus); }

int main() {
  cresset::Tensor x = cresset::ones({2, 3}, cresset::kFloat).set_requires_grad(true);
  auto op = cresset::Dispatcher::singleton()
                .findSchemaOrThrow("installed_example::twice_plus", "")
                .typed<cresset::Tensor(const cresset::Tensor&, double)>();
  cresset::Tensor y = op.call(x, 0.5).sum();
  y.backward();
  std::cout << y.item<float>() << " " << x.grad().sum().item<float>() << " " << CRESSET_VERSION << "\n";
}
