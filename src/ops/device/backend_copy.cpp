// Copies and fills of strided tensors on devices described by a table, out of copies of contiguous bytes where the table has no more.
#include "ops/device/backend_copy.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>

#include <cresset/base/fork.h>
#include <cresset/core/backend.h>
#include <cresset/core/device_guard.h>
#include <cresset/ops/cpu_fallback.h>
#include <cresset/ops/functions_copy.h>
#include <cresset/ops/functions_creation.h>

#include "ops/shared/shape_util.h"
#include "ops/shared/structured.h"

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

// ---- inside of a device

// More transfers than this for one copy cost more than the way through the host.
constexpr int64_t kMostRows = 64;

cresset_stream current_stream(Device d) {
  return static_cast<cresset_stream>(cresset::impl::getDeviceGuardImpl(d.type())->getStream(d).id());
}

// The address of a tensor's first element and, for opaque memory, what it is behind the handle.
void* place_of(const Tensor& t, bool opaque, std::size_t& offset) {
  const std::size_t bytes = static_cast<std::size_t>(t.storage_offset()) * t.itemsize();
  offset = opaque ? bytes : 0;
  return static_cast<char*>(t.storage().data()) + (bytes - offset);
}

// True when the backend did it.
bool copy_by_backend(const Tensor& from, const Tensor& to) {
  const cresset_backend& table = *backend_table(to.device().type());
  const auto function = from.scalar_type() == to.scalar_type() ? table.copy_strided : table.copy_cast;
  if (!function) return false;
  for (int64_t d = 0; d < to.dim(); ++d)
    if (to.size(d) > 1 && to.stride(d) == 0) return false;  // elements in one place, which the host writes one after the other
  const bool opaque = table.flags & CRESSET_OPAQUE_MEMORY;
  cresset_strided_copy c{};
  c.struct_size = sizeof c;
  c.target = place_of(to, opaque, c.target_offset);
  c.source = place_of(from, opaque, c.source_offset);
  c.sizes = to.sizes().data();
  c.target_strides = to.strides().data();
  c.source_strides = from.strides().data();
  c.ndim = static_cast<int32_t>(to.dim());
  c.target_dtype = static_cast<int32_t>(to.scalar_type());
  c.source_dtype = static_cast<int32_t>(from.scalar_type());
  c.device = to.device().index();
  c.stream = current_stream(to.device());
  const cresset_status status = function(table.self, &c);
  if (status == CRESSET_USE_FALLBACK) return false;
  cresset::detail::check_backend(to.device().type(), status, c.device, "a copy between layouts or types");
  return true;
}

// Rows that both sides have in one piece, if there are few of them.
bool copy_rows(const Tensor& from, const Tensor& to) {
  int64_t row = 1, rows = 1;
  int64_t d = to.dim();
  while (d > 0 && (to.size(d - 1) == 1 || (to.stride(d - 1) == row && from.stride(d - 1) == row))) row *= to.size(--d);
  for (int64_t outer = 0; outer < d; ++outer) rows *= to.size(outer);
  if (rows > kMostRows) return false;
  const std::size_t item = to.itemsize();
  for (int64_t r = 0; r < rows; ++r) {
    int64_t rest = r, at_to = to.storage_offset(), at_from = from.storage_offset();
    for (int64_t outer = d; outer-- > 0; rest /= to.size(outer)) {
      at_to += rest % to.size(outer) * to.stride(outer);
      at_from += rest % to.size(outer) * from.stride(outer);
    }
    cresset::detail::copy_bytes(to.storage().data(), to.device(), static_cast<std::size_t>(at_to) * item, from.storage().data(),
                                from.device(), static_cast<std::size_t>(at_from) * item, static_cast<std::size_t>(row) * item, true);
  }
  return true;
}

Tensor on_device(IntArrayRef sizes, const Tensor& like) {
  return cresset::empty(sizes, TensorOptions(like.scalar_type()).device(like.device()));
}

// True when it is done, or will be when the stream comes to it. Memory that is given back meanwhile is the backend's to keep.
bool copy_inside(const Tensor& from, const Tensor& to) {
  if (from.device() != to.device()) return false;
  if (from.is_alias_of(to)) {  // they may overlap
    const Tensor between = on_device(from.sizes(), from);
    return copy_inside(from, between) && copy_inside(between, to);
  }
  if (copy_by_backend(from, to)) return true;
  return from.scalar_type() == to.scalar_type() && copy_rows(from, to);
}

const OperatorHandle& operator_of(const char* name) {
  static ForkSafe<std::mutex> mutex;
  static auto* found = new std::map<std::string, OperatorHandle>;
  const std::lock_guard lock(mutex);
  const auto it = found->find(name);
  if (it != found->end()) return it->second;
  return found->emplace(name, *Dispatcher::singleton().findSchema(parse_operator_name(name))).first->second;
}

void count(const char* op, const Tensor& t) { count_round_trip(operator_of(op), t.device(), static_cast<int64_t>(t.nbytes())); }

// ---- fills

struct Pattern {
  std::array<unsigned char, 16> bytes{};
  std::size_t size = 0;
  bool operator<(const Pattern& other) const { return std::tie(bytes, size) < std::tie(other.bytes, other.size); }
};

