// Derivatives of matrix factorisations, all written with differentiable operators. Gradients have the sizes of the broadcast
// operands; the engine sums them to the inputs'.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include <cresset/core/tensor.h>

namespace cresset::autograd::formulas {

// ---- Cholesky
Tensor cholesky_backward(const Tensor& grad, bool upper, const Tensor& L);
Tensor cholesky_jvp(const Tensor& A_t, bool upper, const Tensor& L);
Tensor cholesky_inverse_backward(const Tensor& grad, const Tensor& L, bool upper, const Tensor& inverse);
Tensor cholesky_inverse_jvp(const Tensor& L_t, const Tensor& L, bool upper, const Tensor& inverse);
/// Gradients for (right-hand side, factor).
std::tuple<Tensor, Tensor> cholesky_solve_backward(const Tensor& grad, const Tensor& L, bool upper, const Tensor& result,
                                                   std::array<bool, 2> mask);
Tensor cholesky_solve_jvp(const Tensor& B_t, const Tensor& L_t, const Tensor& L, bool upper, const Tensor& result);

// ---- LU
Tensor lu_factor_backward(const Tensor& grad, const Tensor& LU, const Tensor& pivots);
Tensor lu_factor_jvp(const Tensor& A_t, const Tensor& LU, const Tensor& pivots);
Tensor lu_unpack_backward(const std::vector<Tensor>& grads, IntArrayRef sizes, bool unpack_data);
/// The tangent of L (lower) or U.
Tensor lu_unpack_jvp(const Tensor& LU_t, bool lower, bool unpack_data);
/// Gradients for (LU, B).
std::tuple<Tensor, Tensor> lu_solve_backward(const Tensor& grad, const Tensor& LU, const Tensor& pivots, const Tensor& result, bool left,
                                             bool adjoint, std::array<bool, 2> mask);
Tensor lu_solve_jvp(const Tensor& LU_t, const Tensor& B_t, const Tensor& LU, const Tensor& pivots, const Tensor& result, bool left,
                    bool adjoint);

// ---- systems, inverse, determinants
/// Gradients for (A, B).
std::tuple<Tensor, Tensor> solve_backward(const Tensor& grad, const Tensor& A, const Tensor& result, const Tensor& LU, const Tensor& pivots,
                                          bool left, std::array<bool, 2> mask);
Tensor solve_jvp(const Tensor& A_t, const Tensor& B_t, const Tensor& A, const Tensor& result, const Tensor& LU, const Tensor& pivots,
                 bool left);
std::tuple<Tensor, Tensor> solve_triangular_backward(const Tensor& grad, const Tensor& A, const Tensor& result, bool upper, bool left,
                                                     bool unitriangular, std::array<bool, 2> mask);
Tensor solve_triangular_jvp(const Tensor& A_t, const Tensor& B_t, const Tensor& A, const Tensor& result, bool upper, bool left,
                            bool unitriangular);
Tensor inv_backward(const Tensor& grad, const Tensor& inverse);
Tensor inv_jvp(const Tensor& A_t, const Tensor& inverse);
Tensor det_backward(const Tensor& grad, const Tensor& A, const Tensor& det, const Tensor& LU, const Tensor& pivots);
Tensor det_jvp(const Tensor& A_t, const Tensor& A, const Tensor& det, const Tensor& LU, const Tensor& pivots);
Tensor slogdet_backward(const Tensor& grad_sign, const Tensor& grad_logabsdet, const Tensor& A, const Tensor& sign, const Tensor& LU,
                        const Tensor& pivots);
/// The tangents of sign and logabsdet.
std::tuple<Tensor, Tensor> slogdet_jvp(const Tensor& A_t, const Tensor& A, const Tensor& sign, const Tensor& LU, const Tensor& pivots);
/// Gradients for (A, B) of solution and residuals; A is taken to keep its rank.
std::tuple<Tensor, Tensor> lstsq_backward(const std::vector<Tensor>& grads, const Tensor& A, const Tensor& B, const Tensor& solution,
                                          std::array<bool, 2> mask);
std::tuple<Tensor, Tensor> lstsq_jvp(const Tensor& A_t, const Tensor& B_t, const Tensor& A, const Tensor& B, const Tensor& solution,
                                     const Tensor& residuals);

// ---- QR and reflections
Tensor qr_backward(const std::vector<Tensor>& grads, const Tensor& Q, const Tensor& R, std::string_view mode);
std::tuple<Tensor, Tensor> qr_jvp(const Tensor& A_t, const Tensor& Q, const Tensor& R, std::string_view mode);
/// Gradients for (input, tau).
std::tuple<Tensor, Tensor> householder_product_backward(const Tensor& grad, const Tensor& input, const Tensor& tau);
Tensor householder_product_jvp(const Tensor& input_t, const Tensor& tau_t, const Tensor& input, const Tensor& tau);
/// Gradients for (input, tau, other).
std::tuple<Tensor, Tensor, Tensor> ormqr_backward(const Tensor& grad, const Tensor& input, const Tensor& tau, const Tensor& other,
                                                  bool left, bool transpose);
Tensor ormqr_jvp(const Tensor& input_t, const Tensor& tau_t, const Tensor& other_t, const Tensor& input, const Tensor& tau,
                 const Tensor& other, bool left, bool transpose);

// ---- spectra
Tensor eigh_backward(const std::vector<Tensor>& grads, const Tensor& A, std::string_view uplo, bool compute_v, const Tensor& eigenvalues,
                     const Tensor& eigenvectors);
std::tuple<Tensor, Tensor> eigh_jvp(const Tensor& A_t, const Tensor& A, std::string_view uplo, bool compute_v, const Tensor& eigenvalues,
                                    const Tensor& eigenvectors);
Tensor eig_backward(const std::vector<Tensor>& grads, const Tensor& eigenvalues, const Tensor& eigenvectors, bool is_complex);
std::tuple<Tensor, Tensor> eig_jvp(const Tensor& A_t, const Tensor& eigenvalues, const Tensor& eigenvectors);
Tensor eigvals_backward(const Tensor& grad, const Tensor& A);
Tensor eigvals_jvp(const Tensor& A_t, const Tensor& A);
Tensor svd_backward(const std::vector<Tensor>& grads, const Tensor& A, bool compute_uv, const Tensor& U, const Tensor& S, const Tensor& Vh);
std::tuple<Tensor, Tensor, Tensor> svd_jvp(const Tensor& A_t, const Tensor& A, bool compute_uv, const Tensor& U, const Tensor& S,
                                           const Tensor& Vh);

// ---- functions of matrices
Tensor matrix_exp_backward(const Tensor& grad, const Tensor& A);
Tensor matrix_exp_jvp(const Tensor& A_t, const Tensor& A);
Tensor polar_backward(const std::vector<Tensor>& grads, const Tensor& A, const Tensor& U);
std::tuple<Tensor, Tensor> polar_jvp(const Tensor& A_t, const Tensor& A, const Tensor& U);
Tensor matrix_sqrth_backward(const Tensor& grad, const Tensor& A);
Tensor matrix_sqrth_jvp(const Tensor& A_t, const Tensor& A);

}  // namespace cresset::autograd::formulas
