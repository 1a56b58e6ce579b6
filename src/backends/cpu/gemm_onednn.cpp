// Products through oneDNN: of bfloat16 matrices, which it multiplies as they are and adds up in float, and of float ones.
#include <algorithm>

#include "backends/cpu/gemm.h"
#include "backends/cpu/onednn.h"

namespace cresset::cpu {

bool onednn_bfloat16_gemm(int64_t m, int64_t n, int64_t k, MatrixRef a, MatrixRef b, void* c, int64_t ldc) {
  using dnnl::memory;
  return onednn_guarded("product", [&] {
    use_one_onednn_thread();
    const auto described = [](int64_t rows, int64_t columns, int64_t row, int64_t column) {
      // Extents of one may carry any stride; oneDNN wants sane ones.
      return memory::desc({rows, columns}, memory::data_type::bf16, memory::dims{std::max<int64_t>(row, 1), std::max<int64_t>(column, 1)});
    };
    const memory::desc x = described(m, k, a.row, a.column), y = described(k, n, b.row, b.column), z = described(m, n, ldc, 1);
    const dnnl::matmul::primitive_desc pd(dnnl::matmul::desc(x, y, z), onednn_engine());
    dnnl::matmul(pd).execute(onednn_stream(), {{DNNL_ARG_SRC, memory(x, onednn_engine(), const_cast<void*>(a.data))},
                                               {DNNL_ARG_WEIGHTS, memory(y, onednn_engine(), const_cast<void*>(b.data))},
                                               {DNNL_ARG_DST, memory(z, onednn_engine(), c)}});
    onednn_stream().wait();
    return true;
  });
}

// Measured with oneDNN 2.6 and OpenBLAS 0.3.21. Without AVX-512 oneDNN reads the second matrix where it lies: fine while that stays in the
// second-level cache and is used often, else down to half of OpenBLAS's speed (few rows; rows of 2 KiB, whose addresses collide).
bool onednn_sgemm_is_faster(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kWorthSgemm = 64 * 64 * 64, kRows = 64, kCached = 1 << 17;
  static const bool avx512 = (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & static_cast<unsigned>(dnnl::cpu_isa::avx512_core)) ==
                             static_cast<unsigned>(dnnl::cpu_isa::avx512_core);
  return m * n * k > kWorthSgemm && (avx512 || (m >= kRows && n * k <= kCached));
}

bool onednn_sgemm(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
                  const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
#if defined(__x86_64__)
  use_one_onednn_thread();
  const SignalsBlocked blocked;
  return dnnl_sgemm(transpose_a ? 'T' : 'N', transpose_b ? 'T' : 'N', m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) == dnnl_success;
#else
  return false;  // elsewhere its gemm is plain loops
#endif
}

}  // namespace cresset::cpu
