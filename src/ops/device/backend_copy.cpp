// Copies of strided tensors between the host and devices described by a table, out of copies of contiguous bytes.
#include "ops/device/backend_copy.h"

#include <cresset/core/backend.h>
#include <cresset/ops/functions_copy.h>

#include "ops/shape_util.h"
#include "ops/structured.h"

namespace cresset::ops {
namespace {

bool same_layout(const Tensor& a, const Tensor& b) {
  if (a.is_contiguous() && b.is_contiguous()) return true;
  if (!a.is_non_overlapping_and_dense() || !b.is_non_overlapping_and_dense()) return false;
  const auto sizes = a.sizes();
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] > 1 && a.strides()[d] != b.strides()[d]) return false;
  return true;
}

// `nbytes` from the first element of one tensor to the first of the other.
void copy_raw(const Tensor& from, const Tensor& to, std::size_t nbytes, bool non_blocking) {
  cresset::detail::copy_bytes(to.storage().data(), to.device(), static_cast<std::size_t>(to.storage_offset()) * to.itemsize(),
                              from.storage().data(), from.device(), static_cast<std::size_t>(from.storage_offset()) * from.itemsize(),
                              nbytes, non_blocking);
}

// Bytes from the first element to the end of the last, gaps included.
std::size_t span_of(const Tensor& t) { return cresset::detail::compute_storage_nbytes(t.sizes(), t.strides(), t.itemsize()); }

// A tensor of the CPU with the sizes and strides of t over memory of its own, gaps included; nothing is copied yet.
Tensor host_image(const Tensor& t) {
  const Tensor bytes = cresset::detail::empty_cpu({static_cast<int64_t>(span_of(t))}, kByte);
  return make_view(bytes, t.sizes(), t.strides(), 0, t.scalar_type());
}

Tensor download(const Tensor& t) {
  Tensor image = host_image(t);
  copy_raw(t, image, span_of(t), false);
  return image;
}

void copy_on_host(const Tensor& from, const Tensor& to) { cresset::_copy_from(from, to, false); }

}  // namespace

Tensor backend_copy_from(const Tensor& self, const Tensor& dst, bool non_blocking) {
  CRESSET_CHECK(self.sizes() == dst.sizes(), "_copy_from: tensors of equal sizes were required; given ", self.sizes(), " and ", dst.sizes(),
                ".");
  if (dst.numel() == 0) return dst;
  const bool from_host = self.is_cpu(), to_host = dst.is_cpu();
  // Two kinds of devices meet on the host.
  if (!from_host && !to_host && self.device().type() != dst.device().type()) {
    const Tensor staged = allocate_cpu({DimVector(self.sizes()), self.scalar_type(), Device(kCPU), std::nullopt});
    copy_on_host(self, staged);
    copy_on_host(staged, dst);
    return dst;
  }
  if (self.scalar_type() == dst.scalar_type() && same_layout(self, dst)) {
    copy_raw(self, dst, dst.nbytes(), non_blocking);
    return dst;
  }
  const Tensor source = from_host ? self : download(self);
  if (to_host) {
    copy_on_host(source, dst);
    return dst;
  }
  // What lies in the gaps between dst's elements belongs to others and must come back as it was.
  const Tensor image = dst.is_non_overlapping_and_dense() ? host_image(dst) : download(dst);
  copy_on_host(source, image);
  copy_raw(image, dst, span_of(dst), false);
  return dst;
}

}  // namespace cresset::ops