Pattern pattern_of(const Scalar& value, ScalarType type) {
  const Tensor one = allocate_cpu({DimVector(), type, Device(kCPU), std::nullopt});
  one.fill_(value);
  Pattern p;
  p.size = one.itemsize();
  std::memcpy(p.bytes.data(), one.data_ptr(), p.size);
  return p;
}

// One element in the memory of a device, made once for each value: from then on a fill with it need not wait for the host's memory to be
// read. It is no tensor's memory, and is not counted as such.
struct Constants {
  ForkSafe<std::mutex> mutex;
  std::map<std::tuple<DeviceType, int, Pattern>, void*> made;
};

// Null when so many values have been met that this one is not kept.
void* constant(Device d, const Pattern& p) {
  constexpr std::size_t kMost = 4096;
  static auto* all = new Constants;
  const std::lock_guard lock(all->mutex);
  const auto key = std::make_tuple(d.type(), static_cast<int>(d.index()), p);
  if (const auto it = all->made.find(key); it != all->made.end()) return it->second;
  if (all->made.size() >= kMost) return nullptr;
  const cresset_backend& t = *backend_table(d.type());
  void* memory = nullptr;
  cresset::detail::check_backend(d.type(), t.allocate(t.self, d.index(), p.size, &memory), d.index(), "memory for a fill");
  cresset::detail::copy_bytes(memory, d, 0, p.bytes.data(), Device(kCPU), 0, p.size, false);
  all->made.emplace(key, memory);
  return memory;
}

// One element is copied, then twice as many each time.
void fill_by_copies(const Tensor& self, const Pattern& p) {
  const std::size_t all = self.nbytes(), first = static_cast<std::size_t>(self.storage_offset()) * self.itemsize();
  void* base = self.storage().data();
  if (void* one = constant(self.device(), p))
    cresset::detail::copy_bytes(base, self.device(), first, one, self.device(), 0, p.size, true);
  else
    cresset::detail::copy_bytes(base, self.device(), first, p.bytes.data(), Device(kCPU), 0, p.size, false);
  for (std::size_t done = p.size; done < all; done *= 2)
    cresset::detail::copy_bytes(base, self.device(), first + done, base, self.device(), first, std::min(done, all - done), true);
}

void fill_dense(const Tensor& self, const Pattern& p) {
  const cresset_backend& t = *backend_table(self.device().type());
  const bool opaque = t.flags & CRESSET_OPAQUE_MEMORY;
  const int device = self.device().index();
  const bool one_byte =
      std::all_of(p.bytes.begin(), p.bytes.begin() + static_cast<std::ptrdiff_t>(p.size), [&](auto b) { return b == p.bytes[0]; });
  std::size_t offset = 0;
  void* data = place_of(self, opaque, offset);
  if (t.fill && one_byte && offset == 0) {
    cresset::detail::check_backend(
        self.device().type(), t.fill(t.self, device, data, self.nbytes(), p.bytes[0], current_stream(self.device())), device, "a fill");
  } else if (t.fill_pattern) {
    cresset::detail::check_backend(self.device().type(),
                                   t.fill_pattern(t.self, device, data, offset, static_cast<std::size_t>(self.numel()), p.bytes.data(),
                                                  p.size, current_stream(self.device())),
                                   device, "a fill");
  } else {
    fill_by_copies(self, p);
  }
}

Tensor& fill(Tensor& self, const Scalar& value, const char* op) {
  if (self.numel() == 0) return self;
  const Pattern p = pattern_of(value, self.scalar_type());
  if (self.is_non_overlapping_and_dense()) {
    fill_dense(self, p);
    return self;
  }
  // What lies between the elements stays: they come from a dense tensor, or from one element that stands for all.
  Tensor one = on_device({1}, self);
  fill_dense(one, p);
  const DimVector zeros(static_cast<std::size_t>(self.dim()), 0);
  if (copy_by_backend(make_view(one, self.sizes(), zeros, 0, self.scalar_type()), self)) return self;
  const Tensor dense = on_device(self.sizes(), self);
  fill_dense(dense, p);
  if (copy_rows(dense, self)) return self;
  count(op, self);
  const Tensor host = allocate_cpu({DimVector(self.sizes()), self.scalar_type(), Device(kCPU), std::nullopt});
  host.fill_(value);
  cresset::_copy_from(host, self, false);
  return self;
}

}  // namespace

Tensor& backend_fill(Tensor& self, const Scalar& value) { return fill(self, value, "aten::fill_.Scalar"); }
Tensor& backend_zero(Tensor& self) { return fill(self, 0, "aten::zero_"); }

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
    // Inside of one device the stream keeps the order.
    copy_raw(self, dst, dst.nbytes(), non_blocking || (!from_host && self.device() == dst.device()));
    return dst;
  }
  if (!from_host && !to_host) {
    if (copy_inside(self, dst)) return dst;
    count("aten::_copy_from", self);
  }
  // Into a layout with gaps: over a dense tensor of the device, which spares reading what lies in the gaps.
  if (from_host && !dst.is_non_overlapping_and_dense() && backend_table(dst.device().type())->copy_strided) {
    const Tensor dense = on_device(dst.sizes(), dst);
    backend_copy_from(self, dense, non_blocking);
    if (copy_inside(dense, dst)) return dst;
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
