// The device `minimal`: allocation, copies, one kernel. Every other operator runs on the CPU.
//
// Its memory is host memory that only this file touches, so that it runs everywhere. Replace the four functions of the
// class by the ones of your driver; `cresset doctor minimal` lists what else the class may have.
#include <cresset/backend.h>
#include <cresset/kernel.h>

#include <cstdlib>
#include <cstring>

#include "examples.h"

namespace {

struct Minimal : MinimalExamples {
  static constexpr const char* kName = "minimal";
  static constexpr const char* kDescription = "a device in host memory";

  int device_count() { return 2; }

  // Null means out of memory. nbytes is never zero.
  void* allocate(int /*device*/, std::size_t nbytes) { return std::malloc(nbytes); }
  void deallocate(int /*device*/, void* data, std::size_t /*nbytes*/) { std::free(data); }

  // Contiguous bytes between the host (device -1) and a device, or between devices.
  void copy(const cresset_copy& c) { std::memcpy(c.target, c.source, c.nbytes); }
};

// A kernel finds its result allocated and contiguous, and asks for its inputs as it wants them. False: run this case on the CPU.
bool minimal_neg(cresset::KernelCall& call) {
  if (call.result().scalar_type() != cresset::kFloat) return false;
  const cresset::Tensor x = call.operand(0);
  const float* from = x.const_data_ptr<float>();
  float* to = call.result().mutable_data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = -from[i];
  return true;
}

}  // namespace

CRESSET_BACKEND(Minimal);
// The out form serves neg, neg_ and neg(out=).
CRESSET_BACKEND_IMPL(Minimal, aten, m) { cresset::register_kernel(m, "neg", "neg.out", &minimal_neg); }
MINIMAL_EXAMPLE_BLOCKS
