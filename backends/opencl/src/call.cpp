#include "call.h"

namespace cresset_opencl {
namespace {

cresset::KernelOptions options(bool (*takes)(const Call&)) {
  cresset::KernelOptions o;
  o.takes = takes;
  o.takes_type = [](cresset::Device d, cresset::ScalarType t) { return computes(device(d.index()), t); };
  return o;
}

}  // namespace

void give(cresset::Library& m, const char* functional, const char* out, Kernel kernel, bool (*takes)(const Call&)) {
  cresset::register_kernel(m, functional, out, kernel, options(takes));
}

void give_in_place(cresset::Library& m, const char* name, Kernel kernel) {
  cresset::register_in_place_kernel(m, name, kernel, options(nullptr));
}

int64_t product(IntArrayRef sizes, int64_t from, int64_t to) {
  int64_t n = 1;
  for (int64_t d = from; d < to; ++d) n *= sizes[static_cast<std::size_t>(d)];
  return n;
}

}  // namespace cresset_opencl
