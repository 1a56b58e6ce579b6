// What the kernels on oneDNN share: engine, stream, threads, scratch memory, errors.
#pragma once

#include <dnnl.hpp>

#include <vector>

#include <cresset/core/tensor.h>

#include "base/signals.h"

namespace cresset::cpu {

dnnl::engine& onednn_engine();
/// Of the calling thread.
dnnl::stream& onednn_stream();
/// Keeps oneDNN to the calling thread; the pool's threads take parts of problems. Its own threads would be a second set beside the pool,
/// and wait for each other when the machine is busy.
void use_one_onednn_thread();

/// Memory for reordered operands. It comes from the tensor allocator, which keeps big blocks: fresh pages would cost more than many a
/// reordering. Lives as long as this object.
class OnednnScratch {
 public:
  dnnl::memory make(const dnnl::memory::desc& desc) {
    kept_.push_back(detail::empty_cpu({static_cast<int64_t>(desc.get_size())}, kByte));
    return dnnl::memory(desc, onednn_engine(), kept_.back().data_ptr());
  }

 private:
  std::vector<Tensor> kept_;
};

/// run(), or false when oneDNN has no implementation for the problem. Other failures raise DeviceError.
template <class Run>
bool onednn_guarded(const char* what, const Run& run) {
  const SignalsBlocked blocked;
  try {
    return run();
  } catch (const dnnl::error& e) {
    if (e.status == dnnl_unimplemented || e.status == dnnl_invalid_arguments) return false;
    CRESSET_THROW(DeviceError, "oneDNN ", what, " failed with status ", static_cast<int>(e.status), ": ", e.what());
  }
}

}  // namespace cresset::cpu
