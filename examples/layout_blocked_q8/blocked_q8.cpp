// A tensor layout of its own: matrices of 8-bit codes in blocks of 32 along the rows, each with one float scale.
//
// The tensor is an OpaqueTensorImpl whose handle is the block data, and its dispatch key is CustomLayout1. Three kernels
// for that key are enough for x @ w.t() and nn.functional.linear, and for the gradient of x: the built-in formula of mm asks
// for w.t() and mm again. The codes themselves have no gradient.
#include <cresset/extension.h>

#include <algorithm>
#include <cmath>
#include <memory>

namespace {

using namespace cresset;

constexpr int64_t kBlock = 32;

// A matrix of rows x columns; `transposed` tensors show it the other way round.
struct Blocks {
  int64_t rows = 0, columns = 0;
  Tensor codes;   // int8, [rows, columns rounded up to whole blocks]
  Tensor scales;  // float, [rows, blocks of a row]
};
struct Handle {
  std::shared_ptr<const Blocks> blocks;
  bool transposed = false;
};
using Q8TensorImpl = OpaqueTensorImpl<Handle>;

Tensor wrap(Handle h) {
  const DimVector sizes = h.transposed ? DimVector{h.blocks->columns, h.blocks->rows} : DimVector{h.blocks->rows, h.blocks->columns};
  const DispatchKeySet keys{DispatchKey::CustomLayout1, DispatchKey::AutogradOther};
  return Tensor(make_intrusive<Q8TensorImpl>(keys, kFloat, Device(kCPU), std::move(h), sizes));
}

const Handle& handle_of(const char* op, const Tensor& t) {
  const auto* impl = dynamic_cast<const Q8TensorImpl*>(t.unsafeGetTensorImpl());
  CRESSET_CHECK(impl, op, ": a blocked 8-bit tensor was required; ", t, " was given. Make one with q8::from_dense.");
  return impl->opaque_handle();
}

Tensor dense_float(const char* op, const Tensor& t) {
  CRESSET_CHECK(t.layout() == kStrided && t.has_storage() && t.is_floating_point(), op, ": a dense floating-point tensor was required; ", t,
                " was given.");
  return t.to(kFloat).contiguous();
}

Tensor from_parts(const Tensor& codes, const Tensor& scales, int64_t columns) {
  CRESSET_CHECK(codes.dim() == 2 && codes.scalar_type() == kChar && codes.size(1) % kBlock == 0,
                "q8::from_parts: int8 codes in rows of whole "
                "blocks of 32 were required; ",
                codes, " were given.");
  CRESSET_CHECK(
      scales.dim() == 2 && scales.scalar_type() == kFloat && scales.size(0) == codes.size(0) && scales.size(1) * kBlock == codes.size(1),
      "q8::from_parts: one float32 scale a block was required; ", scales, " were given for codes ", codes, ".");
  CRESSET_CHECK(columns > codes.size(1) - kBlock && columns <= codes.size(1) && columns >= 0, "q8::from_parts: ", columns,
                " columns do not fit ", codes, ".");
  return wrap({std::make_shared<Blocks>(Blocks{codes.size(0), columns, codes.contiguous(), scales.contiguous()}), false});
}

// The scale of a block is its largest magnitude over 127: codes are round(value / scale).
Tensor from_dense(const Tensor& dense) {
  const Tensor x = dense_float("q8::from_dense", dense);
  CRESSET_CHECK(x.dim() == 2, "q8::from_dense: a matrix was required; ", dense, " was given.");
  const int64_t rows = x.size(0), columns = x.size(1), blocks = (columns + kBlock - 1) / kBlock;
  const Tensor codes = cresset::zeros({rows, blocks * kBlock}, TensorOptions(kChar)),
               scales = cresset::zeros({rows, blocks}, TensorOptions(kFloat));
  const float* from = x.const_data_ptr<float>();
  int8_t* to = codes.mutable_data_ptr<int8_t>();
  float* scale = scales.mutable_data_ptr<float>();
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t first = b * kBlock, n = std::min(kBlock, columns - first);
      const float* v = from + r * columns + first;
      float largest = 0;
      for (int64_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(v[i]));
      CRESSET_CHECK(std::isfinite(largest), "q8::from_dense: finite values were required; row ", r, " has others.");
      const float s = largest / 127;
      scale[r * blocks + b] = s;
      for (int64_t i = 0; i < n; ++i) to[r * blocks * kBlock + first + i] = s > 0 ? static_cast<int8_t>(std::lrint(v[i] / s)) : int8_t{0};
    }
  return from_parts(codes, scales, columns);
}

