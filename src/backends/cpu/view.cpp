// The operators of the view family that replace a tensor's memory; everything else in it is shared by all backends.
#include "cpu/cpu_decl_view.h"
#include "ops/ops_decl_view.h"

namespace cresset::cpu {

Tensor& resize_storage(Tensor& self, IntArrayRef size, std::optional<MemoryFormat> memory_format) {
  return ops::resize_inplace(self, size, memory_format);
}
Tensor& set_source(Tensor& self, const Tensor& source) { return ops::set_to_tensor(self, source); }
Tensor& set_empty(Tensor& self) { return ops::set_to_empty(self); }

}  // namespace cresset::cpu
