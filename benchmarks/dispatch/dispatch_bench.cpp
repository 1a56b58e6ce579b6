// Overhead of single calls from C++. One source for both sides: with CRESSET_BENCH_PEER it is compiled against the peer.
// Prints one JSON object: nanoseconds a call by name, the best of several passes over all of them: a machine that is shared may be slow
// for a second, which must not fall on one of them alone.
#ifdef CRESSET_BENCH_PEER
#include <torch/library.h>
#include <torch/torch.h>
namespace rt = at;
namespace ad = torch::autograd;
using Handle = c10::Dispatcher;
using Stack = torch::jit::Stack;
#define BENCH_LIBRARY TORCH_LIBRARY
#define BENCH_LIBRARY_IMPL TORCH_LIBRARY_IMPL
#else
#include <cresset/autograd/function.h>
#include <cresset/base/parallel.h>
#include <cresset/cresset.h>
namespace rt = cresset;
namespace ad = cresset::autograd;
using Handle = cresset::Dispatcher;
using Stack = cresset::Stack;
#define BENCH_LIBRARY CRESSET_LIBRARY
#define BENCH_LIBRARY_IMPL CRESSET_LIBRARY_IMPL
#endif

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

static rt::Tensor noop(const rt::Tensor& x) { return x; }
BENCH_LIBRARY(bench_cpp, m) { m.def("noop(Tensor x) -> Tensor"); }
BENCH_LIBRARY_IMPL(bench_cpp, CPU, m) { m.impl("noop", &noop); }
BENCH_LIBRARY_IMPL(bench_cpp, Autograd, m) { m.impl("noop", &noop); }

struct Product : ad::Function<Product> {
  static rt::Tensor forward(ad::AutogradContext* ctx, const rt::Tensor& x, const rt::Tensor& y) {
    ctx->save_for_backward({x, y});
    return x * y;
  }
  static ad::variable_list backward(ad::AutogradContext* ctx, ad::variable_list grads) {
    const ad::variable_list saved = ctx->get_saved_variables();
    return {grads[0] * saved[1], rt::Tensor()};
  }
};

template <class F>
static double nanoseconds(const F& f) {
  using clock = std::chrono::steady_clock;
  const auto time = [&](int n) {
    const auto start = clock::now();
    for (int i = 0; i < n; ++i) f();
    return std::chrono::duration<double, std::nano>(clock::now() - start).count() / n;
  };
  const double rough = time(2000);
  const int n = std::clamp(static_cast<int>(2e7 / rough), 1000, 1000000);
  return std::min(time(n), time(n));
}

static rt::Tensor chain(const rt::Tensor& t) { return (((t + 1) * 2 - 3) / 4).exp().log1p().tanh().mul(t).sigmoid().add(t).sum(); }

int main() {
  rt::set_num_threads(1);
  const rt::Tensor x = rt::ones({1}), y = rt::ones({1}), m = rt::ones({2, 2}), t = rt::ones({8});
  rt::Tensor g = rt::ones({1}), leaf = rt::ones({8}), out = rt::ones({1});
  g.requires_grad_(true);
  leaf.requires_grad_(true);
  const auto op = Handle::singleton().findSchemaOrThrow("bench_cpp::noop", "");
  const auto typed = op.typed<rt::Tensor(const rt::Tensor&)>();
  std::vector<std::pair<std::string, double>> results;
  const auto pass = [&] {
    std::size_t at = 0;
    const auto add = [&](const char* name, double ns) {
      if (at == results.size()) results.emplace_back(name, ns);
      results[at].second = std::min(results[at].second, ns);
      ++at;
    };
    add("cpp: add, one element", nanoseconds([&] { rt::add(x, y); }));
    add("cpp: add, requires grad", nanoseconds([&] { rt::add(g, y); }));
    add("cpp: add_out, one element", nanoseconds([&] { rt::add_out(out, x, y); }));
    add("cpp: empty(1)", nanoseconds([&] { rt::empty({1}); }));
    add("cpp: view(-1)", nanoseconds([&] { x.view({-1}); }));
    add("cpp: mm 2x2", nanoseconds([&] { rt::mm(m, m); }));
    add("cpp: no-op operator, typed handle", nanoseconds([&] { typed.call(x); }));
    add("cpp: no-op operator, boxed", nanoseconds([&] {
          Stack stack;
          stack.emplace_back(x);
          op.callBoxed(stack);
        }));
    add("cpp: ten-op chain, no grad", nanoseconds([&] { chain(t); }));
    add("cpp: ten-op chain, forward and backward", nanoseconds([&] { chain(leaf).backward(); }));
    add("cpp: custom Function, forward and backward", nanoseconds([&] { Product::apply(g, y).backward(); }));
  };
  for (int i = 0; i < 5; ++i) pass();
  std::string text = "{";
  for (const auto& [name, ns] : results) text += (text.size() > 1 ? ", \"" : "\"") + name + "\": " + std::to_string(ns);
  std::printf("%s}\n", text.c_str());
}
