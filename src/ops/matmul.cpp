// Shape rules of matrix products, and products of any dimension as compositions of mm and bmm.
#include "ops/ops_decl_matmul.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <cresset/ops/functions_activation.h>
#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_compare.h>
#include <cresset/ops/functions_concat.h>
#include <cresset/ops/functions_creation.h>
#include <cresset/ops/functions_matmul.h>
#include <cresset/ops/functions_random.h>
#include <cresset/ops/functions_reduce.h>

#include "ops/shared/number_range.h"
#include "ops/shared/pointwise.h"
#include "ops/shared/shape_util.h"
#include "ops/shared/structured.h"

namespace cresset::ops {
namespace {

void check_same_dtype(const Tensor& a, const Tensor& b) {
  CRESSET_CHECK(a.scalar_type() == b.scalar_type(), "expected m1 and m2 to have the same dtype, but got: ", cpp_type_name(a.scalar_type()),
                " != ", cpp_type_name(b.scalar_type()));
}

void check_same_dtypes_of_addmv(ScalarType self, const Tensor& mat, const Tensor& vec) {
  CRESSET_CHECK(self == mat.scalar_type() && self == vec.scalar_type(), "addmv input tensors must have the same dtype, but got ", self,
                ", ", mat.scalar_type(), ", and ", vec.scalar_type());
}

}  // namespace

// ---- shape rules

TensorSpec mm_shape(const Tensor& self, const Tensor& mat2) {
  CRESSET_CHECK(self.dim() == 2, "self must be a matrix; mm got ", self, ".");
  CRESSET_CHECK(mat2.dim() == 2, "mat2 must be a matrix; mm got ", mat2, ".");
  CRESSET_CHECK(self.size(1) == mat2.size(0), "mat1 and mat2 shapes cannot be multiplied (", self.size(0), "x", self.size(1), " and ",
                mat2.size(0), "x", mat2.size(1), ")");
  check_same_dtype(self, mat2);
  check_same_device("mm", self, mat2, "mat2");
  return spec_like(self, {self.size(0), mat2.size(1)});
}

TensorSpec addmm_shape(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar&, const Scalar&) {
  CRESSET_CHECK(mat1.dim() == 2, "mat1 must be a matrix, got ", mat1.dim(), "-D tensor");
  CRESSET_CHECK(mat2.dim() == 2, "mat2 must be a matrix, got ", mat2.dim(), "-D tensor");
  CRESSET_CHECK(mat1.size(1) == mat2.size(0), "mat1 and mat2 shapes cannot be multiplied (", mat1.size(0), "x", mat1.size(1), " and ",
                mat2.size(0), "x", mat2.size(1), ")");
  CRESSET_CHECK(self.scalar_type() == mat2.scalar_type(), "self and mat2 must have the same dtype, but got ", self.scalar_type(), " and ",
                mat2.scalar_type());
  CRESSET_CHECK(mat1.scalar_type() == mat2.scalar_type(), "mat1 and mat2 must have the same dtype, but got ", mat1.scalar_type(), " and ",
                mat2.scalar_type());
  check_same_device("addmm", mat1, mat2, "mat2");
  check_same_device("addmm", mat1, self, "self");
  TensorSpec spec = spec_like(mat1, {mat1.size(0), mat2.size(1)});
  check_expands(self, spec.sizes);
  return spec;
}

TensorSpec mv_shape(const Tensor& self, const Tensor& vec) {
  CRESSET_CHECK(self.dim() == 2 && vec.dim() == 1, "vector + matrix @ vector expected, got ", 1, ", ", self.dim(), ", ", vec.dim());
  CRESSET_CHECK(self.size(1) == vec.size(0), "size mismatch, got input (", self.size(0), "), mat (", self.size(0), "x", self.size(1),
                "), vec (", vec.size(0), ")");
  check_same_dtypes_of_addmv(vec.scalar_type(), self, vec);
  check_same_device("mv", self, vec, "vec");
  return spec_like(self, {self.size(0)});
}

// For devices that have the parts only. Nothing is read from self where beta is 0.
Tensor mv_by_parts(const Tensor& self, const Tensor& vec) {
  return cresset::addmv(allocate(mv_shape(self, vec), self.device()), self, vec, Scalar(0), Scalar(1));
}

TensorSpec addmv_shape(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar&, const Scalar&) {
  CRESSET_CHECK(mat.dim() == 2 && vec.dim() == 1 && self.dim() <= 1, "vector + matrix @ vector expected, got ", self.dim(), ", ", mat.dim(),
                ", ", vec.dim());
  CRESSET_CHECK(mat.size(1) == vec.size(0) && (self.numel() == mat.size(0) || self.numel() == 1), "size mismatch, got input (",
                self.dim() ? self.size(0) : 1, "), mat (", mat.size(0), "x", mat.size(1), "), vec (", vec.size(0), ")");
  CRESSET_CHECK_NOT_IMPLEMENTED(mat.scalar_type() != kBool, "\"addmv_impl_cpu\" not implemented for 'Bool'");
  check_same_dtypes_of_addmv(self.scalar_type(), mat, vec);
  return spec_like(mat, {mat.size(0)});
}

TensorSpec dot_shape(const Tensor& self, const Tensor& tensor) {
  CRESSET_CHECK(self.dim() == 1 && tensor.dim() == 1, "1D tensors expected, but got ", self.dim(), "D and ", tensor.dim(), "D tensors");
  CRESSET_CHECK(self.scalar_type() == tensor.scalar_type(), "dot : expected both vectors to have same dtype, but found ",
                self.scalar_type(), " and ", tensor.scalar_type());
  CRESSET_CHECK(self.numel() == tensor.numel(), "inconsistent tensor size, expected tensor [", self.numel(), "] and src [", tensor.numel(),
                "] to have the same number of elements, but got ", self.numel(), " and ", tensor.numel(), " elements respectively");
  check_same_device("dot", self, tensor, "tensor");
  return spec_like(self, {});
}

TensorSpec bmm_shape(const Tensor& self, const Tensor& mat2) {
  CRESSET_CHECK(self.dim() == 3, "batch1 must be a 3D tensor; bmm got ", self, ".");
  CRESSET_CHECK(mat2.dim() == 3, "batch2 must be a 3D tensor; bmm got ", mat2, ".");
  CRESSET_CHECK(self.size(0) == mat2.size(0) && self.size(2) == mat2.size(1),
                "Expected size for first two dimensions of batch2 tensor to be: [", self.size(0), ", ", self.size(2), "] but got: [",
                mat2.size(0), ", ", mat2.size(1), "].");
  CRESSET_CHECK(self.scalar_type() == mat2.scalar_type(), "expected scalar type ", self.scalar_type(), " but found ", mat2.scalar_type());
  check_same_device("bmm", self, mat2, "mat2");
  return spec_like(self, {self.size(0), self.size(1), mat2.size(2)});
}

TensorSpec baddbmm_shape(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar&, const Scalar&) {
  TensorSpec spec = bmm_shape(batch1, batch2);
  CRESSET_CHECK(self.scalar_type() == batch1.scalar_type(), "Input dtypes must be the same, got: input ", cpp_type_name(self.scalar_type()),
                ", batch1: ", cpp_type_name(batch1.scalar_type()), ", batch2: ", cpp_type_name(batch2.scalar_type()));
  check_expands(self, spec.sizes);
  return spec;
}

// ---- compositions

Tensor addmm_activation_impl(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha,
                             bool use_gelu) {
  CRESSET_CHECK(self.scalar_type() == mat2.scalar_type(), "self and mat2 must have the same dtype, but got ", self.scalar_type(), " and ",
                mat2.scalar_type());
  const Tensor sum = cresset::addmm(self, mat1, mat2, beta, alpha);
  return use_gelu ? cresset::gelu(sum) : cresset::relu(sum);
}

Tensor vdot_impl(const Tensor& self, const Tensor& other) { return cresset::dot(self.is_complex() ? self.conj() : self, other); }

Tensor outer_impl(const Tensor& self, const Tensor& vec2) {
  CRESSET_CHECK(self.dim() == 1, "outer: Expected 1-D argument self, but got ", self.dim(), "-D");
  CRESSET_CHECK(vec2.dim() == 1, "outer: Expected 1-D argument vec2, but got ", vec2.dim(), "-D");
  return self.reshape({self.size(0), 1}) * vec2;
}

Tensor addr_impl(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta, const Scalar& alpha) {
  CRESSET_CHECK(vec1.dim() == 1 && vec2.dim() == 1, "addr: Expected 1-D arguments vec1 and vec2, but got ", vec1.dim(), "-D and ",
                vec2.dim(), "-D");
  const ScalarType type = promote_types(promote_types(self.scalar_type(), vec1.scalar_type()), vec2.scalar_type());
  for (const auto& [name, factor] : {std::pair("beta", &beta), std::pair("alpha", &alpha)}) {
    CRESSET_CHECK(!factor->isBoolean() || type == kBool, "Boolean ", name, " only supported for Boolean results.");
    CRESSET_CHECK(isFloatingType(type) || isComplexType(type) || factor->isIntegral(true), "For integral input tensors, argument ", name,
                  " must not be a floating point number.");
    CRESSET_CHECK(isComplexType(type) || !factor->isComplex(), "For non-complex input tensors, argument ", name,
                  " must not be a complex number.");
  }
  // In the type of the result, so that a product of half numbers is not rounded before it is added to another type.
  const Tensor product = cresset::outer(vec1.to(promote_types(self.scalar_type(), vec1.scalar_type())), vec2);
  check_expands(self, product.sizes());
  const ScalarType common = promote_types(self.scalar_type(), product.scalar_type());
  CRESSET_CHECK(!beta.isBoolean() || common == kBool, "Boolean beta only supported for Boolean results.");
  CRESSET_CHECK(!alpha.isBoolean() || common == kBool, "Boolean alpha only supported for Boolean results.");
  // Truth values stay such: a factor is one too.
  const auto factor = [&](const Scalar& s) { return common == kBool ? Scalar(s.toDouble() != 0) : s; };
  check_number(alpha, common);
  check_number(beta, common);
  const Tensor scaled = alpha.equal(1) ? product : product * factor(alpha);
  // self * beta of small integers would wrap before it is widened.
  return beta.equal(0) ? scaled : (beta.equal(1) ? self : self.to(common) * factor(beta)) + scaled;
}

Tensor addbmm_impl(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta, const Scalar& alpha) {
  const TensorSpec spec = bmm_shape(batch1, batch2);
  check_expands(self, IntArrayRef(spec.sizes).slice(1));
  // The sum over the batch is one product of the batches laid side by side.
  const int64_t b = batch1.size(0), n = batch1.size(1), k = batch1.size(2), m = batch2.size(2);
  return cresset::addmm(self.expand({n, m}), batch1.permute({1, 0, 2}).reshape({n, b * k}), batch2.reshape({b * k, m}), beta, alpha);
}

namespace {
// Other sizes for what nobody else holds: the result is no view of it, so that detach_() and its like work on it.
Tensor with_sizes(const Tensor& result, IntArrayRef sizes) {
  return result.is_contiguous() ? cresset::_unsafe_view(result, sizes) : result.reshape(sizes);
}
}  // namespace

Tensor matmul_impl(const Tensor& self, const Tensor& other) {
  const int64_t d1 = self.dim(), d2 = other.dim();
  CRESSET_CHECK(d1 != 0 && d2 != 0, "both arguments to matmul need to be at least 1D, but they are ", d1, "D and ", d2, "D");
  if (d1 == 1 && d2 == 1) return cresset::dot(self, other);
  if (d1 == 2 && d2 == 1) return cresset::mv(self, other);
  if (d1 == 1 && d2 == 2) return cresset::mm(self.unsqueeze(0), other).squeeze_(0);
  if (d1 == 2 && d2 == 2) return cresset::mm(self, other);
  if (d1 >= 3 && d2 <= 2) {
    // One product of all rows, unless making them contiguous would cost a copy for nothing.
    DimVector sizes(self.sizes());
    sizes.pop_back();
    int64_t count = 1;
    for (int64_t n : sizes) count *= n;
    const Tensor rows = self.reshape({count, self.size(-1)});
    if (d2 == 1) return with_sizes(cresset::mv(rows, other), sizes);
    sizes.push_back(other.size(1));
    return with_sizes(cresset::mm(rows, other), sizes);
  }
  const Tensor left = d1 == 1 ? self.unsqueeze(0) : self;
  const IntArrayRef s1 = left.sizes(), s2 = other.sizes();
  const DimVector batch = infer_broadcast(s1.slice(0, s1.size() - 2), s2.slice(0, s2.size() - 2));
  const auto flat = [&](const Tensor& t) {
    DimVector full(batch);
    full.push_back(t.size(-2));
    full.push_back(t.size(-1));
    int64_t n = 1;
    for (int64_t b : batch) n *= b;
    return t.expand(full).reshape({n, t.size(-2), t.size(-1)});
  };
  DimVector out(batch);
  if (d1 > 1) out.push_back(left.size(-2));
  out.push_back(other.size(-1));
  return with_sizes(cresset::bmm(flat(left), flat(other)), out);
}

Tensor linear_impl(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias) {
  CRESSET_CHECK(weight.dim() == 2 || weight.dim() == 1, "linear: weight must be a matrix or a vector, got ", weight.dim(), "-D.");
  if (weight.dim() == 1) {
    CRESSET_CHECK(!bias || (input.dim() != 2 && bias->dim() == 0), "mat2 must be a matrix, got 1-D tensor");
    const Tensor product = cresset::matmul(input, weight);
    return bias ? product + *bias : product;
  }
  if (!bias) return cresset::matmul(input, weight.t());
  if (input.dim() == 2) return cresset::addmm(*bias, input, weight.t());
  CRESSET_CHECK(input.dim() != 1 || bias->scalar_type() == weight.scalar_type(), "self and mat2 must have the same dtype, but got ",
                bias->scalar_type(), " and ", weight.scalar_type());
  if (input.dim() != 0 && input.is_contiguous() && bias->dim() <= 1 && input.size(-1) != 0) {
    DimVector sizes(input.sizes());
    sizes[sizes.size() - 1] = weight.size(0);
    const Tensor rows = input.reshape({-1, input.size(-1)});
    return cresset::addmm(*bias, rows, weight.t()).reshape(sizes);
  }
  const Tensor product = cresset::matmul(input, weight.t()), sum = product + *bias;
  if (sum.dim() == product.dim() && sum.sizes() == product.sizes()) return sum;
  CRESSET_CHECK(sum.numel() == product.numel(), "output with shape ", product.sizes(), " doesn't match the broadcast shape ", sum.sizes());
  return sum.reshape(product.sizes());  // dimensions of 1 before it
}

Tensor tensordot_impl(const Tensor& self, const Tensor& other, IntArrayRef dims_self, IntArrayRef dims_other) {
  CRESSET_CHECK(dims_self.size() == dims_other.size(), "both dimension lists should have same length");
  CRESSET_CHECK(self.scalar_type() == other.scalar_type(), "both inputs should have same dtype");
  const uint64_t mask1 = dim_mask(dims_self, self.dim()), mask2 = dim_mask(dims_other, other.dim());
  Tensor a = self, b = other;
  int64_t inner = 1;
  for (std::size_t i = 0; i < dims_self.size(); ++i) {
    const int64_t n1 = a.size(dims_self[i]), n2 = b.size(dims_other[i]);
    if (n2 == 1)
      a = a.sum({dims_self[i]}, true, self.scalar_type());
    else if (n1 == 1)
      b = b.sum({dims_other[i]}, true, other.scalar_type());
    else {
      CRESSET_CHECK(n1 == n2, "contracted dimensions need to match, but first has size ", n1, " in dim ", dims_self[i],
                    " and second has size ", n2, " in dim ", dims_other[i]);
      inner *= n1;
    }
  }
  DimVector order1, order2, sizes;
  int64_t rows = 1, columns = 1;
  for (int64_t d = 0; d < self.dim(); ++d)
    if (!(mask1 >> d & 1)) {
      order1.push_back(d);
      sizes.push_back(self.size(d));
      rows *= self.size(d);
    }
  for (int64_t d : dims_self) order1.push_back(maybe_wrap_dim(d, self.dim()));
  for (int64_t d : dims_other) order2.push_back(maybe_wrap_dim(d, other.dim()));
  for (int64_t d = 0; d < other.dim(); ++d)
    if (!(mask2 >> d & 1)) {
      order2.push_back(d);
      sizes.push_back(other.size(d));
      columns *= other.size(d);
    }
  if (sizes.empty() && !dims_self.empty()) return cresset::dot(a.permute(order1).reshape({inner}), b.permute(order2).reshape({inner}));
  return cresset::mm(a.permute(order1).reshape({rows, inner}), b.permute(order2).reshape({inner, columns})).reshape(sizes);
}

Tensor inner_impl(const Tensor& self, const Tensor& other) {
  if (self.dim() == 0 || other.dim() == 0) return self * other;
  CRESSET_CHECK(self.size(-1) == other.size(-1), "inner() the last dimension must match on both input tensors but got shapes ",
                self.sizes(), " and ", other.sizes());
  return tensordot_impl(self, other, {-1}, {-1});
}

Tensor kron_impl(const Tensor& self, const Tensor& other) {
  const int64_t n = std::max(self.dim(), other.dim());
  DimVector a, b, out;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t p = i - (n - self.dim()), q = i - (n - other.dim());
    const int64_t x = p >= 0 ? self.size(p) : 1, y = q >= 0 ? other.size(q) : 1;
    a.push_back(x);
    a.push_back(1);
    b.push_back(1);
    b.push_back(y);
    out.push_back(x * y);
  }
  return with_sizes(self.reshape(a) * other.reshape(b), out);
}

