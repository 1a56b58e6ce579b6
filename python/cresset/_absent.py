"""Names of features that are not part of Cresset (some operators of quantized tensors and of vendors' libraries, sizes of sparse ones): a clear refusal instead of an AttributeError."""

from ._overridable import overridable, tensor_attribute, tensor_method

_QUANTIZED = "operators of quantized tensors beyond those of dtypes, views, comparisons and activations"
_MKLDNN = "recurrent layers and gradients of oneDNN by name"
_CUDNN, _MIOPEN, _FBGEMM = "operators of cuDNN", "operators of MIOpen", "FBGEMM's packed matrices"

_FUNCTIONS = {
    _QUANTIZED: (
        "quantized_gru_cell", "quantized_lstm_cell", "quantized_rnn_relu_cell", "quantized_rnn_tanh_cell",
    ),
    _CUDNN: (
        "cudnn_affine_grid_generator", "cudnn_batch_norm", "cudnn_convolution", "cudnn_convolution_add_relu", "cudnn_convolution_relu",
        "cudnn_convolution_transpose", "cudnn_grid_sampler",
    ),
    _MIOPEN: (
        "miopen_batch_norm", "miopen_convolution", "miopen_convolution_add_relu", "miopen_convolution_relu", "miopen_convolution_transpose",
        "miopen_ctc_loss", "miopen_depthwise_convolution", "miopen_rnn",
    ),
    _MKLDNN: ("mkldnn_linear_backward_weights", "mkldnn_rnn_layer"),
    _FBGEMM: (
        "fbgemm_linear_fp16_weight", "fbgemm_linear_fp16_weight_fp32_activation", "fbgemm_linear_int8_weight",
        "fbgemm_linear_int8_weight_fp32_activation", "fbgemm_linear_quantize_weight", "fbgemm_pack_gemm_matrix_fp16", "fbgemm_pack_quantized_matrix",
        "choose_qparams_optimized",
    ),
}  # fmt: skip
# Questions that only sparse tensors answer: (name, which layout was expected).
_SPARSE_ONLY = {
    "coalesce": "sparse coordinate tensor", "is_coalesced": "sparse coordinate tensor", "indices": "sparse coordinate tensor",
    "values": "sparse tensor", "crow_indices": "sparse row compressed tensor", "col_indices": "sparse row compressed tensor",
    "ccol_indices": "sparse column compressed tensor", "row_indices": "sparse column compressed tensor",
}  # fmt: skip


def _refusal(name, what):
    message = f"{name}: {what} are not part of Cresset."

    def refuse(*args, **kwargs):
        raise NotImplementedError(message)

    refuse._is_absent, refuse._script_refusal = True, message
    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Raises NotImplementedError: {what} are not part of Cresset."
    return refuse


# What only quantized, nested or sparse tensors have.
_OTHERS_ONLY = (
    "to_padded_tensor", "sparse_resize_", "sparse_resize_and_clear_", "resize_as_sparse_", "_nnz", "int_repr", "q_scale", "q_zero_point",
    "q_per_channel_scales", "q_per_channel_zero_points", "q_per_channel_axis", "qscheme",
)  # fmt: skip


def _others_only(name):
    kind = "nested" if "padded" in name else "quantized" if name.startswith(("q", "int")) else "sparse"

    def refuse(self, *args, **kwargs):
        raise NotImplementedError(f"Could not run 'aten::{name}' with arguments from the '{self.device.type.upper()}' backend: only {kind} tensors have it.")

    refuse.__name__ = name
    refuse.__doc__ = f"Raises NotImplementedError: only {kind} tensors have it."
    return refuse


# Functions that PyTorch took away, and what to call in their place.
_REMOVED = {
    "solve": "`torch.linalg.solve`, which takes its arguments the other way round", "lstsq": "`torch.linalg.lstsq`, which takes its arguments the other way round",
    "eig": "`torch.linalg.eig` or `torch.linalg.eigvals`", "symeig": "`torch.linalg.eigh` or `torch.linalg.eigvalsh`",
    "matrix_rank": "`torch.linalg.matrix_rank`",
}  # fmt: skip


def _removal(name, instead):
    def refuse(*args, **kwargs):
        raise RuntimeError(f"This function was deprecated since version 1.9 and is now removed. Please use {instead}.")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"Raises RuntimeError: use {instead}."
    return refuse


def _own(tensor, name):
    """What the tensor's class has in place of a function of Tensor that is called by its name there: Tensor.values(sparse)."""
    for cls in type(tensor).__mro__:
        if cls.__module__.endswith(".sparse._tensor") and name in cls.__dict__:
            return cls.__dict__[name]
    return None


def _expectation(name, layout):
    def refuse(self):
        own = _own(self, name)
        if own is not None:
            return own(self)
        raise RuntimeError(f"{name} expected {layout} layout but got Strided")

    refuse._is_absent = True
    refuse.__name__ = name
    refuse.__doc__ = f"Raises RuntimeError: only a {layout} has it, and this tensor is strided."
    return refuse


@tensor_method
def sparse_dim(self):
    """Number of sparse dimensions: 0."""
    own = _own(self, "sparse_dim")
    return 0 if own is None else own(self)


@tensor_method
def dense_dim(self):
    """Number of dense dimensions: all."""
    own = _own(self, "dense_dim")
    return self.dim() if own is None else own(self)


@tensor_method(missing=True)
def to_mkldnn(self, dtype=None):
    """A copy in the layout `_mkldnn`, in float32, bfloat16, float16, int8 or uint8: its own dtype unless another one is asked for. RuntimeError for other
    dtypes, devices and layouts."""
    from ._ops import ops

    return ops.aten.to_mkldnn(self, dtype)


@tensor_method
def to_dense(self, dtype=None, *, masked_grad=True):
    """The tensor itself, which is dense, or a copy in another dtype."""
    own = _own(self, "to_dense")
    if own is not None:
        return own(self, dtype, masked_grad=masked_grad)
    return self if dtype is None else self.to(dtype)


@overridable
def dequantize(input):
    """The real numbers of a quantized tensor, float32, or of each of a list; another tensor in float32."""
    return tuple(t.dequantize() for t in input) if isinstance(input, (list, tuple)) else input.dequantize()


def _dequantize(self):
    """The tensor in float32: it is not quantized."""
    if self.is_quantized:
        return self.dequantize()  # of its class
    return self.float()


for _name in _OTHERS_ONLY:
    tensor_method(_others_only(_name), name=_name)
for _name, _layout in _SPARSE_ONLY.items():
    tensor_method(_expectation(_name, _layout), name=_name)
tensor_method(_dequantize, name="dequantize")
for _name in (
    "_python_dispatch", "_has_symbolic_sizes_strides", "is_sparse", "is_sparse_csr", "is_quantized", "is_mkldnn", "is_nested", "is_vulkan", "is_mtia", "is_ipu",
    "is_maia",
):  # fmt: skip
    tensor_attribute(_name, False, missing=True)


def refused_functions(present):
    """Functions of the package that only refuse, by name: those of _FUNCTIONS that are not among the names `present`, and what PyTorch has removed."""
    refused = {name: _refusal(name, what) for what, names in _FUNCTIONS.items() for name in names if name not in present}
    return refused | {name: _removal(name, instead) for name, instead in _REMOVED.items()}
