"""Operators of `aten` that are functions of Python here: for scripts, which find operators by name (`cresset.jit` loads this module), and for `ops.aten`."""

import cresset

from . import _fake_quantize, _rare_functions
from ._quantized import _functions as _quantized

__all__ = ["NAMES"]


def _nested(name):
    """A function of nested tensors, which are loaded when it is called."""
    return lambda *args, **kwargs: getattr(cresset, name)(*args, **kwargs)


def _padding(name):
    """A function of nested._internal.padding, which is loaded when it is called."""

    def call(*args, **kwargs):
        from .nested._internal import padding

        return getattr(padding, name)(*args, **kwargs)

    return call


def _recurrent(form, kind):
    """A function of the layers with packed weights, which are loaded when it is called."""

    def call(*args, **kwargs):
        from ._quantized._operators import recurrent

        return getattr(recurrent, form)(kind)(*args, **kwargs)

    return call


_WATCHED = "Tensor observer_on, Tensor fake_quant_on, Tensor(a!) running_min, Tensor(b!) running_max, Tensor(c!) scale, Tensor(d!) zero_point"
_OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None"
_ROWS = {
    "_print(str s) -> ()": lambda s: print(s, flush=True),
    "_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) -> Tensor": _rare_functions._grouped_mm,
    "_convolution_double_backward(Tensor? ggI, Tensor? ggW, Tensor? ggb, Tensor gO, Tensor weight, Tensor self, SymInt[] stride, SymInt[] padding, "
    "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool[3] output_mask) -> (Tensor, Tensor, Tensor)":
    _rare_functions._convolution_double_backward,
    "_rowwise_prune(Tensor weight, Tensor mask, ScalarType compressed_indices_dtype) -> (Tensor, Tensor)": _rare_functions._rowwise_prune,
    "_transform_bias_rescale_qkv(Tensor qkv, Tensor qkv_bias, int num_heads) -> (Tensor, Tensor, Tensor)": _rare_functions._transform_bias_rescale_qkv,
    "_nested_tensor_from_tensor_list(Tensor[] list, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor":
    _nested("_nested_tensor_from_tensor_list"),
    "_nested_tensor_from_mask(Tensor t, Tensor mask, bool mask_check=True) -> Tensor": _nested("_nested_tensor_from_mask"),
    "_nested_tensor_from_mask_left_aligned(Tensor t, Tensor mask) -> bool": _nested("_nested_tensor_from_mask_left_aligned"),
    "_nested_from_padded(Tensor padded, Tensor cpu_nested_shape_example, bool fuse_transform_0213=False) -> Tensor": _nested("_nested_from_padded"),
    "_masked_softmax(Tensor self, Tensor mask, int? dim=None, int? mask_type=None) -> Tensor": _rare_functions._masked_softmax,
    "_jagged_to_padded_dense_forward(Tensor values, Tensor[] offsets, SymInt[] max_lengths, float padding_value=0.0) -> Tensor":
    _padding("_jagged_to_padded_dense_forward"),
    "_padded_dense_to_jagged_forward(Tensor dense, Tensor[] offsets, SymInt? total_L=None) -> Tensor": _padding("_padded_dense_to_jagged_forward"),
    "_nested_from_padded_and_nested_example(Tensor padded, Tensor nt_example) -> Tensor": _nested("_nested_from_padded_and_nested_example"),
    "quantize_per_tensor(Tensor self, float scale, int zero_point, ScalarType dtype) -> Tensor": _quantized.quantize_per_tensor,
    "quantize_per_channel(Tensor self, Tensor scales, Tensor zero_points, int axis, ScalarType dtype) -> Tensor": _quantized.quantize_per_channel,
    "quantize_per_tensor.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, ScalarType dtype) -> Tensor": _quantized.quantize_per_tensor,
    "quantize_per_tensor.tensors(Tensor[] tensors, Tensor scales, Tensor zero_points, ScalarType dtype) -> Tensor[]":
    lambda *args: list(_quantized.quantize_per_tensor(*args)),
    "_make_per_tensor_quantized_tensor(Tensor self, float scale, int zero_point) -> Tensor": _quantized._make_per_tensor_quantized_tensor,
    "_make_per_channel_quantized_tensor(Tensor self, Tensor scale, Tensor zero_point, int axis) -> Tensor": _quantized._make_per_channel_quantized_tensor,
    "empty_quantized(int[] size, Tensor qtensor, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, "
    "MemoryFormat? memory_format=None) -> Tensor": _quantized.empty_quantized,
    f"_empty_affine_quantized(SymInt[] size, *, {_OPTIONS}, float scale=1, int zero_point=0, MemoryFormat? memory_format=contiguous_format) -> Tensor":
    _quantized._empty_affine_quantized,
    f"_empty_per_channel_affine_quantized(SymInt[] size, *, Tensor scales, Tensor zero_points, int axis, {_OPTIONS}, "
    "MemoryFormat? memory_format=contiguous_format) -> Tensor": _quantized._empty_per_channel_affine_quantized,
    "quantized_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps, float output_scale, int output_zero_point) -> Tensor":
    _quantized.quantized_batch_norm,
    "_choose_qparams_per_tensor(Tensor self, bool reduce_range=False) -> (float, int)": _quantized._choose_qparams_per_tensor,
    "_saturate_weight_to_fp16(Tensor weight) -> Tensor": _quantized._saturate_weight_to_fp16,
    "quantize_per_tensor_dynamic(Tensor self, ScalarType dtype, bool reduce_range) -> Tensor": _quantized.quantize_per_tensor_dynamic,
    "fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> Tensor":
    _fake_quantize.fake_quantize_per_tensor_affine,
    "fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max) -> Tensor":
    _fake_quantize.fake_quantize_per_tensor_affine,
    "fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) -> Tensor":
    _fake_quantize.fake_quantize_per_channel_affine,
    "fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> (Tensor output, Tensor mask)":
    _fake_quantize.fake_quantize_per_tensor_affine_cachemask,
    "_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, Tensor fake_quant_enabled, int quant_min, "
    "int quant_max) -> (Tensor output, Tensor mask)": _fake_quantize._fake_quantize_per_tensor_affine_cachemask_tensor_qparams,
    "fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) -> "
    "(Tensor output, Tensor mask)": _fake_quantize.fake_quantize_per_channel_affine_cachemask,
    "fake_quantize_per_tensor_affine_cachemask_backward(Tensor grad, Tensor mask) -> Tensor": lambda grad, mask: grad * mask,
    "fake_quantize_per_channel_affine_cachemask_backward(Tensor grad, Tensor mask) -> Tensor": lambda grad, mask: grad * mask,
    "_fake_quantize_learnable_per_tensor_affine(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max, float grad_factor=1) -> Tensor":
    _fake_quantize._fake_quantize_learnable_per_tensor_affine,
    "_fake_quantize_learnable_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max, "
    "float grad_factor=1) -> Tensor": _fake_quantize._fake_quantize_learnable_per_channel_affine,
    "hash_tensor(Tensor self, int[1] dim=[], *, bool keepdim=False, int mode=0) -> Tensor": _rare_functions.hash_tensor,
    f"fused_moving_avg_obs_fake_quant(Tensor self, {_WATCHED}, float averaging_const, int quant_min, int quant_max, int ch_axis, "
    "bool per_row_fake_quant=False, bool symmetric_quant=False) -> Tensor": _fake_quantize.fused_moving_avg_obs_fake_quant,
    "dequantize.self(Tensor self) -> Tensor": lambda self: self.dequantize(),
    "dequantize.tensors(Tensor[] tensors) -> Tensor[]": lambda tensors: [t.dequantize() for t in tensors],
}

