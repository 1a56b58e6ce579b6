// A tensor layout of its own: matrices of codes of 8 or 4 bits in blocks of 32 along the rows, each with one float scale.
//
// The tensor is an OpaqueTensorImpl whose handle is the block data, and its dispatch key is CustomLayout1. Three kernels
// for that key are enough for x @ w.t() and nn.functional.linear, and for the gradient of x: the built-in formula of mm asks
// for w.t() and mm again. The codes themselves have no gradient.
#include <cresset/base/parallel.h>
#include <cresset/extension.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

namespace {

using namespace cresset;

constexpr int64_t kBlock = 32, kHalf = kBlock / 2;

// A matrix of rows x columns; `transposed` tensors show it the other way round.
struct Blocks {
  int64_t rows = 0, columns = 0;
  Tensor codes;   // int8, [rows, 32 * blocks of a row], or uint8, [rows, 16 * blocks]
  Tensor scales;  // float, [rows, blocks of a row]
};

// The code at place i < kBlock of a block. One byte of 4-bit codes has those of places i and i + 16, each 8 more than it is, so that both
// halves meet neighbouring numbers.
inline int code_at(const int8_t* block, int64_t i) { return block[i]; }
inline int code_at(const uint8_t* block, int64_t i) { return (i < kHalf ? block[i] & 15 : block[i - kHalf] >> 4) - 8; }
constexpr int64_t bytes_of_block(const int8_t*) { return kBlock; }
constexpr int64_t bytes_of_block(const uint8_t*) { return kHalf; }

// The compiler makes one version for each kind of processor, and the right one is called.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define EACH_PROCESSOR __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define EACH_PROCESSOR
#endif

// y[r] = x . w[r] for n rows; x has zeros up to whole blocks.
EACH_PROCESSOR void multiply_rows(const float* x, const int8_t* codes, const float* scales, int64_t blocks, int64_t n, float* y) {
  for (int64_t r = 0; r < n; ++r, scales += blocks) {
    float sums[kHalf] = {};
    for (int64_t b = 0; b < blocks; ++b, codes += kBlock) {
      const float* const v = x + b * kBlock;
      for (int64_t i = 0; i < kHalf; ++i)
        sums[i] += scales[b] * (v[i] * static_cast<float>(codes[i]) + v[i + kHalf] * static_cast<float>(codes[i + kHalf]));
    }
    y[r] = std::accumulate(sums, sums + kHalf, 0.0f);
  }
}
EACH_PROCESSOR void multiply_rows(const float* x, const uint8_t* codes, const float* scales, int64_t blocks, int64_t n, float* y) {
  for (int64_t r = 0; r < n; ++r, scales += blocks) {
    float sums[kHalf] = {};
    for (int64_t b = 0; b < blocks; ++b, codes += kHalf) {
      const float* const v = x + b * kBlock;
      for (int64_t i = 0; i < kHalf; ++i)
        sums[i] += scales[b] * (v[i] * static_cast<float>((codes[i] & 15) - 8) + v[i + kHalf] * static_cast<float>((codes[i] >> 4) - 8));
    }
    y[r] = std::accumulate(sums, sums + kHalf, 0.0f);
  }
}
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
  const int64_t width = codes.scalar_type() == kByte ? kHalf : kBlock;
  CRESSET_CHECK(codes.dim() == 2 && (codes.scalar_type() == kChar || codes.scalar_type() == kByte) && codes.size(1) % width == 0,
                "q8::from_parts: int8 codes in rows of whole blocks of 32, or uint8 ones of 16, were required; ", codes, " were given.");
  const int64_t padded = codes.size(1) / width * kBlock;
  CRESSET_CHECK(scales.dim() == 2 && scales.scalar_type() == kFloat && scales.size(0) == codes.size(0) && scales.size(1) * kBlock == padded,
                "q8::from_parts: one float32 scale a block was required; ", scales, " were given for codes ", codes, ".");
  CRESSET_CHECK(columns > padded - kBlock && columns <= padded && columns >= 0, "q8::from_parts: ", columns, " columns do not fit ", codes,
                ".");
  return wrap({std::make_shared<Blocks>(Blocks{codes.size(0), columns, codes.contiguous(), scales.contiguous()}), false});
}

// The scale of a block is its largest magnitude over the largest code: codes are round(value / scale).
Tensor from_dense(const Tensor& dense, int64_t bits) {
  CRESSET_CHECK(bits == 8 || bits == 4, "q8::from_dense: 8 or 4 bits were required; ", bits, " were given.");
  const Tensor x = dense_float("q8::from_dense", dense);
  CRESSET_CHECK(x.dim() == 2, "q8::from_dense: a matrix was required; ", dense, " was given.");
  const int64_t rows = x.size(0), columns = x.size(1), blocks = (columns + kBlock - 1) / kBlock, width = bits * kBlock / 8;
  const int largest_code = bits == 8 ? 127 : 7;
  const Tensor codes = cresset::zeros({rows, blocks * width}, TensorOptions(bits == 8 ? kChar : kByte)),
               scales = cresset::zeros({rows, blocks}, TensorOptions(kFloat));
  const float* from = x.const_data_ptr<float>();
  auto* to = static_cast<uint8_t*>(codes.mutable_data_ptr());
  float* scale = scales.mutable_data_ptr<float>();
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t b = 0; b < blocks; ++b, to += width) {
      const int64_t first = b * kBlock, n = std::min(kBlock, columns - first);
      const float* v = from + r * columns + first;
      float largest = 0;
      for (int64_t i = 0; i < n; ++i) {
        CRESSET_CHECK(std::isfinite(v[i]), "q8::from_dense: finite values were required; row ", r, " has others.");
        largest = std::max(largest, std::abs(v[i]));
      }
      const float s = largest / static_cast<float>(largest_code);
      scale[r * blocks + b] = s;
      for (int64_t i = 0; i < kBlock; ++i) {
        const int code = s > 0 && i < n ? static_cast<int>(std::lrint(v[i] / s)) : 0;
        if (bits == 8)
          to[i] = static_cast<uint8_t>(code);
        else
          to[i % kHalf] |= static_cast<uint8_t>((code + 8) << (i < kHalf ? 0 : 4));
      }
    }
  return from_parts(codes, scales, columns);
}

