// Products with weights of eight and four bits. A few rows (a model that writes one word after the other) read the weights once, as they
// are; more of them are a product of floats with a block of widened weights at a time.
#include <algorithm>
#include <type_traits>
#include <vector>

#include <cresset/base/interrupt.h>
#include <cresset/base/parallel.h>
#include <cresset/ops/functions_view.h>

#include "backends/cpu/gemm.h"
#include "backends/cpu/packed_loops.h"
#include "cpu/cpu_decl_matmul.h"

namespace cresset::cpu {
namespace {

constexpr int64_t kFewRows = 4;                  // of x, for which weights are read as they are
constexpr int64_t kWidened = 64;                 // rows of weights that are widened at a time
constexpr int64_t kPartWork = int64_t{1} << 18;  // multiply-adds worth waking a thread for

// Calls part(first, count) for blocks of at most `block` of the n rows of weights; threads share them.
template <class F>
void each_block(int64_t n, int64_t block, int64_t work_of_a_row, const F& part) {
  const int64_t blocks = (n + block - 1) / block;
  parallel_for(0, blocks, std::max<int64_t>(1, kPartWork / (block * std::max<int64_t>(1, work_of_a_row))), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      check_interrupt();
      part(b * block, std::min(block, n - b * block));
    }
  });
}

// The product is computed in float: in `out` itself where that is its type.
template <class F>
void in_floats(const Tensor& out, const F& compute) {
  if (out.scalar_type() == kFloat) {
    compute(out.mutable_data_ptr<float>());
    return;
  }
  const Tensor wide = detail::empty_cpu(out.sizes(), kFloat);
  compute(wide.mutable_data_ptr<float>());
  Tensor(out).copy_(wide);
}

Tensor floats(const Tensor& t) { return t.to(kFloat).contiguous(); }

// out (m, ldo) at column `first` = x @ the widened rows.
void widened_product(const float* x, int64_t m, const float* rows, int64_t n, int64_t k, float* out, int64_t ldo) {
  gemm("packed product", kFloat, m, n, k, 1, {x, k, 1}, {rows, 1, k}, 0, out, ldo);
}

// x (m, k) with the numbers of even places in front of those of odd ones, as bytes of two numbers meet them.
Tensor apart(const Tensor& x) {
  const int64_t m = x.size(0), k = x.size(1);
  return x.view({m, k / 2, 2}).transpose(1, 2).contiguous();
}

// GroupFacts of the rows from `first` on, in memory of the caller: 2 * groups * kPackedRows floats. facts: float, (groups, n, 2).
GroupFacts facts_of(const float* facts, int64_t groups, int64_t group, int64_t n, int64_t first, int64_t count, float* memory) {
  float* const scale = memory;
  float* const offset = memory + groups * kPackedRows;
  const auto fill = [&](auto rows) {
    for (int64_t g = 0; g < groups; ++g) {
      const float* const pairs = facts + (g * n + first) * 2;
      float *const s = scale + g * kPackedRows, *const o = offset + g * kPackedRows;
      for (int64_t r = 0; r < rows; ++r) {
        s[r] = pairs[2 * r];
        o[r] = pairs[2 * r + 1] - 8 * pairs[2 * r];
      }
    }
  };
  // Blocks are whole but for the last one; loops of a known count become vectors.
  if (count == kPackedRows)
    fill(std::integral_constant<int64_t, kPackedRows>());
  else
    fill(count);
  return {scale, offset, group};
}

}  // namespace

void int_mm(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  const int64_t m = self.size(0), k = self.size(1), n = mat2.size(1);
  if (m == 0 || n == 0) return;
  const Tensor a = self.to(kShort).contiguous(), b = mat2.t().to(kShort).contiguous();
  int32_t* const to = out.mutable_data_ptr<int32_t>();
  const PackedLoops& loops = find_packed_loops();
  each_block(n, kWidened, m * k, [&](int64_t first, int64_t count) {
    loops.dot16(a.const_data_ptr<int16_t>(), m, b.const_data_ptr<int16_t>() + first * k, count, k, to + first, n);
  });
}

void weight_int8pack_mm(const Tensor& self, const Tensor& mat2, const Tensor& scales, const Tensor& out) {
  const int64_t m = self.size(0), k = self.size(1), n = mat2.size(0);
  if (m == 0 || n == 0) return;
  const Tensor x = floats(self), s = floats(scales);
  const float *from = x.const_data_ptr<float>(), *scale = s.const_data_ptr<float>();
  const int8_t* const codes = mat2.const_data_ptr<int8_t>();
  const PackedLoops& loops = find_packed_loops();
  in_floats(out, [&](float* to) {
    each_block(n, kWidened, m * k, [&](int64_t first, int64_t count) {
      if (m > kFewRows) {
        const Tensor wide = detail::empty_cpu({count, k}, kFloat);
        loops.widen8(codes + first * k, scale + first, count, k, wide.mutable_data_ptr<float>());
        return widened_product(from, m, wide.const_data_ptr<float>(), count, k, to + first, n);
      }
      for (int64_t i = 0; i < m; ++i) {
        loops.dot8(from + i * k, codes + first * k, count, k, to + i * n + first);
        for (int64_t r = first; r < first + count; ++r) to[i * n + r] *= scale[r];
      }
    });
  });
}

void weight_int4pack_mm(const Tensor& self, const Tensor& mat2, int64_t group, const Tensor& scale_and_zeros, const Tensor& out) {
  const int64_t m = self.size(0), k = self.size(1), n = mat2.size(0), groups = k / group;
  if (m == 0 || n == 0) return;
  const Tensor x = floats(self), f = floats(scale_and_zeros);
  const bool few = m <= kFewRows;
  const Tensor sides = few ? apart(x) : Tensor(), sums = few ? floats(x.view({m, groups, group}).sum({2})) : Tensor();
  const uint8_t* const bytes = mat2.const_data_ptr<uint8_t>();
  const PackedLoops& loops = find_packed_loops();
  in_floats(out, [&](float* to) {
    each_block(n, few ? kPackedRows : kWidened, m * k, [&](int64_t first, int64_t count) {
      std::vector<float> memory(static_cast<std::size_t>(2 * groups * kPackedRows));
      const auto facts = [&](int64_t row, int64_t rows) {
        return facts_of(f.const_data_ptr<float>(), groups, group, n, row, rows, memory.data());
      };
      if (few) {
        const GroupFacts those = facts(first, count);
        for (int64_t i = 0; i < m; ++i)
          loops.dot4(sides.const_data_ptr<float>() + i * k, sums.const_data_ptr<float>() + i * groups, bytes + first * k / 2, count, k,
                     those, to + i * n + first);
        return;
      }
      const Tensor wide = detail::empty_cpu({count, k}, kFloat);
      for (int64_t r = 0; r < count; r += kPackedRows) {
        const int64_t rows = std::min<int64_t>(kPackedRows, count - r);
        loops.widen4(bytes + (first + r) * k / 2, rows, k, facts(first + r, rows), wide.mutable_data_ptr<float>() + r * k);
      }
      widened_product(x.const_data_ptr<float>(), m, wide.const_data_ptr<float>(), count, k, to + first, n);
    });
  });
}

}  // namespace cresset::cpu
