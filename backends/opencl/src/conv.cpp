// Convolutions in one and two dimensions: windows become columns of a matrix, then it is a matrix product.
#include "backend.h"
#include "call.h"
#include "gemm.h"
#include "reduce.h"

namespace cresset_opencl {
namespace {

constexpr int64_t kColumnBytes = int64_t{64} << 20;  // columns of so many bytes at a time

struct Geometry {
  int64_t batch, channels, height, width, outputs, out_height, out_width, kernel_h, kernel_w, groups;
  int64_t stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;

  int64_t rows() const { return channels * kernel_h * kernel_w; }
  int64_t positions() const { return out_height * out_width; }
  int64_t group_rows() const { return rows() / groups; }
  int64_t group_outputs() const { return outputs / groups; }
  // Images whose columns fit.
  int64_t images_at_once(const Tensor& x) const {
    return std::max<int64_t>(1, kColumnBytes / std::max<int64_t>(1, rows() * positions() * static_cast<int64_t>(x.element_size())));
  }
  // The image itself is its columns.
  bool trivial() const {
    return kernel_h * kernel_w == 1 && stride_h == 1 && stride_w == 1 && pad_h == 0 && pad_w == 0 && out_height == height &&
           out_width == width;
  }
};

// One dimension reads as two of which the first is 1.
Geometry geometry(const Tensor& x, const Tensor& weight, const Tensor& out, std::vector<int64_t> stride, std::vector<int64_t> padding,
                  std::vector<int64_t> dilation, int64_t groups) {
  const bool flat = x.dim() == 3;
  const std::size_t last = flat ? 0 : 1;
  const auto size = [](const Tensor& t, int64_t d) { return t.size(t.dim() + d); };
  for (std::vector<int64_t>* list : {&stride, &padding, &dilation})
    if (list->size() == 1) list->push_back(list->front());  // one number is that of all dimensions
  return {x.size(0),
          x.size(1),
          flat ? 1 : size(x, -2),
          size(x, -1),
          weight.size(0),
          flat ? 1 : size(out, -2),
          size(out, -1),
          flat ? 1 : size(weight, -2),
          size(weight, -1),
          groups,
          flat ? 1 : stride[0],
          stride[last],
          flat ? 0 : padding[0],
          padding[last],
          flat ? 1 : dilation[0],
          dilation[last]};
}

void add_geometry(Launch& launch, const Geometry& g) {
  for (int64_t v : {g.channels, g.height, g.width, g.out_height, g.out_width, g.kernel_h, g.kernel_w})
    launch.value<cl_ulong>(static_cast<cl_ulong>(v));
  for (int64_t v : {g.stride_h, g.stride_w, g.pad_h, g.pad_w, g.dilation_h, g.dilation_w}) launch.value<cl_long>(v);
}

// `n`: how many elements a kernel counts.
std::string types(const Tensor& x, int64_t n) {
  const std::string wide = n > std::numeric_limits<int32_t>::max() ? " -DWIDE=1" : "";
  return std::string("-DT=") + type_letter(x.scalar_type()) + " -DM=" + moved_letter(x.scalar_type()) +
         " -DA=" + compute_name(compute_of(x.scalar_type())) + wide;
}

// Columns of `images` images from number `first` on; by_image and by_row say where they go.
Matrix columns_of(const Tensor& x, const Geometry& g, int64_t first, int64_t images, int64_t by_image, int64_t by_row) {
  const int64_t image = g.channels * g.height * g.width;
  if (g.trivial() && by_row == g.positions()) return {x, first * image, image, g.positions(), 1};
  const Tensor columns = cresset::empty({images * g.rows() * g.positions()}, x.options());
  const bool lines = device_of(x).facts().is_cpu;
  Launch launch(x, lines ? "conv_lines" : "conv", "im2col", types(x, columns.numel()));
  launch.tensor(x, first * image).tensor(columns).value<cl_ulong>(columns.numel()).value<cl_ulong>(by_image).value<cl_ulong>(by_row);
  add_geometry(launch, g);
  if (lines)
    launch.run_apart(static_cast<std::size_t>(images * g.rows()));
  else
    launch.run(static_cast<std::size_t>(columns.numel()));
  return {columns, 0, by_image, by_row, 1};
}

bool native(const Tensor& x, const Tensor& weight, bool transposed) {
  const Compute c = compute_of(x.scalar_type());
  return !transposed && (x.dim() == 3 || x.dim() == 4) && weight.dim() == x.dim() && x.scalar_type() == weight.scalar_type() &&
         x.numel() > 0 && weight.numel() > 0 && (c == Compute::Float || c == Compute::Double);
}

// convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
bool convolution(Call& c) {
  if (!native(c.tensor(0), c.tensor(1), c.flag(6)) || c.result().numel() == 0) return false;
  const Tensor x = dense(c.tensor(0)), weight = dense(c.tensor(1)), bias = c.has(2) ? dense(c.tensor(2)) : Tensor();
  const Geometry g = geometry(x, weight, c.result(), c.ints(3), c.ints(4), c.ints(5), c.integer(8));
  const int64_t size = g.positions(), step = g.images_at_once(x);
  for (int64_t first = 0; first < g.batch; first += step) {
    const int64_t images = std::min(step, g.batch - first);
    Matrix columns = columns_of(x, g, first, images, g.rows() * size, size);
    for (int64_t group = 0; group < g.groups; ++group) {
      const Matrix left{weight, group * g.group_outputs() * g.group_rows(), 0, g.group_rows(), 1};
      Matrix right = columns;
      right.offset += group * g.group_rows() * size;
      const Matrix out{c.result(), (first * g.outputs + group * g.group_outputs()) * size, g.outputs * size, size, 1};
      const Matrix added = bias.defined() ? Matrix{bias, group * g.group_outputs(), 0, 1, 0} : Matrix();
      gemm({images, g.group_outputs(), size, g.group_rows(), left, right, added, out, 1, bias.defined() ? 1.0 : 0.0});
    }
  }
  return true;
}

void backward_input(const Tensor& grad, const Tensor& weight, const Tensor& grad_x, const Geometry& g) {
  const int64_t size = g.positions(), step = g.images_at_once(grad), image = g.channels * g.height * g.width;
  for (int64_t first = 0; first < g.batch; first += step) {
    const int64_t images = std::min(step, g.batch - first);
    const Tensor columns = cresset::empty({images * g.rows() * size}, grad.options());
    for (int64_t group = 0; group < g.groups; ++group) {
      const Matrix left{weight, group * g.group_outputs() * g.group_rows(), 0, 1, g.group_rows()};
      const Matrix right{grad, (first * g.outputs + group * g.group_outputs()) * size, g.outputs * size, size, 1};
      const Matrix out{columns, group * g.group_rows() * size, g.rows() * size, size, 1};
      gemm({images, g.group_rows(), size, g.group_outputs(), left, right, Matrix(), out, 1, 0});
    }
    const bool lines = device_of(grad).facts().is_cpu;
    Launch launch(grad, lines ? "conv_lines" : "conv", "col2im", types(grad, images * image) + (lines ? " -DPLANES=1" : ""));
    launch.tensor(columns).tensor(grad_x, first * image).value<cl_ulong>(images * image);
    launch.value<cl_ulong>(g.rows() * size).value<cl_ulong>(size);
    add_geometry(launch, g);
    if (lines)
      launch.run_apart(static_cast<std::size_t>(images * g.channels));
    else
      launch.run(static_cast<std::size_t>(images * image));
  }
}

// The transpose of the gradient is columns (rows, images * positions) times the gradient as (images * positions, outputs).
void backward_weight(const Tensor& grad, const Tensor& x, const Tensor& grad_weight, const Geometry& g) {
  const int64_t size = g.positions(), step = g.images_at_once(x);
  const Tensor transposed = cresset::zeros({g.groups, g.group_rows(), g.group_outputs()}, x.options());
  for (int64_t first = 0; first < g.batch; first += step) {
    const int64_t images = std::min(step, g.batch - first), all = images * size;
    const Matrix columns = columns_of(x, g, first, images, size, all);
    const Tensor right = dense(grad.narrow(0, first, images).reshape({images, g.outputs, size}).permute({0, 2, 1}));
    for (int64_t group = 0; group < g.groups; ++group) {
      Matrix left = columns;
      left.offset += group * g.group_rows() * all;
      left.batch = 0;
      left.row = all;
      const int64_t at = group * g.group_rows() * g.group_outputs();
      const Matrix out{transposed, at, 0, g.group_outputs(), 1};
      gemm({1,
            g.group_rows(),
            g.group_outputs(),
            all,
            left,
            {right, group * g.group_outputs(), 0, g.outputs, 1},
            out,
            out,
            1,
            first == 0 ? 0.0 : 1.0});
    }
  }
  cresset::_copy_from(transposed.permute({0, 2, 1}).reshape(grad_weight.sizes()), grad_weight, false);
}

// convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask)
bool convolution_backward(Call& c) {
  if (!native(c.tensor(1), c.tensor(2), c.flag(7)) || c.tensor(0).numel() == 0 || c.tensor(0).scalar_type() != c.tensor(1).scalar_type())
    return false;
  // Half types are added in float, so that an element of a result is rounded once.
  const ScalarType wider = cresset::toOpMathType(c.tensor(0).scalar_type());
  const Tensor grad = dense(c.tensor(0)).to(wider), x = dense(c.tensor(1)).to(wider), weight = dense(c.tensor(2)).to(wider);
  const Geometry g = geometry(x, weight, grad, c.ints(4), c.ints(5), c.ints(6), c.integer(9));
  const auto write = [wider](const Tensor& out, const auto& compute) {
    if (!out.defined()) return;
    if (out.scalar_type() == wider) return compute(out);
    const Tensor wide = cresset::empty(out.sizes(), out.options().dtype(wider));
    compute(wide);
    cresset::_copy_from(wide, out, false);
  };
  write(c.result(0), [&](const Tensor& out) { backward_input(grad, weight, out, g); });
  write(c.result(1), [&](const Tensor& out) { backward_weight(grad, x, out, g); });
  if (c.result(2).defined()) {
    std::vector<int64_t> dims{0};
    for (int64_t d = 2; d < grad.dim(); ++d) dims.push_back(d);
    return reduce(grad, dims, {"-DOP_SUM=1", compute_of(grad.scalar_type())}, c.result(2));
  }
  return true;
}

}  // namespace
}  // namespace cresset_opencl

CRESSET_BACKEND_IMPL(cresset_opencl::OpenCl, aten, m) {
  using namespace cresset_opencl;
  give(m, "convolution", "convolution.out", &convolution);
  give(m, "convolution_backward", nullptr, &convolution_backward);
}
