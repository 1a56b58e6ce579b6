// Each is a call by name: what it runs is registered from Python, where sparse and quantized tensors are written.
#include <cresset/ops/python_operators.h>

#include <iterator>
#include <span>

#include <cresset/dispatch/dispatcher.h>

namespace cresset {

namespace detail {
void (*define_python_operators)() = nullptr;
}

namespace {

OperatorHandle operator_of(const char* name, const char* overload) {
  const Dispatcher& dispatcher = Dispatcher::singleton();
  if (const auto op = dispatcher.findSchema({name, overload})) return *op;
  if (detail::define_python_operators) detail::define_python_operators();
  const auto op = dispatcher.findSchema({name, overload});
  CRESSET_CHECK_NOT_IMPLEMENTED(op, "'", name,
                                "' is an operator of sparse or quantized tensors, whose kernels are Python's: it is not there ",
                                "in a program without Python.");
  return *op;
}

Stack run(const char* name, const char* overload, std::span<IValue> arguments) {
  Stack stack(std::make_move_iterator(arguments.begin()), std::make_move_iterator(arguments.end()));
  operator_of(name, overload).callBoxed(&stack);
  return stack;
}
IValue run_for_one(const char* name, const char* overload, std::span<IValue> arguments) {
  return std::move(run(name, overload, arguments).back());
}
Tensor run_for_tensor(const char* name, const char* overload, std::span<IValue> arguments) {
  return run_for_one(name, overload, arguments).toTensor();
}
template <class... A>
IValue call(const char* name, const char* overload, A&&... arguments) {
  IValue values[] = {IValue(std::forward<A>(arguments))...};
  return run_for_one(name, overload, values);
}
template <class... A>
Tensor tensor_of(const char* name, const char* overload, A&&... arguments) {
  IValue values[] = {IValue(std::forward<A>(arguments))...};
  return run_for_tensor(name, overload, values);
}

template <std::size_t n, class... A>
auto tensors_of(const char* name, const char* overload, A&&... arguments) {
  IValue values[] = {IValue(std::forward<A>(arguments))...};
  const Stack stack = run(name, overload, values);
  return [&]<std::size_t... i>(std::index_sequence<i...>) { return std::tuple(stack[i].toTensor()...); }(std::make_index_sequence<n>());
}

IValue dtype_of(const TensorOptions& o) { return o.has_dtype() ? IValue(typeMetaToScalarType(o.dtype())) : IValue(); }
IValue layout_of(const TensorOptions& o) { return o.has_layout() ? IValue(o.layout()) : IValue(); }
IValue device_of(const TensorOptions& o) { return o.has_device() ? IValue(o.device()) : IValue(); }

// Makes it, and with options.requires_grad() a leaf that collects gradients.
template <class... A>
Tensor made(const TensorOptions& o, const char* name, const char* overload, A&&... arguments) {
  Tensor out = tensor_of(name, overload, std::forward<A>(arguments)...);
  if (o.requires_grad()) out.requires_grad_(true);
  return out;
}

Tensor compressed(const char* name, const char* overload, const Tensor& compressed_indices, const Tensor& plain_indices,
                  const Tensor& values, OptionalIntArrayRef size, const TensorOptions& o) {
  const IValue pinned(o.pinned_memory());
  if (size)
    return made(o, name, overload, compressed_indices, plain_indices, values, *size, dtype_of(o), layout_of(o), device_of(o), pinned);
  return made(o, name, overload, compressed_indices, plain_indices, values, dtype_of(o), layout_of(o), device_of(o), pinned);
}

}  // namespace

Tensor Tensor::to_sparse(int64_t sparse_dim) const { return tensor_of("aten::to_sparse", "sparse_dim", *this, sparse_dim); }
Tensor Tensor::to_sparse(std::optional<Layout> layout, OptionalIntArrayRef blocksize, std::optional<int64_t> dense_dim) const {
  return tensor_of("aten::to_sparse", "", *this, layout, blocksize, dense_dim);
}
Tensor Tensor::to_sparse_csr(std::optional<int64_t> dense_dim) const { return tensor_of("aten::to_sparse_csr", "", *this, dense_dim); }
Tensor Tensor::to_sparse_csc(std::optional<int64_t> dense_dim) const { return tensor_of("aten::to_sparse_csc", "", *this, dense_dim); }
Tensor Tensor::to_sparse_bsr(IntArrayRef blocksize, std::optional<int64_t> dense_dim) const {
  return tensor_of("aten::to_sparse_bsr", "", *this, blocksize, dense_dim);
}
Tensor Tensor::to_sparse_bsc(IntArrayRef blocksize, std::optional<int64_t> dense_dim) const {
  return tensor_of("aten::to_sparse_bsc", "", *this, blocksize, dense_dim);
}
Tensor Tensor::to_dense(std::optional<ScalarType> dtype, std::optional<bool> masked_grad) const {
  return tensor_of("aten::to_dense", "", *this, dtype, masked_grad);
}
Tensor Tensor::to_mkldnn(std::optional<ScalarType> dtype) const { return tensor_of("aten::to_mkldnn", "", *this, dtype); }
Tensor Tensor::coalesce() const { return tensor_of("aten::coalesce", "", *this); }
bool Tensor::is_coalesced() const { return call("aten::is_coalesced", "", *this).toBool(); }
Tensor Tensor::indices() const { return tensor_of("aten::indices", "", *this); }
Tensor Tensor::values() const { return tensor_of("aten::values", "", *this); }
Tensor Tensor::_indices() const { return tensor_of("aten::_indices", "", *this); }
Tensor Tensor::_values() const { return tensor_of("aten::_values", "", *this); }
Tensor Tensor::crow_indices() const { return tensor_of("aten::crow_indices", "", *this); }
Tensor Tensor::col_indices() const { return tensor_of("aten::col_indices", "", *this); }
Tensor Tensor::ccol_indices() const { return tensor_of("aten::ccol_indices", "", *this); }
Tensor Tensor::row_indices() const { return tensor_of("aten::row_indices", "", *this); }
int64_t Tensor::_nnz() const { return call("aten::_nnz", "", *this).toInt(); }
int64_t Tensor::sparse_dim() const { return call("aten::sparse_dim", "", *this).toInt(); }
int64_t Tensor::dense_dim() const { return call("aten::dense_dim", "", *this).toInt(); }
int64_t Tensor::_dimI() const { return call("aten::_dimI", "", *this).toInt(); }
int64_t Tensor::_dimV() const { return call("aten::_dimV", "", *this).toInt(); }
Tensor& Tensor::_coalesced_(bool coalesced) const {
  call("aten::_coalesced_", "", *this, coalesced);
  return const_cast<Tensor&>(*this);
}
const Tensor& Tensor::sparse_resize_(IntArrayRef size, int64_t sparse_dim, int64_t dense_dim) const {
  call("aten::sparse_resize_", "", *this, size, sparse_dim, dense_dim);
  return *this;
}
const Tensor& Tensor::sparse_resize_and_clear_(IntArrayRef size, int64_t sparse_dim, int64_t dense_dim) const {
  call("aten::sparse_resize_and_clear_", "", *this, size, sparse_dim, dense_dim);
  return *this;
}
Tensor Tensor::sparse_mask(const Tensor& mask) const { return tensor_of("aten::sparse_mask", "", *this, mask); }
Tensor Tensor::dequantize() const { return tensor_of("aten::dequantize", "self", *this); }
Tensor Tensor::int_repr() const { return tensor_of("aten::int_repr", "", *this); }
double Tensor::q_scale() const { return call("aten::q_scale", "", *this).toDouble(); }
int64_t Tensor::q_zero_point() const { return call("aten::q_zero_point", "", *this).toInt(); }
Tensor Tensor::q_per_channel_scales() const { return tensor_of("aten::q_per_channel_scales", "", *this); }
Tensor Tensor::q_per_channel_zero_points() const { return tensor_of("aten::q_per_channel_zero_points", "", *this); }
int64_t Tensor::q_per_channel_axis() const { return call("aten::q_per_channel_axis", "", *this).toInt(); }

Tensor sparse_coo_tensor(IntArrayRef size, const TensorOptions& o) {
  return made(o, "aten::sparse_coo_tensor", "size", size, dtype_of(o), layout_of(o), device_of(o), o.pinned_memory());
}
Tensor sparse_coo_tensor(const Tensor& indices, const Tensor& values, const TensorOptions& o, std::optional<bool> is_coalesced) {
  return made(o, "aten::sparse_coo_tensor", "indices", indices, values, dtype_of(o), layout_of(o), device_of(o), IValue(), is_coalesced);
}
Tensor sparse_coo_tensor(const Tensor& indices, const Tensor& values, IntArrayRef size, const TensorOptions& o,
                         std::optional<bool> is_coalesced) {
  return made(o, "aten::sparse_coo_tensor", "indices_size", indices, values, size, dtype_of(o), layout_of(o), device_of(o), IValue(),
              is_coalesced);
}
Tensor sparse_csr_tensor(const Tensor& crow, const Tensor& col, const Tensor& values, IntArrayRef size, const TensorOptions& o) {
  return compressed("aten::sparse_csr_tensor", "crow_col_value_size", crow, col, values, size, o);
}
Tensor sparse_csr_tensor(const Tensor& crow, const Tensor& col, const Tensor& values, const TensorOptions& o) {
  return compressed("aten::sparse_csr_tensor", "crow_col_value", crow, col, values, std::nullopt, o);
}
Tensor sparse_csc_tensor(const Tensor& ccol, const Tensor& row, const Tensor& values, IntArrayRef size, const TensorOptions& o) {
  return compressed("aten::sparse_csc_tensor", "ccol_row_value_size", ccol, row, values, size, o);
}
Tensor sparse_csc_tensor(const Tensor& ccol, const Tensor& row, const Tensor& values, const TensorOptions& o) {
  return compressed("aten::sparse_csc_tensor", "ccol_row_value", ccol, row, values, std::nullopt, o);
}
Tensor sparse_bsr_tensor(const Tensor& crow, const Tensor& col, const Tensor& values, IntArrayRef size, const TensorOptions& o) {
  return compressed("aten::sparse_bsr_tensor", "crow_col_value_size", crow, col, values, size, o);
}
Tensor sparse_bsr_tensor(const Tensor& crow, const Tensor& col, const Tensor& values, const TensorOptions& o) {
  return compressed("aten::sparse_bsr_tensor", "crow_col_value", crow, col, values, std::nullopt, o);
}
Tensor sparse_bsc_tensor(const Tensor& ccol, const Tensor& row, const Tensor& values, IntArrayRef size, const TensorOptions& o) {
  return compressed("aten::sparse_bsc_tensor", "ccol_row_value_size", ccol, row, values, size, o);
}
Tensor sparse_bsc_tensor(const Tensor& ccol, const Tensor& row, const Tensor& values, const TensorOptions& o) {
  return compressed("aten::sparse_bsc_tensor", "ccol_row_value", ccol, row, values, std::nullopt, o);
}
Tensor sparse_compressed_tensor(const Tensor& compressed_indices, const Tensor& plain, const Tensor& values, IntArrayRef size,
                                const TensorOptions& o) {
  return compressed("aten::sparse_compressed_tensor", "comp_plain_value_size", compressed_indices, plain, values, size, o);
}
Tensor sparse_compressed_tensor(const Tensor& compressed_indices, const Tensor& plain, const Tensor& values, const TensorOptions& o) {
  return compressed("aten::sparse_compressed_tensor", "comp_plain_value", compressed_indices, plain, values, std::nullopt, o);
}
Tensor hspmm(const Tensor& mat1, const Tensor& mat2) { return tensor_of("aten::hspmm", "", mat1, mat2); }
Tensor _sparse_mm(const Tensor& sparse, const Tensor& dense) { return tensor_of("aten::_sparse_mm", "", sparse, dense); }
Tensor _sparse_mm(const Tensor& sparse, const Tensor& dense, std::string_view reduce) {
  return tensor_of("aten::_sparse_mm", "reduce", sparse, dense, reduce);
}
Tensor _sparse_sum(const Tensor& self) { return tensor_of("aten::_sparse_sum", "", self); }
Tensor _sparse_sum(const Tensor& self, ScalarType dtype) { return tensor_of("aten::_sparse_sum", "dtype", self, dtype); }
Tensor _sparse_sum(const Tensor& self, IntArrayRef dim) { return tensor_of("aten::_sparse_sum", "dim", self, dim); }
Tensor _sparse_sum(const Tensor& self, IntArrayRef dim, ScalarType dtype) {
  return tensor_of("aten::_sparse_sum", "dim_dtype", self, dim, dtype);
}
Tensor _sparse_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return tensor_of("aten::_sparse_softmax", "int", self, dim, dtype);
}
Tensor _sparse_log_softmax(const Tensor& self, int64_t dim, std::optional<ScalarType> dtype) {
  return tensor_of("aten::_sparse_log_softmax", "int", self, dim, dtype);
}
Tensor sparse_sampled_addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha) {
  return tensor_of("aten::sparse_sampled_addmm", "", self, mat1, mat2, beta, alpha);
}
Tensor smm(const Tensor& self, const Tensor& mat2) { return tensor_of("aten::smm", "", self, mat2); }
Tensor sspaddmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta, const Scalar& alpha) {
  return tensor_of("aten::sspaddmm", "", self, mat1, mat2, beta, alpha);
}