_ROWS |= {f"{name}(Tensor self) -> {result}": (lambda name: lambda self: getattr(self, name)())(name) for name, result in (
    ("int_repr", "Tensor"), ("q_scale", "float"), ("q_zero_point", "int"), ("q_per_channel_scales", "Tensor"),
    ("q_per_channel_zero_points", "Tensor"), ("q_per_channel_axis", "int"),
)}  # fmt: skip

_ROWS |= {
    f"quantized_max_pool{n}d(Tensor self, int[{n}] kernel_size, int[{n}] stride=[], int[{n}] padding=0, int[{n}] dilation=1, bool ceil_mode=False) -> Tensor":
    getattr(_quantized, f"quantized_max_pool{n}d") for n in (1, 2, 3)
}  # fmt: skip
_ROWS |= {f"{name}_copy(Tensor self) -> Tensor": (lambda name: lambda self: getattr(self, name)().clone())(name) for name in (
    "_indices", "_values", "indices", "values", "crow_indices", "col_indices", "ccol_indices", "row_indices",
)}  # fmt: skip

_CELLS = "__torch__.torch.classes.rnn.CellParamsBase[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"
for _kind, _states, _options, _results in (
    ("lstm", "Tensor[] hx", ", *, ScalarType? dtype=None, bool use_dynamic=False", "Tensor, Tensor, Tensor"),
    ("gru", "Tensor hx", "", "Tensor, Tensor"),
):
    _ROWS[f"quantized_{_kind}.input(Tensor input, {_states}, {_CELLS}, bool batch_first{_options}) -> ({_results})"] = _recurrent("whole", _kind)
    _ROWS[f"quantized_{_kind}.data(Tensor data, Tensor batch_sizes, {_states}, {_CELLS}{_options}) -> ({_results})"] = _recurrent("packed", _kind)

NAMES = frozenset(schema.partition("(")[0].partition(".")[0] for schema in _ROWS)

_library = cresset.library.Library("aten", "FRAGMENT")
for _schema, _function in _ROWS.items():
    _library.define(_schema)
    _library.impl(_schema.partition("(")[0], _function, "CompositeImplicitAutograd")
