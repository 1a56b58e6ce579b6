// Products through oneDNN: of bfloat16 matrices, which it multiplies as they are and adds up in float, and of float ones.
#include <algorithm>

#include "backends/cpu/gemm.h"
#include "backends/cpu/onednn.h"

namespace cresset::cpu {
namespace {

// Rows that lie a multiple of so many bytes apart share the places of the first-level cache.
bool rows_collide(int64_t ld, int64_t bytes) { return ld * static_cast<int64_t>(sizeof(float)) % bytes == 0; }

// Elsewhere its products are plain loops, and the levels are not the processor's.
#if defined(__x86_64__)
constexpr bool kHasProducts = true;
#else
constexpr bool kHasProducts = false;
#endif

bool has(dnnl::cpu_isa wanted) {
  if (!kHasProducts) return false;
  const auto bits = static_cast<unsigned>(wanted);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & bits) == bits;
}

}  // namespace

bool onednn_has_bfloat16() {
  static const bool found = has(dnnl::cpu_isa::avx512_core);
  return found;
}

bool onednn_bfloat16_gemm(int64_t m, int64_t n, int64_t k, float alpha, MatrixRef a, MatrixRef b, float beta, void* c, int64_t ldc) {
  using dnnl::memory;
  return onednn_guarded("product", [&] {
    use_one_onednn_thread();
    const auto described = [](int64_t rows, int64_t columns, int64_t row, int64_t column) {
      // Extents of one may carry any stride; oneDNN wants sane ones.
      return memory::desc({rows, columns}, memory::data_type::bf16, memory::dims{std::max<int64_t>(row, 1), std::max<int64_t>(column, 1)});
    };
    const memory::desc x = described(m, k, a.row, a.column), y = described(k, n, b.row, b.column), z = described(m, n, ldc, 1);
    dnnl::primitive_attr attributes;
    if (alpha != 1) attributes.set_output_scales(0, {alpha});
    if (beta != 0) {
      dnnl::post_ops steps;
      steps.append_sum(beta);
      attributes.set_post_ops(steps);
    }
    const dnnl::matmul::primitive_desc pd(dnnl::matmul::desc(x, y, z), attributes, onednn_engine());
    dnnl::matmul(pd).execute(onednn_stream(), {{DNNL_ARG_SRC, memory(x, onednn_engine(), const_cast<void*>(a.data))},
                                               {DNNL_ARG_WEIGHTS, memory(y, onednn_engine(), const_cast<void*>(b.data))},
                                               {DNNL_ARG_DST, memory(z, onednn_engine(), c)}});
    onednn_stream().wait();
    return true;
  });
}

// Measured with oneDNN 2.6 and OpenBLAS 0.3.21 (docs/design/pointwise.md, Products). With AVX2 oneDNN reads operands whose rows it goes
// across where they lie, unless both other sides are long: slower than OpenBLAS's copies only where those rows collide.
bool onednn_sgemm_is_faster(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb) {
  if (!kHasProducts) return false;
  constexpr int64_t kWorthSgemm = 64 * 64 * 64, kLongRows = 512, kLongColumns = 768, kFewRows = 4, kCached = 1 << 20, kBigResult = 1 << 18;
  static const bool avx512 = has(dnnl::cpu_isa::avx512_core), avx2 = has(dnnl::cpu_isa::avx2);
  if (avx512) return m * n * k > kWorthSgemm;
  if (!avx2 || (m <= kFewRows && k * n <= kCached)) return true;
  const bool b_collides = !transpose_b && (m < kLongRows || m * n <= kBigResult) && rows_collide(ldb, 2048);
  const bool a_collides = transpose_a && n < kLongColumns && rows_collide(lda, 1024);
  return !b_collides && !a_collides;
}

// Its code for operands that both lie by rows, and are read there unless both sides are long, takes two to three times as long where rows
// of the second one do not begin at registers (Zen 1, GFLOP/s: 20 x 2600 x 650 9, and 29 with the first operand turned).
bool onednn_sgemm_wants_first_turned(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t ldb) {
  constexpr int64_t kLanes = 8, kLongSide = 263;  // sides are long where the sum of their inverses is below the inverse of that
  static const bool reads_across = has(dnnl::cpu_isa::avx2) && !has(dnnl::cpu_isa::avx512_core);
  return reads_across && !transpose_a && !transpose_b && ldb % kLanes != 0 && m > kLanes && (m + n) * kLongSide >= m * n;
}

bool onednn_sgemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
                  const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  if (!kHasProducts) return false;
  use_one_onednn_thread();
  const SignalsBlocked blocked;
  return dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) == dnnl_success;
}

}  // namespace cresset::cpu