Tensor trilinear_impl(const Tensor& i1, const Tensor& i2, const Tensor& i3, IntArrayRef expand1, IntArrayRef expand2, IntArrayRef expand3,
                      IntArrayRef sumdim, int64_t unroll_dim) {
  const auto dims = static_cast<int64_t>(i1.dim() + static_cast<int64_t>(expand1.size()));
  CRESSET_CHECK(unroll_dim >= 0 && unroll_dim < dims, "unroll_dim must be in [0,", dims - 1, "]");
  const auto expanded = [&](Tensor t, IntArrayRef at) {
    const uint64_t mask = dim_mask(at, dims);
    for (int64_t d = 0; d < dims; ++d)
      if (mask >> d & 1) t = t.unsqueeze(d);
    return t;
  };
  const Tensor product = expanded(i1, expand1) * expanded(i2, expand2) * expanded(i3, expand3);
  return sumdim.empty() ? product : product.sum(sumdim, false, product.scalar_type());
}

Tensor bilinear_impl(const Tensor& input1, const Tensor& input2, const Tensor& weight, const std::optional<Tensor>& bias) {
  CRESSET_CHECK(input1.dim() == input2.dim(), "bilinear(): input dimensions do not match: got ", input1.dim(), " and ", input2.dim());
  CRESSET_CHECK(weight.dim() == 3, "bilinear(): a weight of 3 dimensions was required; got size ", weight.sizes());
  for (int64_t d = 0; d < input1.dim() - 1; ++d)
    CRESSET_CHECK(input1.size(d) == input2.size(d), "bilinear(): input batch dimensions do not match at dim ", d, ": got ", input1.size(d),
                  " and ", input2.size(d));
  CRESSET_CHECK(input1.size(-1) == weight.size(1), "bilinear(): input1 size does not match weight size: got ", input1.size(-1),
                " but expected ", weight.size(1));
  CRESSET_CHECK(input2.size(-1) == weight.size(2), "bilinear(): input2 size does not match weight size: got ", input2.size(-1),
                " but expected ", weight.size(2));
  CRESSET_CHECK(!bias || !bias->defined() || bias->size(0) == weight.size(0), "bilinear(): bias size does not match weight size: got ",
                bias->size(0), " but expected ", weight.size(0));
  const bool biased = bias && bias->defined();
  const ScalarType type = input1.scalar_type();
  CRESSET_CHECK(input2.scalar_type() == type && weight.scalar_type() == type && (!biased || bias->scalar_type() == type),
                "All tensors must have the same dtype, got input1: ", cpp_type_name(type),
                ", input2: ", cpp_type_name(input2.scalar_type()), ", weight: ", cpp_type_name(weight.scalar_type()),
                biased ? str(", bias: ", cpp_type_name(bias->scalar_type())) : "");
  DimVector sizes(input1.sizes());
  sizes[sizes.size() - 1] = weight.size(0);
  const impl::ExcludeDispatchKeyGuard no_autocast(autocast_dispatch_keyset);  // its products are steps of one sum of the inputs' type
  const Tensor a = input1.reshape({-1, 1, input1.size(-1)}), b = input2.reshape({-1, input2.size(-1), 1});
  // (rows, 1, n) x (out, n, m) → (rows, out, m), then with input2 → (rows, out).
  const Tensor left = cresset::matmul(a.unsqueeze(1), weight).squeeze(2);
  const Tensor y = cresset::bmm(left, b).reshape(sizes);
  return biased ? y + *bias : y;
}

}  // namespace cresset::ops
