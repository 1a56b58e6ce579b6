// Engine, stream and threads of oneDNN.
#include "backends/cpu/onednn.h"

#include <dlfcn.h>

#include <cresset/base/parallel.h>

namespace cresset::cpu {

dnnl::engine& onednn_engine() {
  static auto& e = *new dnnl::engine(dnnl::engine::kind::cpu, 0);  // never destroyed: threads may work at the end of the process
  return e;
}

dnnl::stream& onednn_stream() {
  static thread_local dnnl::stream s(onednn_engine());
  return s;
}

// oneDNN runs on OpenMP, whose idle threads spin: they only pay for problems of some size, and never inside of a region of
// our own. The runtime is whichever one oneDNN was linked with, hence found by name.
void set_onednn_threads(double work) {
  using Set = void (*)(int);
  static const auto set = reinterpret_cast<Set>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (!set) return;
  constexpr double kWorthThreads = 4e6;
  static thread_local int current = 0;
  const int wanted = in_parallel_region() || work < kWorthThreads ? 1 : get_num_threads();
  if (current != wanted) set(current = wanted);
}

}  // namespace cresset::cpu
