#include "launch.h"

#include <cresset/core/device_guard.h>

#include <cstring>

#include "faults.h"
#include "kernel_files.h"
#include "memory.h"
#include "programs.h"

namespace cresset_opencl {

using cresset::kBFloat16;
using cresset::kBool;
using cresset::kByte;
using cresset::kChar;
using cresset::kDouble;
using cresset::kFloat;
using cresset::kHalf;
using cresset::kInt;
using cresset::kLong;
using cresset::kShort;

ClDevice& device_of(const Tensor& t) { return device(t.device().index()); }

cl_command_queue queue_for(const Tensor& t) {
  const auto* guard = cresset::impl::getDeviceGuardImpl(t.device().type());
  return device_of(t).queue(static_cast<uint64_t>(guard->getStream(t.device()).id()));
}

const char* kernel_file(std::string_view name) {
  for (const KernelFile& f : kKernelFiles)
    if (name == f.name) return f.text;
  CRESSET_THROW(Error, "opencl: there is no kernel file ", std::string(name), ".");
}

std::string kernel_head(std::string_view file) {
  std::string head = kernel_file("types");
  const std::string text = kernel_file(file);
  if (text.find("FAULTS") != std::string::npos) head += kernel_file("faults");
  const bool rows = text.find("ALONG_ROW(") != std::string::npos || text.find("row_sum(") != std::string::npos;
  if (rows || text.find("VLOAD(") != std::string::npos) head += kernel_file("vectors");
  if (rows) head += kernel_file("rows");
  return head;
}

const char* type_letter(ScalarType t) {
  switch (t) {
    case kBool: return "b1";
    case kByte: return "u8";
    case kChar: return "i8";
    case kShort: return "i16";
    case kInt: return "i32";
    case kLong: return "i64";
    case kHalf: return "f16";
    case kBFloat16: return "bf16";
    case kFloat: return "f32";
    case kDouble: return "f64";
    default: return "none";
  }
}

const char* moved_letter(ScalarType t) { return t == kHalf ? "i16" : type_letter(t); }

Compute compute_of(ScalarType t) {
  switch (t) {
    case kBool:
    case kByte:
    case kChar:
    case kShort:
    case kInt: return Compute::Int;
    case kLong: return Compute::Long;
    case kHalf:
    case kBFloat16:
    case kFloat: return Compute::Float;
    case kDouble: return Compute::Double;
    default: return Compute::None;
  }
}

const char* compute_name(Compute c) {
  constexpr const char* names[] = {"int", "long", "float", "double", "none"};
  return names[static_cast<int>(c)];
}

bool computes(const ClDevice& d, ScalarType t) {
  const Compute c = compute_of(t);
  return c != Compute::None && (c != Compute::Double || d.facts().has_fp64);
}

std::size_t group_size(const ClDevice& d, std::size_t wanted) {
  std::size_t n = 1;
  while (2 * n <= wanted && 2 * n <= d.facts().max_group) n *= 2;
  return n;
}

Launch::Launch(const Tensor& on, const char* file, const char* name, const std::string& defines)
    : device_(device_of(on)),
      queue_(queue_for(on)),
      kernel_(device_.programs().kernel(std::string(file) + ":" + defines, name,
                                        [&] { return ProgramText{kernel_head(file) + kernel_file(file), defines}; })),
      lock_(device_.launch_mutex()) {}

Launch::Launch(ClDevice& d, cl_command_queue queue, cl_kernel kernel)
    : device_(d), queue_(queue), kernel_(kernel), lock_(d.launch_mutex()) {}

Launch& Launch::tensor(const Tensor& t, int64_t elements) {
  Place place;  // a tensor that is undefined or empty: no buffer, which kernels do not touch
  if (t.defined() && t.data_ptr()) place = device_.memory().find(t.data_ptr());
  raw(&place.buffer, sizeof place.buffer);
  const auto shift = t.defined() ? static_cast<std::size_t>(elements) * static_cast<std::size_t>(t.element_size()) : 0;
  return value(static_cast<cl_ulong>(place.offset + shift));
}

Launch& Launch::raw(const void* data, std::size_t nbytes) {
  check(clSetKernelArg(kernel_, next_++, nbytes, data), "clSetKernelArg");
  return *this;
}

Launch& Launch::local(std::size_t nbytes) { return raw(nullptr, nbytes); }

Launch& Launch::faults() {
  const cl_mem memory = device_.faults().expected_in(queue_);
  return raw(&memory, sizeof memory);
}

Launch& Launch::number(Compute c, double v) {
  switch (c) {
    case Compute::Int: return value(static_cast<cl_int>(v));
    case Compute::Long: return value(static_cast<cl_long>(v));
    case Compute::Float: return value(static_cast<cl_float>(v));
    default: return value(static_cast<cl_double>(v));
  }
}

void Launch::run(std::size_t n) {
  // One size for all: compilers for processors compile a kernel anew for every size of groups.
  const std::size_t local = group_size(device_, 256);
  run_groups({(n + local - 1) / local, 1, 1}, {local, 1, 1});
}

void Launch::run_groups(std::array<std::size_t, 3> groups, std::array<std::size_t, 3> size) {
  const std::size_t global[3] = {groups[0] * size[0], groups[1] * size[1], groups[2] * size[2]};
  check(clEnqueueNDRangeKernel(queue_, kernel_, 3, nullptr, global, size.data(), 0, nullptr, nullptr), "clEnqueueNDRangeKernel");
}

}  // namespace cresset_opencl
