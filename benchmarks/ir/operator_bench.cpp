// What one operator costs in a graph beside the same call in C++: prints nanoseconds a call and the difference.
#include <algorithm>
#include <cstdio>
#include <ctime>

#include <cresset/cresset.h>
#include <cresset/ir/interpreter.h>
#include <cresset/ir/ir_parser.h>

namespace {

constexpr int kCalls = 100000, kRounds = 15;

// CPU time, so that other programs on the machine do not count.
template <class F>
double nanoseconds(F&& f) {
  const std::clock_t start = std::clock();
  f();
  return static_cast<double>(std::clock() - start) * 1e9 / CLOCKS_PER_SEC / kCalls;
}

std::string graph_of(const std::string& call) {
  return R"(graph(%n : int, %x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %t : bool = prim::Constant[value=1]()
  %r : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %a : Tensor):
      %b : Tensor = )" +
         call + R"(
      -> (%t, %b)
  return (%r)
)";
}

template <class F>
void compare(const char* name, const std::string& call, F&& eager) {
  const auto code = cresset::jit::Code::compile(cresset::jit::parse_ir(graph_of(call)));
  const cresset::Tensor x = cresset::ones({1}), y = cresset::ones({1});
  double in_graph = 1e9, in_cpp = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    in_graph = std::min(in_graph, nanoseconds([&] {
                          cresset::Stack stack{int64_t{kCalls}, x, y};
                          code->run(stack);
                        }));
    in_cpp = std::min(in_cpp, nanoseconds([&] {
                        cresset::Tensor r = x;
                        for (int i = 0; i < kCalls; ++i) r = eager(x, y);
                      }));
  }
  std::printf("%-6s in a graph %6.1f ns   in C++ %6.1f ns   overhead %5.1f ns (budget 50)\n", name, in_graph, in_cpp, in_graph - in_cpp);
}

}  // namespace

int main() {
  compare("add", "aten::add(%x, %y, %one)", [](const auto& x, const auto& y) { return x.add(y); });
  compare("mul", "aten::mul(%x, %y)", [](const auto& x, const auto& y) { return x.mul(y); });
  compare("relu", "aten::relu(%x)", [](const auto& x, const auto&) { return x.relu(); });
  compare("view", "aten::view_as(%x, %y)", [](const auto& x, const auto& y) { return x.view_as(y); });
}