Tensor quantize_per_tensor(const Tensor& self, double scale, int64_t zero_point, ScalarType dtype) {
  return tensor_of("aten::quantize_per_tensor", "", self, scale, zero_point, dtype);
}
Tensor quantize_per_channel(const Tensor& self, const Tensor& scales, const Tensor& zero_points, int64_t axis, ScalarType dtype) {
  return tensor_of("aten::quantize_per_channel", "", self, scales, zero_points, axis, dtype);
}
Tensor quantize_per_tensor_dynamic(const Tensor& self, ScalarType dtype, bool reduce_range) {
  return tensor_of("aten::quantize_per_tensor_dynamic", "", self, dtype, reduce_range);
}
Tensor dequantize(const Tensor& self) { return self.dequantize(); }
Tensor fake_quantize_per_tensor_affine(const Tensor& self, double scale, int64_t zero_point, int64_t quant_min, int64_t quant_max) {
  return tensor_of("aten::fake_quantize_per_tensor_affine", "", self, scale, zero_point, quant_min, quant_max);
}
Tensor fake_quantize_per_tensor_affine(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t quant_min,
                                       int64_t quant_max) {
  return tensor_of("aten::fake_quantize_per_tensor_affine", "tensor_qparams", self, scale, zero_point, quant_min, quant_max);
}
Tensor fake_quantize_per_channel_affine(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t axis, int64_t quant_min,
                                        int64_t quant_max) {
  return tensor_of("aten::fake_quantize_per_channel_affine", "", self, scale, zero_point, axis, quant_min, quant_max);
}

