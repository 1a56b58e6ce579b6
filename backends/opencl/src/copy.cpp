// Copies and fills. Between host and device bytes are moved between contiguous tensors; layouts and types change on the side that can.
#include "copy.h"

#include <cresset/core/accelerator_hooks.h>
#include <cresset/core/device_guard.h>
#include <cresset/cresset.h>

#include "backend.h"
#include "programs.h"
#include "strided.h"

namespace cresset_opencl {
namespace {

using cresset::Scalar;

// Types whose elements move as they are.
const char* raw_type(std::size_t itemsize) {
  switch (itemsize) {
    case 1: return "uchar";
    case 2: return "ushort";
    case 4: return "uint";
    case 8: return "ulong";
    default: return "ulong2";
  }
}

bool same_layout(const Tensor& a, const Tensor& b) {
  if (a.is_contiguous() && b.is_contiguous()) return true;
  if (!a.is_non_overlapping_and_dense() || !b.is_non_overlapping_and_dense()) return false;
  for (int64_t d = 0; d < a.dim(); ++d)
    if (a.size(d) > 1 && a.stride(d) != b.stride(d)) return false;
  return true;
}

void move_bytes(const Tensor& from, const Tensor& to, bool non_blocking) {
  cresset_copy c{};
  c.struct_size = sizeof c;
  c.target = to.data_ptr();
  c.source = from.data_ptr();
  c.nbytes = static_cast<std::size_t>(to.numel()) * static_cast<std::size_t>(to.element_size());
  c.target_device = to.is_cpu() ? -1 : to.device().index();
  c.source_device = from.is_cpu() ? -1 : from.device().index();
  const Tensor& on = to.is_cpu() ? from : to;
  c.stream = static_cast<cresset_stream>(cresset::impl::getDeviceGuardImpl(on.device().type())->getStream(on.device()).id());
  // Memory that the host can free at any time cannot be waited for later.
  c.non_blocking =
      non_blocking && (!to.is_cpu() || cresset::is_pinned_ptr(c.target)) && (!from.is_cpu() || cresset::is_pinned_ptr(c.source));
  cresset::backend_object<OpenCl>().copy(c);
}

Tensor on_host(const Tensor& t) { return t.to(cresset::Device(cresset::kCPU)); }

void device_to_device(const Tensor& from, const Tensor& to) {
  // Inside of one device the queue keeps the order.
  if (from.scalar_type() == to.scalar_type() && same_layout(from, to)) return move_bytes(from, to, from.device() == to.device());
  if (copy_on_device(from, to)) return;
  const Tensor host = on_host(from).to(to.scalar_type()).contiguous();
  cresset::_copy_from(host, to, false);
}

void host_to_device(const Tensor& from, const Tensor& to, bool non_blocking) {
  if (from.scalar_type() == to.scalar_type() && same_layout(from, to)) return move_bytes(from, to, non_blocking);
  const Tensor host = from.to(to.scalar_type()).contiguous();
  if (to.is_contiguous()) return move_bytes(host, to, false);
  const Tensor staged = cresset::empty(to.sizes(), to.options());
  move_bytes(host, staged, false);
  CRESSET_CHECK_NOT_IMPLEMENTED(copy_on_device(staged, to), "opencl: a tensor of ", to.dim(), " dimensions that cannot be merged to ",
                                kMaxDims, " was the target of a copy; make it contiguous first.");
}

void device_to_host(const Tensor& from, const Tensor& to, bool non_blocking) {
  if (from.scalar_type() == to.scalar_type() && same_layout(from, to)) return move_bytes(from, to, non_blocking);
  const Tensor source = dense(from);
  const Tensor host = cresset::empty(from.sizes(), to.options().dtype(from.scalar_type()));
  move_bytes(source, host, false);
  cresset::_copy_from(host, to, false);
}

Tensor copy_from(const Tensor& self, const Tensor& dst, bool non_blocking) {
  CRESSET_CHECK(self.sizes() == dst.sizes(), "_copy_from: tensors of equal sizes were required; given ", self.sizes(), " and ", dst.sizes(),
                ".");
  if (dst.numel() == 0) return dst;
  if (self.is_cpu())
    host_to_device(self, dst, non_blocking);
  else if (dst.is_cpu())
    device_to_host(self, dst, non_blocking);
  else if (self.device() == dst.device())
    device_to_device(self, dst);
  else
    cresset::_copy_from(on_host(self), dst, false);
  return dst;
}

Tensor& fill_scalar(Tensor& self, const Scalar& value) {
  if (self.numel() == 0 || fill_on_device(self, value)) return self;
  Tensor host = cresset::empty(self.sizes(), self.options().device(cresset::kCPU));
  host.fill_(value);
  cresset::_copy_from(host, self, false);
  return self;
}

Tensor& zero(Tensor& self) {
  if (self.numel() > 0 && self.is_non_overlapping_and_dense()) {
    const auto* guard = cresset::impl::getDeviceGuardImpl(self.device().type());
    cresset::backend_object<OpenCl>().fill(self.device().index(), self.data_ptr(), self.nbytes(), 0,
                                           static_cast<cresset_stream>(guard->getStream(self.device()).id()));
    return self;
  }
  return fill_scalar(self, 0);
}

Scalar local_scalar(const Tensor& self) {
  const Tensor host = cresset::empty(self.sizes(), self.options().device(cresset::kCPU));
  move_bytes(self, host, false);
  return host.item();
}

// The side of a tile: its lines of both tensors fit the smallest caches together.
constexpr int64_t kTile = 32;
constexpr int64_t kTileLines = 8;  // that a work group of a graphics processor reads at once
constexpr std::size_t kTileItems = kTile * kTileLines;

// The dimension along which the source's elements lie together while the target's innermost one is another; -1 when there is none.
int turned_dimension(const Walk& walk) {
  const int inner = walk.ndim - 1;
  if (walk.ndim < 2 || walk.strides[0][static_cast<std::size_t>(inner)] != 1) return -1;
  for (int d = 0; d < inner; ++d)
    if (walk.strides[1][static_cast<std::size_t>(d)] == 1 && walk.sizes[d] >= kTile / 2 && walk.sizes[inner] >= kTile / 2) return d;
  return -1;
}

// One tile of the dimensions `turned` and the innermost one. On processors a work item reads and writes whole cache lines; on graphics
// processors a work group does, through local memory.
std::string tile_source(const Walk& walk, int turned, const std::string& type, bool grouped) {
  const std::string r = std::to_string(turned), c = std::to_string(walk.ndim - 1), side = std::to_string(kTile);
  std::string out = "kernel void run(BUFFER(p0), BUFFER(p1), const Shape_s s, const ulong n) {\n  global " + type + "* a = (global " +
                    type + "*)(p0_memory + p0_offset);\n  global " + type + "* b = (global " + type + "*)(p1_memory + p1_offset);\n" +
                    "  const index across = (s.size[" + c + "] + " + side + " - 1) / " + side + ", down = (s.size[" + r + "] + " + side +
                    " - 1) / " + side + ";\n  index rest = (index)get_group_id(0);\n  const index c0 = rest % across * " + side +
                    ";\n  rest /= across;\n  const index r0 = rest % down * " + side + ";\n  rest /= down;\n";
  for (int d = walk.ndim - 1; d-- > 0;) {
    const std::string at = std::to_string(d);
    if (d != turned)
      out += "  a += rest % s.size[" + at + "] * s.stride[0][" + at + "]; b += rest % s.size[" + at + "] * s.stride[1][" + at +
             "]; rest /= s.size[" + at + "];\n";
  }
  out += "  a += r0 * s.stride[0][" + r + "] + c0; b += r0 + c0 * s.stride[1][" + c + "];\n" + "  const index rows = min(s.size[" + r +
         "] - r0, (index)" + side + "), columns = min(s.size[" + c + "] - c0, (index)" + side + ");\n";
  const std::string to = "a[y * s.stride[0][" + r + "] + x] = ", from = "b[y + x * s.stride[1][" + c + "]]";
  if (!grouped) return out + "  for (index y = 0; y < rows; ++y)\n    for (index x = 0; x < columns; ++x) " + to + from + ";\n}\n";
  // A line of the tile is one element longer than its side: a column then lies in as many banks of the memory as it has elements.
  return out + "  local " + type + " tile[" + side + "][" + side +
         " + 1];\n  const index line = get_local_id(0), step = get_local_size(1);\n" +
         "  for (index x = get_local_id(1), y = line; x < columns; x += step) if (y < rows) tile[x][y] = " + from +
         ";\n  barrier(CLK_LOCAL_MEM_FENCE);\n" + "  for (index y = get_local_id(1), x = line; y < rows; y += step) if (x < columns) " +
         to + "tile[x][y];\n}\n";
}

// Copies a turned tensor tile by tile; false when it is not one.
bool copy_tiles(ClDevice& d, const Tensor& from, const Tensor& to, const Walk& walk) {
  const int turned = turned_dimension(walk);
  const bool grouped = !d.facts().is_cpu;
  if (turned < 0 || (grouped && group_size(d, kTileItems) < kTileItems)) return false;
  const std::string type = raw_type(static_cast<std::size_t>(to.element_size()));
  const cl_kernel kernel = d.programs().kernel("copy tiles " + type + " " + std::to_string(turned) + " " + walk_key(walk), "run", [&] {
    return ProgramText{std::string(kernel_file("types")) + index_source(walk.wide) + walk_source(walk) +
                       tile_source(walk, turned, type, grouped)};
  });
  int64_t tiles = 1;
  for (int k = 0; k < walk.ndim; ++k) tiles *= k == turned || k == walk.ndim - 1 ? (walk.sizes[k] + kTile - 1) / kTile : walk.sizes[k];
  Launch launch(d, queue_for(to), kernel);
  launch.tensor(to).tensor(from);
  add_walk(launch, walk);
  if (grouped)
    launch.run_groups({static_cast<std::size_t>(tiles), 1, 1}, {kTile, kTileLines, 1});
  else
    launch.run_apart(static_cast<std::size_t>(tiles));
  return true;
}

}  // namespace

bool copy_on_device(const Tensor& from, const Tensor& to) {
  ClDevice& d = device_of(to);
  const bool raw = from.scalar_type() == to.scalar_type();
  if (!raw && (!computes(d, from.scalar_type()) || !computes(d, to.scalar_type()))) return false;
  Walk walk;
  if (!make_walk(to.sizes(), {&to, &from}, walk)) return false;
  if (raw && copy_tiles(d, from, to, walk)) return true;
  const std::string types = raw ? raw_type(static_cast<std::size_t>(to.element_size()))
                                : std::string(type_letter(from.scalar_type())) + " " + type_letter(to.scalar_type());
  const cl_kernel kernel = d.programs().kernel("copy " + types + " " + walk_key(walk), "run", [&] {
    std::string move = raw ? std::string("  global ") + types + "* a = (global " + types + "*)(p0_memory + p0_offset);\n  global " + types +
                                 "* b = (global " + types + "*)(p1_memory + p1_offset);\n  a[s0] = b[s1];\n"
                           : std::string("  OPEN(") + type_letter(to.scalar_type()) + ", p0);\n  OPEN(" + type_letter(from.scalar_type()) +
                                 ", p1);\n  const " + compute_name(compute_of(from.scalar_type())) + " v = LOAD(" +
                                 type_letter(from.scalar_type()) + ", p1, s1);\n  STORE(" + type_letter(to.scalar_type()) +
                                 ", p0, s0, v);\n";
    return ProgramText{std::string(kernel_file("types")) + index_source(walk.wide) + walk_source(walk) +
                       "kernel void run(BUFFER(p0), BUFFER(p1), const Shape_s s, const ulong n) {\n"
                       "  const index i = (index)get_global_id(0);\n  if (i >= n) return;\n  WALK_s\n" +
                       move + "}\n"};
  });
  Launch launch(d, queue_for(to), kernel);
  launch.tensor(to).tensor(from);
  add_walk(launch, walk);
  launch.run(static_cast<std::size_t>(walk.n));
  return true;
}

bool fill_on_device(const Tensor& to, const Scalar& value) {
  ClDevice& d = device_of(to);
  if (!computes(d, to.scalar_type()) || value.isComplex()) return false;
  Walk walk;
  if (!make_walk(to.sizes(), {&to}, walk)) return false;
  const std::string letter = type_letter(to.scalar_type());
  const Compute c = compute_of(to.scalar_type());
  const cl_kernel kernel = d.programs().kernel("fill " + letter + " " + walk_key(walk), "run", [&] {
    return ProgramText{
        std::string(kernel_file("types")) + index_source(walk.wide) + walk_source(walk) + "kernel void run(BUFFER(p0), const " +
        compute_name(c) +
        " v, const Shape_s s, const ulong n) {\n  const index i = (index)get_global_id(0);\n  if (i >= n) return;\n  WALK_s\n"
        "  OPEN(" +
        letter + ", p0);\n  STORE(" + letter + ", p0, s0, v);\n}\n"};
  });
  Launch launch(d, queue_for(to), kernel);
  launch.tensor(to);
  if (c == Compute::Int)
    launch.value(static_cast<cl_int>(to.scalar_type() == cresset::kBool ? value.toBool() : value.toLong()));
  else if (c == Compute::Long)
    launch.value(static_cast<cl_long>(value.toLong()));
  else
    launch.number(c, value.toDouble());
  add_walk(launch, walk);
  launch.run(static_cast<std::size_t>(walk.n));
  return true;
}

Tensor dense(const Tensor& t) {
  if (t.is_contiguous()) return t;
  const Tensor copy = cresset::empty(t.sizes(), t.options());
  if (t.numel() > 0) cresset::_copy_from(t, copy, false);
  return copy;
}

}  // namespace cresset_opencl

CRESSET_BACKEND_IMPL(cresset_opencl::OpenCl, aten, m) {
  m.impl("_copy_from", &cresset_opencl::copy_from);
  m.impl("fill_.Scalar", &cresset_opencl::fill_scalar);
  m.impl("zero_", &cresset_opencl::zero);
  m.impl("_local_scalar_dense", &cresset_opencl::local_scalar);
}
