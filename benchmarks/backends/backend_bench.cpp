// What a device outside of the tree costs: dispatch to its kernel beside the CPU's, memory that was used before, and an operator that only
// the CPU has. backend_bench [DEVICE]; CRESSET_BACKEND_PATH leads to its library. backends/minimal has no cache of its own,
// backends/simulated has.
#include <cresset/core/caching_allocator.h>
#include <cresset/cresset.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using namespace cresset;

Tensor nothing(const Tensor& x) { return x; }

// Nanoseconds a call: the third best of fifteen rounds, since other programs disturb.
template <class F>
double nanoseconds(F f, int calls) {
  std::vector<double> rounds;
  for (int round = 0; round < 15; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) f();
    rounds.push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / calls);
  }
  std::sort(rounds.begin(), rounds.end());
  return rounds[2];
}

}  // namespace

CRESSET_LIBRARY(bench, m) { m.def("nothing(Tensor x) -> Tensor"); }
CRESSET_LIBRARY_IMPL(bench, CPU, m) { m.impl("nothing", &nothing); }

// The allocator that backends share, on top of malloc: a block that was free before.
double cached_block() {
  struct Host final : BlockSource {
    void* take(std::size_t n) override { return std::malloc(n); }
    void give(void* data, std::size_t) override { std::free(data); }
  } static host;
  static CachingAllocator cache(host);
  return nanoseconds([] { cache.deallocate(cache.allocate(4000)); }, 20000);
}

int main(int argc, char** argv) {
  const DeviceType type = device_type_from_name(argc > 1 ? argv[1] : "minimal");
  Library library(Library::IMPL, "bench", backendKey(type), __FILE__, __LINE__);
  library.impl("nothing", &nothing);
  const auto op = Dispatcher::singleton().findSchemaOrThrow("bench::nothing", "").typed<Tensor(const Tensor&)>();
  const AutoDispatchBelowADInplaceOrView below;
  const Tensor a = ones({1000}), x = a.to(Device(type));
  std::printf("dispatch to a kernel: %.2f ns on the CPU, %.2f ns on the device\n", nanoseconds([&] { op.call(a); }, 200000),
              nanoseconds([&] { op.call(x); }, 200000));
  std::printf("memory and tensor of 1,000 elements: %.0f ns on the CPU, %.0f ns on the device\n",
              nanoseconds([&] { empty({1000}, a.options()); }, 20000), nanoseconds([&] { empty({1000}, x.options()); }, 20000));
  std::printf("a block of CachingAllocator, taken and given back: %.0f ns (budget: 150)\n", cached_block());
  std::printf("lerp of 1,000 elements: %.0f ns on the CPU, %.0f ns on the device (budget through the fallback: 1,500 more)\n",
              nanoseconds([&] { cresset::lerp(a, a, 0.5); }, 500), nanoseconds([&] { cresset::lerp(x, x, 0.5); }, 500));
  std::printf("%s", cpu_fallback_report().c_str());
}
