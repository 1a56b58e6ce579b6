#include "strided.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace cresset_opencl {
namespace {

constexpr int64_t kNarrow = std::numeric_limits<int32_t>::max();

// Strides of one tensor seen under broadcast sizes.
std::vector<int64_t> aligned(const Tensor& t, IntArrayRef sizes) {
  std::vector<int64_t> out(sizes.size(), 0);
  const auto own = t.sizes(), strides = t.strides();
  const std::size_t skip = sizes.size() - own.size();
  for (std::size_t d = 0; d < own.size(); ++d)
    if (own[d] != 1) out[skip + d] = strides[d];
  return out;
}

// How an offset follows from the index when one dimension remains: by it, not at all, or by a stride.
char pattern_of(int64_t stride) { return stride == 1 ? 'i' : stride == 0 ? '0' : 's'; }

}  // namespace

bool make_walk(IntArrayRef sizes, const std::vector<const Tensor*>& tensors, Walk& walk) {
  std::vector<std::vector<int64_t>> strides;
  for (const Tensor* t : tensors) strides.push_back(aligned(*t, sizes));
  return make_walk_of_strides(sizes, strides, walk);
}

bool make_walk_of_strides(IntArrayRef sizes, const std::vector<std::vector<int64_t>>& strides, Walk& walk) {
  std::vector<std::size_t> order;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    walk.n *= sizes[d];
    if (sizes[d] != 1) order.push_back(d);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return strides[0][a] > strides[0][b]; });
  std::vector<std::size_t> last;  // for each remaining dimension its innermost one
  std::vector<int64_t> extent;
  for (std::size_t d : order) {
    const bool merges =
        !last.empty() && std::all_of(strides.begin(), strides.end(), [&](const auto& s) { return s[last.back()] == s[d] * sizes[d]; });
    if (merges) {
      last.back() = d;
      extent.back() *= sizes[d];
    } else {
      last.push_back(d);
      extent.push_back(sizes[d]);
    }
  }
  if (last.size() > kMaxDims) return false;
  walk.ndim = static_cast<int>(last.size());
  walk.wide = walk.n > kNarrow;
  for (std::size_t k = 0; k < strides.size(); ++k) {
    auto& s = walk.strides.emplace_back();
    int64_t reach = 0;
    for (std::size_t d = 0; d < last.size(); ++d) {
      walk.sizes[d] = extent[d];
      s[d] = strides[k][last[d]];
      reach += s[d] * (extent[d] - 1);
    }
    walk.wide |= reach > kNarrow;
  }
  return true;
}

std::string walk_key(const Walk& w) {
  std::string key = std::to_string(w.ndim) + (w.wide ? "w" : "");
  if (w.ndim == 1)
    for (const auto& s : w.strides) key += pattern_of(s[0]);
  return key;
}

std::string index_source(bool wide) { return wide ? "typedef ulong index;\n" : "typedef uint index;\n"; }

std::string walk_source(const Walk& w, const std::string& name) {
  const std::string d = std::to_string(std::max(w.ndim, 1)), k = std::to_string(w.strides.size());
  std::string out =
      "typedef struct { index size[" + d + "]; index stride[" + k + "][" + d + "]; } Shape_" + name + ";\n#define WALK_" + name + " ";
  for (std::size_t t = 0; t < w.strides.size(); ++t) {
    const std::string number = std::to_string(t);
    const char pattern = w.ndim == 1 ? pattern_of(w.strides[t][0]) : '0';
    const std::string start = pattern == 'i' ? "i" : pattern == '0' ? "0" : "i * " + name + ".stride[" + number + "][0]";
    out += std::string(w.ndim > 1 ? "index " : "const index ") + name + number + " = " + start + "; ";
  }
  if (w.ndim > 1) {
    out += "{ index rest = i; ";
    for (int dim = w.ndim; dim-- > 0;) {
      const std::string at = std::to_string(dim), size = name + ".size[" + at + "]";
      out += dim > 0 ? "{ const index next = rest / " + size + ", here = rest - next * " + size + "; rest = next; "
                     : "{ const index here = rest; ";
      for (std::size_t t = 0; t < w.strides.size(); ++t)
        out += name + std::to_string(t) + " += here * " + name + ".stride[" + std::to_string(t) + "][" + at + "]; ";
      out += "} ";
    }
    out += "}";
  }
  return out + "\n";
}

namespace {
template <class Index>
void add_shape(Launch& launch, const Walk& w) {
  const int d = std::max(w.ndim, 1);
  std::vector<Index> shape;
  for (int i = 0; i < d; ++i) shape.push_back(w.ndim ? static_cast<Index>(w.sizes[i]) : 1);
  for (const auto& s : w.strides)
    for (int i = 0; i < d; ++i) shape.push_back(w.ndim ? static_cast<Index>(s[static_cast<std::size_t>(i)]) : 0);
  launch.raw(shape.data(), shape.size() * sizeof(Index));
}
}  // namespace

void add_walk(Launch& launch, const Walk& w, bool wide) {
  if (wide)
    add_shape<cl_ulong>(launch, w);
  else
    add_shape<cl_uint>(launch, w);
  launch.value(static_cast<cl_ulong>(w.n));
}

}  // namespace cresset_opencl
