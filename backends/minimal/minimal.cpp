// The device `minimal`: allocation, copies, one kernel. Every other operator runs on the CPU.
//
// Its memory is host memory that only this file touches, so that it runs everywhere. Replace the four functions of the
// class by the ones of your driver; `cresset doctor minimal` lists what else the class may have.
#include <cresset/backend.h>
#include <cresset/ops/cpu_fallback.h>
#include <cresset/ops/functions_creation.h>

#include <cstdlib>
#include <cstring>

namespace {

struct Minimal {
  static constexpr const char* kName = "minimal";
  static constexpr const char* kDescription = "a device in host memory";

  int device_count() { return 2; }

  // Null means out of memory. nbytes is never zero.
  void* allocate(int /*device*/, std::size_t nbytes) { return std::malloc(nbytes); }
  void deallocate(int /*device*/, void* data, std::size_t /*nbytes*/) { std::free(data); }

  // Contiguous bytes between the host (device -1) and a device, or between devices.
  void copy(const cresset_copy& c) { std::memcpy(c.target, c.source, c.nbytes); }
};

// A kernel sees tensors of its device. What it does not want to do itself it leaves to the CPU.
cresset::Tensor neg(const cresset::Tensor& self) {
  if (self.scalar_type() != cresset::kFloat) return cresset::call_cpu_fallback<cresset::Tensor>("aten::neg", self);
  const cresset::Tensor x = self.contiguous();
  const cresset::Tensor out = cresset::empty_like(x);
  const float* from = x.const_data_ptr<float>();
  float* to = out.mutable_data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = -from[i];
  return out;
}

}  // namespace

CRESSET_BACKEND(Minimal);
CRESSET_BACKEND_IMPL(Minimal, aten, m) { m.impl("neg", &neg); }