std::vector<Tensor> dequantize(TensorList tensors) { return call("aten::dequantize", "tensors", tensors).toTensorVector(); }
Tensor quantize_per_tensor(const Tensor& self, const Tensor& scale, const Tensor& zero_point, ScalarType dtype) {
  return call("aten::quantize_per_tensor", "tensor_qparams", self, scale, zero_point, dtype).toTensor();
}
std::vector<Tensor> quantize_per_tensor(TensorList tensors, const Tensor& scales, const Tensor& zero_points, ScalarType dtype) {
  return call("aten::quantize_per_tensor", "tensors", tensors, scales, zero_points, dtype).toTensorVector();
}
Tensor int_repr(const Tensor& self) { return call("aten::int_repr", "", self).toTensor(); }
double q_scale(const Tensor& self) { return call("aten::q_scale", "", self).toDouble(); }
int64_t q_zero_point(const Tensor& self) { return call("aten::q_zero_point", "", self).toInt(); }
Tensor q_per_channel_scales(const Tensor& self) { return call("aten::q_per_channel_scales", "", self).toTensor(); }
Tensor q_per_channel_zero_points(const Tensor& self) { return call("aten::q_per_channel_zero_points", "", self).toTensor(); }
int64_t q_per_channel_axis(const Tensor& self) { return call("aten::q_per_channel_axis", "", self).toInt(); }
Tensor _make_per_tensor_quantized_tensor(const Tensor& self, double scale, int64_t zero_point) {
  return call("aten::_make_per_tensor_quantized_tensor", "", self, scale, zero_point).toTensor();
}
Tensor _make_per_channel_quantized_tensor(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t axis) {
  return call("aten::_make_per_channel_quantized_tensor", "", self, scale, zero_point, axis).toTensor();
}
Tensor _empty_affine_quantized(IntArrayRef size, const TensorOptions& o, double scale, int64_t zero_point,
                               std::optional<MemoryFormat> memory_format) {
  return tensor_of("aten::_empty_affine_quantized", "", size, dtype_of(o), layout_of(o), device_of(o), o.pinned_memory(), scale, zero_point,
                   memory_format);
}
Tensor _empty_per_channel_affine_quantized(IntArrayRef size, const Tensor& scales, const Tensor& zero_points, int64_t axis,
                                           const TensorOptions& o, std::optional<MemoryFormat> memory_format) {
  return tensor_of("aten::_empty_per_channel_affine_quantized", "", size, scales, zero_points, axis, dtype_of(o), layout_of(o),
                   device_of(o), o.pinned_memory(), memory_format);
}
Tensor empty_quantized(IntArrayRef size, const Tensor& qtensor, const TensorOptions& o, std::optional<MemoryFormat> memory_format) {
  return tensor_of("aten::empty_quantized", "", size, qtensor, dtype_of(o), layout_of(o), device_of(o), o.pinned_memory(), memory_format);
}
Tensor quantized_batch_norm(const Tensor& input, const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, const Tensor& mean,
                            const Tensor& var, double eps, double output_scale, int64_t output_zero_point) {
  return call("aten::quantized_batch_norm", "", input, weight, bias, mean, var, eps, output_scale, output_zero_point).toTensor();
}
Tensor quantized_max_pool1d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                            bool ceil_mode) {
  return call("aten::quantized_max_pool1d", "", self, kernel_size, stride, padding, dilation, ceil_mode).toTensor();
}
Tensor quantized_max_pool2d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                            bool ceil_mode) {
  return call("aten::quantized_max_pool2d", "", self, kernel_size, stride, padding, dilation, ceil_mode).toTensor();
}
Tensor quantized_max_pool3d(const Tensor& self, IntArrayRef kernel_size, IntArrayRef stride, IntArrayRef padding, IntArrayRef dilation,
                            bool ceil_mode) {
  return call("aten::quantized_max_pool3d", "", self, kernel_size, stride, padding, dilation, ceil_mode).toTensor();
}
Tensor _saturate_weight_to_fp16(const Tensor& weight) { return call("aten::_saturate_weight_to_fp16", "", weight).toTensor(); }
std::tuple<Tensor, Tensor> fake_quantize_per_tensor_affine_cachemask(const Tensor& self, double scale, int64_t zero_point,
                                                                     int64_t quant_min, int64_t quant_max) {
  return tensors_of<2>("aten::fake_quantize_per_tensor_affine_cachemask", "", self, scale, zero_point, quant_min, quant_max);
}
std::tuple<Tensor, Tensor> _fake_quantize_per_tensor_affine_cachemask_tensor_qparams(const Tensor& self, const Tensor& scale,
                                                                                     const Tensor& zero_point,
                                                                                     const Tensor& fake_quant_enabled, int64_t quant_min,
                                                                                     int64_t quant_max) {
  return tensors_of<2>("aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams", "", self, scale, zero_point, fake_quant_enabled,
                       quant_min, quant_max);
}
std::tuple<Tensor, Tensor> fake_quantize_per_channel_affine_cachemask(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                                                                      int64_t axis, int64_t quant_min, int64_t quant_max) {
  return tensors_of<2>("aten::fake_quantize_per_channel_affine_cachemask", "", self, scale, zero_point, axis, quant_min, quant_max);
}
Tensor fake_quantize_per_tensor_affine_cachemask_backward(const Tensor& grad, const Tensor& mask) {
  return call("aten::fake_quantize_per_tensor_affine_cachemask_backward", "", grad, mask).toTensor();
}
Tensor fake_quantize_per_channel_affine_cachemask_backward(const Tensor& grad, const Tensor& mask) {
  return call("aten::fake_quantize_per_channel_affine_cachemask_backward", "", grad, mask).toTensor();
}
Tensor _fake_quantize_learnable_per_tensor_affine(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t quant_min,
                                                  int64_t quant_max, double grad_factor) {
  return call("aten::_fake_quantize_learnable_per_tensor_affine", "", self, scale, zero_point, quant_min, quant_max, grad_factor)
      .toTensor();
}
Tensor _fake_quantize_learnable_per_channel_affine(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t axis,
                                                   int64_t quant_min, int64_t quant_max, double grad_factor) {
  return call("aten::_fake_quantize_learnable_per_channel_affine", "", self, scale, zero_point, axis, quant_min, quant_max, grad_factor)
      .toTensor();
}
Tensor fused_moving_avg_obs_fake_quant(const Tensor& self, const Tensor& observer_on, const Tensor& fake_quant_on, Tensor& running_min,
                                       Tensor& running_max, Tensor& scale, Tensor& zero_point, double averaging_const, int64_t quant_min,
                                       int64_t quant_max, int64_t ch_axis, bool per_row_fake_quant, bool symmetric_quant) {
  return call("aten::fused_moving_avg_obs_fake_quant", "", self, observer_on, fake_quant_on, running_min, running_max, scale, zero_point,
              averaging_const, quant_min, quant_max, ch_axis, per_row_fake_quant, symmetric_quant)
      .toTensor();
}
Tensor _indices_copy(const Tensor& self) { return call("aten::_indices_copy", "", self).toTensor(); }
Tensor _values_copy(const Tensor& self) { return call("aten::_values_copy", "", self).toTensor(); }
Tensor indices_copy(const Tensor& self) { return call("aten::indices_copy", "", self).toTensor(); }
Tensor values_copy(const Tensor& self) { return call("aten::values_copy", "", self).toTensor(); }
Tensor crow_indices_copy(const Tensor& self) { return call("aten::crow_indices_copy", "", self).toTensor(); }
Tensor col_indices_copy(const Tensor& self) { return call("aten::col_indices_copy", "", self).toTensor(); }
Tensor ccol_indices_copy(const Tensor& self) { return call("aten::ccol_indices_copy", "", self).toTensor(); }
Tensor row_indices_copy(const Tensor& self) { return call("aten::row_indices_copy", "", self).toTensor(); }
Tensor hash_tensor(const Tensor& self, IntArrayRef dim, bool keepdim, int64_t mode) {
  return call("aten::hash_tensor", "", self, dim, keepdim, mode).toTensor();
}
Tensor _masked_softmax(const Tensor& self, const Tensor& mask, std::optional<int64_t> dim, std::optional<int64_t> mask_type) {
  return call("aten::_masked_softmax", "", self, mask, dim, mask_type).toTensor();
}
std::tuple<Tensor, Tensor, Tensor> _transform_bias_rescale_qkv(const Tensor& qkv, const Tensor& qkv_bias, int64_t num_heads) {
  return tensors_of<3>("aten::_transform_bias_rescale_qkv", "", qkv, qkv_bias, num_heads);
}
std::tuple<Tensor, Tensor> _rowwise_prune(const Tensor& weight, const Tensor& mask, ScalarType compressed_indices_dtype) {
  return tensors_of<2>("aten::_rowwise_prune", "", weight, mask, compressed_indices_dtype);
}
Tensor _grouped_mm(const Tensor& self, const Tensor& mat2, const std::optional<Tensor>& offs, const std::optional<Tensor>& bias,
                   std::optional<ScalarType> out_dtype) {
  return call("aten::_grouped_mm", "", self, mat2, offs, bias, out_dtype).toTensor();
}

}  // namespace cresset