// The codes as whole numbers of 8 bits, a row of blocks after the other.
Tensor wide_codes(const Blocks& w) {
  if (w.codes.scalar_type() == kChar) return w.codes;
  const Tensor bytes = w.codes.view({w.rows, w.scales.size(1), kHalf});
  const Tensor both = cresset::cat({cresset::bitwise_and(bytes, 15), cresset::bitwise_right_shift(bytes, 4)}, 2);
  return (both.to(kChar) - 8).view({w.rows, -1});
}

Tensor to_dense(const Tensor& self) {
  const Handle& h = handle_of("q8::to_dense", self);
  const Blocks& w = *h.blocks;
  const Tensor blocks = wide_codes(w).to(kFloat).view({w.rows, w.scales.size(1), kBlock}) * w.scales.unsqueeze(2);
  const Tensor dense = blocks.view({w.rows, w.scales.size(1) * kBlock}).narrow(1, 0, w.columns);
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

// y (m, rows) = x @ w.t(). Few rows of x (a model that writes one word after the other) read the codes as they are, which are a half or a
// quarter of the bytes of bfloat16; many are worth a dense matrix.
template <class Code>
Tensor times_transposed(const Tensor& x, const Blocks& w) {
  const int64_t m = x.size(0), blocks = w.scales.size(1);
  const Tensor padded = cresset::constant_pad_nd(x, {0, blocks * kBlock - w.columns}).contiguous();
  const Tensor out = cresset::empty({m, w.rows}, TensorOptions(kFloat));
  const float *from = padded.const_data_ptr<float>(), *scales = w.scales.const_data_ptr<float>();
  const Code* codes = w.codes.const_data_ptr<Code>();
  float* y = out.mutable_data_ptr<float>();
  parallel_for(0, w.rows, 1 + (int64_t{1} << 18) / (blocks * kBlock + 1), [&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < m; ++i)
      multiply_rows(from + i * blocks * kBlock, codes + begin * blocks * bytes_of_block(codes), scales + begin * blocks, blocks,
                    end - begin, y + i * w.rows + begin);
  });
  return out;
}

// y (m, columns) = x @ w: what the gradient of x needs.
template <class Code>
Tensor times(const Tensor& x, const Blocks& w) {
  const int64_t m = x.size(0), blocks = w.scales.size(1);
  const Tensor out = cresset::zeros({m, w.columns}, TensorOptions(kFloat));
  const float *a = x.const_data_ptr<float>(), *scales = w.scales.const_data_ptr<float>();
  const Code* codes = w.codes.const_data_ptr<Code>();
  float* y = out.mutable_data_ptr<float>();
  for (int64_t i = 0; i < m; ++i)
    for (int64_t r = 0; r < w.rows; ++r)
      for (int64_t b = 0; b < blocks; ++b) {
        const int64_t first = b * kBlock, n = std::min(kBlock, w.columns - first);
        const Code* c = codes + (r * blocks + b) * bytes_of_block(codes);
        const float f = a[i * w.rows + r] * scales[r * blocks + b];
        for (int64_t k = 0; k < n; ++k) y[i * w.columns + first + k] += f * static_cast<float>(code_at(c, k));
      }
  return out;
}

// x @ w for a dense x.
Tensor q8_mm(const Tensor& self, const Tensor& mat2) {
  constexpr int64_t kFewRows = 8;
  const Handle& h = handle_of("mm", mat2);
  const Tensor x = dense_float("mm", self);
  CRESSET_CHECK(x.dim() == 2 && x.size(1) == mat2.size(0), "mat1 and mat2 shapes cannot be multiplied (", x.sizes(), " and ", mat2.sizes(),
                ")");
  const Blocks& w = *h.blocks;
  const bool wide = w.codes.scalar_type() == kChar;
  if (x.size(0) > kFewRows) return cresset::mm(x, to_dense(mat2)).to(self.scalar_type());
  const Tensor out = h.transposed ? wide ? times_transposed<int8_t>(x, w) : times_transposed<uint8_t>(x, w)
                     : wide ? times<int8_t>(x, w)
                                  : times<uint8_t>(x, w);
  return out.to(self.scalar_type());
}

Tensor q8_addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha) {
  return self * beta + q8_mm(mat1, mat2) * alpha;
}

}  // namespace

CRESSET_LIBRARY(q8, m) {
  m.def("from_dense(Tensor dense, int bits=8) -> Tensor");
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
