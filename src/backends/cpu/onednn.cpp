// Engine, stream and threads of oneDNN.
#include "backends/cpu/onednn.h"

#include <dlfcn.h>

#include <memory>
#include <utility>

namespace cresset::cpu {

dnnl::engine& onednn_engine() {
  static auto& e = *new dnnl::engine(dnnl::engine::kind::cpu, 0);  // never destroyed: threads may work at the end of the process
  return e;
}

dnnl::stream& onednn_stream() {
  static thread_local const auto s = std::make_unique<dnnl::stream>(onednn_engine());  // on the heap: thread-local memory is small
  return *s;
}

// oneDNN runs on OpenMP, whose runtime is whichever one oneDNN was linked with, hence found by name.
void use_one_onednn_thread() {
  using Set = void (*)(int);
  static const auto set = reinterpret_cast<Set>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  static thread_local bool done = false;
  if (!std::exchange(done, true) && set) set(1);
}

}  // namespace cresset::cpu