Tensor to_dense(const Tensor& self) {
  const Handle& h = handle_of("q8::to_dense", self);
  const Blocks& w = *h.blocks;
  const Tensor blocks = w.codes.to(kFloat).view({w.rows, w.scales.size(1), kBlock}) * w.scales.unsqueeze(2);
  const Tensor dense = blocks.view({w.rows, w.codes.size(1)}).narrow(1, 0, w.columns);
  return h.transposed ? dense.t().contiguous() : dense.contiguous();
}

std::tuple<Tensor, Tensor> parts(const Tensor& self) {
  const Handle& h = handle_of("q8::parts", self);
  CRESSET_CHECK(!h.transposed, "q8::parts: the tensor as it was made was required; a transposed one was given. Use t() first.");
  return {h.blocks->codes, h.blocks->scales};
}

Tensor q8_t(const Tensor& self) {
  Handle h = handle_of("t", self);
  h.transposed = !h.transposed;
  return wrap(std::move(h));
}

Tensor q8_detach(const Tensor& self) { return wrap(handle_of("detach", self)); }

// x @ w for a dense x.
Tensor q8_mm(const Tensor& self, const Tensor& mat2) {
  const Handle& h = handle_of("mm", mat2);
  const Tensor x = dense_float("mm", self);
  CRESSET_CHECK(x.dim() == 2 && x.size(1) == mat2.size(0), "mat1 and mat2 shapes cannot be multiplied (", x.sizes(), " and ", mat2.sizes(),
                ")");
  const Blocks& w = *h.blocks;
  const int64_t m = x.size(0), blocks = w.scales.size(1), stride = blocks * kBlock;
  const Tensor out = cresset::zeros({m, mat2.size(1)}, TensorOptions(kFloat));
  const float* a = x.const_data_ptr<float>();
  const int8_t* codes = w.codes.const_data_ptr<int8_t>();
  const float* scales = w.scales.const_data_ptr<float>();
  float* y = out.mutable_data_ptr<float>();
  for (int64_t i = 0; i < m; ++i)
    for (int64_t r = 0; r < w.rows; ++r)
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t first = b * kBlock, n = std::min(kBlock, w.columns - first);
        const int8_t* c = codes + r * stride + first;
        const float s = scales[r * blocks + b];
        if (h.transposed) {  // y[i, r] += x[i, block] . w[r, block]
          float sum = 0;
          for (int64_t k = 0; k < n; ++k) sum += a[i * w.columns + first + k] * static_cast<float>(c[k]);
          y[i * w.rows + r] += s * sum;
        } else {  // y[i, block] += x[i, r] * w[r, block]
          const float f = a[i * w.rows + r] * s;
          for (int64_t k = 0; k < n; ++k) y[i * w.columns + first + k] += f * static_cast<float>(c[k]);
        }
      }
  return out.to(self.scalar_type());
}

Tensor q8_addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha) {
  return self * beta + q8_mm(mat1, mat2) * alpha;
}

}  // namespace

CRESSET_LIBRARY(q8, m) {
  m.def("from_dense(Tensor dense) -> Tensor");
  m.def("from_parts(Tensor codes, Tensor scales, int columns) -> Tensor");
  m.def("to_dense(Tensor self) -> Tensor");
  m.def("parts(Tensor self) -> (Tensor, Tensor)");
}
CRESSET_LIBRARY_IMPL(q8, CPU, m) {
  m.impl("from_dense", &from_dense);
  m.impl("from_parts", &from_parts);
}
CRESSET_LIBRARY_IMPL(q8, CustomLayout1, m) {
  m.impl("to_dense", &to_dense);
  m.impl("parts", &parts);
}
CRESSET_LIBRARY_IMPL(aten, CustomLayout1, m) {
  m.impl("t", &q8_t);
  m.impl("detach", &q8_detach);
  m.impl("mm", &q8_mm);
  m.impl("addmm", &q8_addmm);
}
