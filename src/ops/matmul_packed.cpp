// Shape rules of products of eight and four bits, and products of 8-bit floats with scales.
#include "ops/ops_decl_matmul.h"

#include <cresset/ops/functions_arith.h>
#include <cresset/ops/functions_math.h>
#include <cresset/ops/functions_matmul.h>
#include <cresset/ops/functions_view.h>

#include "ops/shared/pointwise.h"
#include "ops/shared/shape_util.h"
#include "ops/shared/structured.h"

namespace cresset::ops {
namespace {

void check_packed(const char* op, const Tensor& self, ScalarType type, const Tensor& mat2, const Tensor& scales) {
  CRESSET_CHECK(self.dim() == 2, op, " : expect A to be 2D tensor.");
  CRESSET_CHECK(self.size(1) <= 1 || self.stride(1) == 1, op, " : A must be contiguous on the last dimension.");
  CRESSET_CHECK(self.scalar_type() == kFloat || isReducedFloatingType(self.scalar_type()), op,
                " : expect A to be either 32-bit or 16-bit float tensor.");
  CRESSET_CHECK(mat2.scalar_type() == type, op, " : expect B to be ", dtype_name(type), " tensor.");
  CRESSET_CHECK(mat2.dim() == 2 && mat2.is_contiguous(), op, " : expect B to be 2D and contiguous.");
  CRESSET_CHECK(scales.scalar_type() == self.scalar_type(), "expected scalar type ", self.scalar_type(), " but found ",
                scales.scalar_type());
}

}  // namespace

TensorSpec int_mm_shape(const Tensor& self, const Tensor& mat2) {
  const char* op = "int_mm_out_cpu";
  CRESSET_CHECK(self.dim() == 2, op, ": Expected self to be of dimension 2 but got ", self.dim());
  CRESSET_CHECK(mat2.dim() == 2, op, ": Expected mat2 to be of dimension 2 but got ", mat2.dim());
  CRESSET_CHECK(self.size(1) == mat2.size(0), op, ": self.size(1) needs to match mat2.size(0) but got ", self.size(1), " and ",
                mat2.size(0));
  CRESSET_CHECK(self.scalar_type() == kChar || self.scalar_type() == kByte, op, ": Expected self dtype to be int8 or uint8 but got ",
                cpp_type_name(self.scalar_type()));
  CRESSET_CHECK(mat2.scalar_type() == kChar, op, ": Expected mat2 dtype to be of type int8 but got ", cpp_type_name(mat2.scalar_type()));
  return spec_like(self, {self.size(0), mat2.size(1)}, kInt);
}

TensorSpec weight_int8pack_mm_shape(const Tensor& self, const Tensor& mat2, const Tensor& scales) {
  const char* op = "_weight_int8pack_mm_cpu";
  check_packed(op, self, kChar, mat2, scales);
  CRESSET_CHECK(mat2.size(1) == self.size(1), op, " : expect B.size(1) == ", self.size(1));
  CRESSET_CHECK(scales.dim() == 1 && scales.size(0) == mat2.size(0), op, " : expect scales to be 1d tensor with size ", mat2.size(0));
  return spec_like(self, {self.size(0), mat2.size(0)});
}

TensorSpec weight_int4pack_mm_shape(const Tensor& self, const Tensor& mat2, int64_t group, const Tensor& scale_and_zeros) {
  const char* op = "_weight_int4pack_mm_cpu";
  check_packed(op, self, kByte, mat2, scale_and_zeros);
  const int64_t n = mat2.size(0), k = self.size(1);
  CRESSET_CHECK(mat2.size(1) == k / 2, op, " : expect B.size(1) to be K/2, got ", mat2.size(1));
  CRESSET_CHECK(group == 32 || group == 64 || group == 128 || group == 256, op, ": expect qGroupSize to be 32, 64, 128 or 256, got ",
                group);
  CRESSET_CHECK(k % group == 0, op, ": expect K to be dividable by qGroupSize, got K:", k);
  CRESSET_CHECK(
      scale_and_zeros.dim() == 3 && scale_and_zeros.size(0) == k / group && scale_and_zeros.size(1) == n && scale_and_zeros.size(2) == 2,
      op, ": expect qScaleAndZeros to be 3d tensor with sizes [:, ", n, ", 2]");
  return spec_like(self, {self.size(0), n});
}

// Two numbers a byte, that of the even place in the lower half.
Tensor convert_weight_to_int4pack_impl(const Tensor& self, int64_t inner_k_tiles) {
  const char* op = "_convert_weight_to_int4pack_cpu";
  CRESSET_CHECK(self.dim() == 2, op, " : expect weight to be 2D tensor.");
  CRESSET_CHECK(self.scalar_type() == kInt, op, " : expect weight to be kInt.");
  CRESSET_CHECK(inner_k_tiles == 2 || inner_k_tiles == 4 || inner_k_tiles == 8, op, " : innerKTiles need to be 2, 4, or 8, got ",
                inner_k_tiles);
  CRESSET_CHECK(self.size(0) % 16 == 0, op, " : expect N to be dividable by 16");
  CRESSET_CHECK(self.size(1) % 2 == 0, op, " : expect K to be dividable by 2");
  const int64_t k = self.size(1);
  const Tensor low = cresset::slice(self, 1, 0, k, 2), high = cresset::slice(self, 1, 1, k, 2);
  return (low + high * 16).to(kByte);
}

// ---- 8-bit floats

namespace {

double largest_float8(ScalarType type) {
  switch (type) {
    case kFloat8_e5m2:
    case kFloat8_e5m2fnuz: return 57344;
    case kFloat8_e4m3fn: return 448;
    default: return 240;  // e4m3fnuz
  }
}

// One scale for a whole matrix, or one for each row of the first and each column of the second.
void check_scales(const Tensor& a, const Tensor& b, const Tensor& scale_a, const Tensor& scale_b) {
  const auto matrix = [](const Tensor& t) { return isFloat8Type(t.scalar_type()) && t.scalar_type() != kFloat8_e8m0fnu; };
  const auto is = [](const Tensor& t, IntArrayRef sizes) { return t.sizes() == sizes && t.is_contiguous(); };
  const bool whole = scale_a.numel() == 1 && scale_b.numel() == 1;
  const bool lines = is(scale_a, {a.size(0), 1}) && is(scale_b, {1, b.size(1)});
  const bool types = matrix(a) && matrix(b) && scale_a.scalar_type() == kFloat && scale_b.scalar_type() == kFloat;
  if (types && (whole || lines)) return;
  CRESSET_THROW(ValueError, "Invalid scaling configuration.\n",
                "- For TensorWise scaling, a and b should be float8, scales should be float and singletons.\n",
                "- For RowWise scaling, a and b should be float8, scales should be float, scale_a should be (", a.size(0),
                ", 1) and scale_b should be (1, ", b.size(1), "), and both should be contiguous.\n", "Got mat_a.dtype()=", a.scalar_type(),
                ", scale_a.dtype()=", scale_a.scalar_type(), ", scale_a.size()=", scale_a.sizes(), ", scale_a.stride()=", scale_a.strides(),
                ", mat_b.dtype()=", b.scalar_type(), ", scale_b.dtype()=", scale_b.scalar_type(), ", scale_b.size()=", scale_b.sizes(),
                " and scale_b.stride()=", scale_b.strides());
}

}  // namespace

// scale_result divides results of 8-bit floats that are asked for by name, and nothing else, as in PyTorch.
Tensor scaled_mm_impl(const Tensor& self, const Tensor& mat2, const Tensor& scale_a, const Tensor& scale_b,
                      const std::optional<Tensor>& bias, const std::optional<Tensor>& scale_result, std::optional<ScalarType> out_dtype,
                      bool /*use_fast_accum*/) {
  CRESSET_CHECK(self.dim() == 2, "mat1 must be a matrix");
  CRESSET_CHECK(mat2.dim() == 2, "mat2 must be a matrix");
  CRESSET_CHECK(self.size(1) == mat2.size(0), "mat_a and mat_b shapes cannot be multiplied (", self.size(0), "x", self.size(1), " and ",
                mat2.size(0), "x", mat2.size(1), ")");
  check_scales(self, mat2, scale_a, scale_b);
  const bool rescaled = scale_result && scale_result->defined();
  CRESSET_CHECK(!rescaled || (scale_result->numel() == 1 && scale_result->scalar_type() == kFloat), "scale_result must be a float scalar");
  const bool biased = bias && bias->defined();
  CRESSET_CHECK(!biased || bias->numel() == mat2.size(1), "Bias must be size ", mat2.size(1), " but got ", biased ? bias->numel() : 0);
  Tensor out = cresset::mm(self.to(kFloat), mat2.to(kFloat));
  const bool whole = scale_a.numel() == 1 && scale_b.numel() == 1;
  out = whole ? out * (scale_a.reshape({}) * scale_b.reshape({})) : out * scale_a * scale_b;
  if (biased) out = out + bias->reshape({-1}).to(kFloat);
  const ScalarType type = out_dtype.value_or(self.scalar_type());
  if (!isFloat8Type(type)) return out.to(type);
  if (rescaled && out_dtype) out = out / scale_result->reshape({});
  const double limit = largest_float8(type);
  return cresset::clamp(out, -limit, limit).to(type);
}

Tensor& scaled_mm_into(const Tensor& self, const Tensor& mat2, const Tensor& scale_a, const Tensor& scale_b,
                       const std::optional<Tensor>& bias, const std::optional<Tensor>& scale_result, std::optional<ScalarType> out_dtype,
                       bool use_fast_accum, Tensor& out) {
  CRESSET_CHECK_VALUE(!out_dtype || *out_dtype == out.scalar_type(), "out_dtype must match output matrix type");
  const ScalarType type = out.scalar_type();
  // scale_result counts for a type that is asked for by name only: here it is not, if the caller did not.
  const std::optional<Tensor> rescale = out_dtype ? scale_result : std::nullopt;
  copy_to_out("_scaled_mm", scaled_mm_impl(self, mat2, scale_a, scale_b, bias, rescale, type, use_fast_accum), out, OutDtype::Exact);
  return out;
}

}  // namespace cresset::ops
