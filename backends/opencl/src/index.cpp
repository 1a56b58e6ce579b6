// Elements found by number: selections, gathers, scatters, embeddings.
#include "backend.h"
#include "call.h"
#include "programs.h"
#include "strided.h"

namespace cresset_opencl {
namespace {

std::string types(const Tensor& x, const Tensor& index) {
  return std::string("-DT=") + type_letter(x.scalar_type()) + " -DM=" + moved_letter(x.scalar_type()) +
         " -DI=" + type_letter(index.scalar_type()) + " -DA=" + compute_name(compute_of(x.scalar_type()));
}
bool is_index(const Tensor& t) { return t.scalar_type() == cresset::kLong || t.scalar_type() == cresset::kInt; }

struct Lines {
  int64_t outer, size, inner;
};
Lines lines_of(const Tensor& x, int64_t dim) {
  if (x.dim() == 0) return {1, 1, 1};
  const int64_t d = wrapped(dim, x.dim());
  return {product(x.sizes(), 0, d), x.size(d), product(x.sizes(), d + 1, x.dim())};
}

bool select(const Tensor& given, int64_t dim, const Tensor& given_index, const Tensor& out, bool wraps) {
  if (out.numel() == 0) return true;
  if (!is_index(given_index)) return false;
  const Tensor x = dense(given), index = dense(given_index);
  const Lines lines = lines_of(x, dim);
  Launch launch(x, "index", "index_select", types(x, index) + (wraps ? " -DWRAPS=1" : ""));
  launch.tensor(x).tensor(index).tensor(out).faults().value<cl_ulong>(out.numel());
  launch.value<cl_ulong>(lines.size).value<cl_ulong>(index.numel()).value<cl_ulong>(lines.inner);
  launch.run(static_cast<std::size_t>(out.numel()));
  return true;
}

// index_select(self, dim, index)
bool index_select(Call& c) { return select(c.tensor(0), c.integer(1), c.tensor(2), c.result(), false); }

// index.Tensor(self, indices): the dimension of the only tensor of numbers among absent ones, -1 for any other call.
int64_t only_index(const Call& c) {
  const std::vector<Tensor> indices = c.tensors(1);
  int64_t dim = -1;
  for (std::size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d].defined()) continue;
    if (dim >= 0 || !is_index(indices[d])) return -1;
    dim = static_cast<int64_t>(d);
  }
  return dim;
}
bool takes_one(const Call& c) { return only_index(c) >= 0; }
bool index_one(Call& c) {
  const int64_t dim = only_index(c);
  return select(c.tensor(0), dim, c.tensors(1)[static_cast<std::size_t>(dim)], c.result(), true);
}

void add_lines(const Tensor& given, const Tensor& given_index, const Tensor& out, int64_t dim, int64_t skipped, double alpha) {
  const Tensor source = dense(given), index = dense(given_index);
  const Lines lines = lines_of(out, dim);
  if (lines.outer * lines.inner == 0 || index.numel() == 0) return;
  Launch launch(out, "index", "index_add", types(out, index));
  launch.tensor(source).tensor(index).tensor(out).faults().value<cl_ulong>(lines.outer * lines.inner).value<cl_ulong>(lines.size);
  launch.value<cl_ulong>(index.numel()).value<cl_ulong>(lines.inner).value<cl_long>(skipped).number(compute_of(out.scalar_type()), alpha);
  launch.run(static_cast<std::size_t>(lines.outer * lines.inner));
}

constexpr int64_t kNothingSkipped = std::numeric_limits<int64_t>::min();

// index_add(self, dim, index, source, alpha)
bool index_add(Call& c) {
  const Scalar alpha = c.scalar(4);
  if (!is_index(c.tensor(2)) || c.tensor(3).scalar_type() != c.result().scalar_type() || alpha.isComplex() ||
      c.result().scalar_type() == cresset::kBool)
    return false;
  cresset::_copy_from(c.tensor(0), c.result(), false);
  add_lines(c.tensor(3), c.tensor(2), c.result(), c.integer(1), kNothingSkipped, alpha.toDouble());
  return true;
}

// embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq)
bool embedding_backward(Call& c) {
  if (c.flag(4) || !is_index(c.tensor(1)) || c.tensor(0).scalar_type() != c.result().scalar_type()) return false;
  Tensor out = c.result();
  out.zero_();
  const int64_t padding = c.integer(3);
  add_lines(c.tensor(0), c.tensor(1), out, 0, padding < 0 ? kNothingSkipped : padding, 1);
  return true;
}

// Lines along `dim` through `index`, x and other; x is read (gather) or written (scatter).
bool run_lines(const char* name, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& other, const std::string& more) {
  if (!is_index(index)) return false;
  if (index.numel() == 0) return true;
  if (index.dim() == 0) return false;
  const int64_t d = wrapped(dim, index.dim());
  std::vector<int64_t> sizes;
  std::vector<std::vector<int64_t>> strides(3);
  for (int64_t k = 0; k < index.dim(); ++k) {
    if (k == d) continue;
    sizes.push_back(index.size(k));
    strides[0].push_back(index.stride(k));
    strides[1].push_back(x.stride(k));
    strides[2].push_back(other.stride(k));
  }
  Walk walk;
  if (!make_walk_of_strides(sizes, strides, walk)) return false;
  ClDevice& device = device_of(x);
  const std::string options = "-DWALKING=1 " + types(x, index) + more;
  const cl_kernel kernel = device.programs().kernel("index " + options + walk_key(walk), name, [&] {
    return ProgramText{kernel_head("index") + index_source(walk.wide) + walk_source(walk, "w") + kernel_file("index"), options};
  });
  Launch launch(device, queue_for(x), kernel);
  launch.tensor(x).tensor(index).tensor(other).faults();
  add_walk(launch, walk);
  launch.value<cl_ulong>(index.size(d)).value<cl_ulong>(x.size(d));
  launch.value<cl_ulong>(index.stride(d)).value<cl_ulong>(x.stride(d)).value<cl_ulong>(other.stride(d));
  launch.run(static_cast<std::size_t>(std::string_view(name) == "gather" ? walk.n * index.size(d) : walk.n));
  return true;
}

// gather(self, dim, index, sparse_grad)
bool gather(Call& c) {
  if (c.tensor(0).dim() != c.tensor(2).dim()) return false;
  return run_lines("gather", c.tensor(0), c.integer(1), c.tensor(2), c.result(), "");
}

template <bool Adds>
bool scatter(Call& c) {
  const Tensor& source = c.tensor(3);
  if (c.tensor(0).dim() != c.tensor(2).dim() || source.dim() != c.tensor(2).dim() || source.scalar_type() != c.result().scalar_type() ||
      !is_index(c.tensor(2)) || c.tensor(0).dim() == 0)
    return false;
  cresset::_copy_from(c.tensor(0), c.result(), false);
  return run_lines("scatter", c.result(), c.integer(1), c.tensor(2), source, Adds ? " -DADDS=1" : "");
}

bool scatter_value(Call& c) {
  if (c.tensor(0).dim() != c.tensor(2).dim() || !is_index(c.tensor(2)) || c.tensor(0).dim() == 0) return false;
  Tensor value = cresset::empty({}, c.result().options());
  if (!fill_on_device(value, c.scalar(3))) return false;
  cresset::_copy_from(c.tensor(0), c.result(), false);
  return run_lines("scatter", c.result(), c.integer(1), c.tensor(2), value.expand(c.tensor(2).sizes()), "");
}

}  // namespace
}  // namespace cresset_opencl

CRESSET_BACKEND_IMPL(cresset_opencl::OpenCl, aten, m) {
  using namespace cresset_opencl;
  give(m, "index_select", "index_select.out", &index_select);
  give(m, "index.Tensor", nullptr, &index_one, &takes_one);
  give(m, "index_add", "index_add.out", &index_add);
  give(m, "embedding_dense_backward", "embedding_dense_backward.out", &embedding_backward);
  give(m, "gather", "gather.out", &gather);
  give(m, "scatter.src", "scatter.src_out", &scatter<false>);
  give(m, "scatter.value", "scatter.value_out", &scatter_value);
  give(m, "scatter_add", "scatter_add.out", &scatter<true>);
}
