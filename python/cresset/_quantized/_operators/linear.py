"""Linear operators: whole numbers from quantized inputs, and real ones from inputs that are quantized as they come, or weights in float16."""

import cresset
from cresset._dtype_info import word_of
from cresset.backends._quantized import require_engine

from .._functions import _saturate_weight_to_fp16
from .._tensor import QuantizedTensor
from . import _integers
from ._register import operator

FLOAT16 = 1  # the packed numbers say that the weight is rounded to float16


def _pack(weight, bias, *numbers):
    return cresset.classes.quantized.LinearPackedParamsBase([weight, bias], list(numbers))


@operator("linear_prepack(Tensor W, Tensor? B=None) -> LINEAR W_prepack")
def linear_prepack(W, B=None):
    """The weight (qint8) and bias of linear operators, packed."""
    require_engine("quantized::linear_prepack")
    if not isinstance(W, QuantizedTensor):
        raise NotImplementedError("Could not run 'quantized::linear_prepack' with arguments from the 'CPU' backend: a quantized weight was required.")
    if W.dim() != 2:
        raise RuntimeError(f"The weight tensor for quantized::linear_prepack (fbgemm) should be 2-dimensional; got {W.dim()} dimensions.")
    if B is not None and (B.dim() != 1 or B.numel() != W.shape[0]):
        raise RuntimeError(f"bias should have N elements: {W.shape[0]}; got the shape {list(B.shape)}.")
    return _pack(_integers.packed_weight(W), None if B is None else B.detach())


@operator("linear_prepack_fp16(Tensor W, Tensor? B=None) -> LINEAR W_prepack")
def linear_prepack_fp16(W, B=None):
    """The weight, rounded to float16, and bias of linear_dynamic_fp16, packed."""
    require_engine("quantized::linear_prepack_fp16")
    return _pack(_saturate_weight_to_fp16(W.detach().float()).half().float(), None if B is None else B.detach(), FLOAT16)


@operator("linear_unpack(LINEAR W_prepack) -> (Tensor W_origin, Tensor? B_origin)", "linear_unpack_fp16(LINEAR W_prepack) -> (Tensor W_origin, Tensor? B_origin)")
def linear_unpack(W_prepack):
    """What was packed."""
    return W_prepack.unpack()


def _sums(x, weight):
    product = _integers.exact(lambda a, b: a @ b.mT, _integers.centred(x), _integers.centred(weight), weight.shape[1])
    return product, x._uniform().scale


def _linear(name, after=None):
    def run(X, W_prepack, Y_scale_i, Y_zero_point_i):
        require_engine(f"quantized::{name}")
        _integers.check_activation(X, name)
        weight, bias = W_prepack.unpack()
        if X.dim() == 0 or X.shape[-1] != weight.shape[1]:
            raise RuntimeError(f"The number of rows in the packB should be equal to K: {X.shape[-1] if X.dim() else 0}; the weight has {weight.shape[1]} columns.")
        sums, scale = _sums(X, weight)
        scales = _integers.weight_scales(weight) * scale
        return _integers.requantized(sums, bias, scales, _integers.check_output(X.dtype, Y_scale_i, Y_zero_point_i), -1, after)

    run.__name__ = name
    return run


_TAIL = "(Tensor X, LINEAR W_prepack, float Y_scale_i, int Y_zero_point_i{}) -> Tensor Y"
linear = operator("linear" + _TAIL.format(""))(_linear("linear"))
linear_relu = operator("linear_relu" + _TAIL.format(""))(_linear("linear_relu", _integers.RELU))
linear_tanh = operator("linear_tanh" + _TAIL.format(""))(_linear("linear_tanh", cresset.tanh))


@operator("linear_leaky_relu" + _TAIL.format(", float negative_slope"))
def linear_leaky_relu(X, W_prepack, Y_scale_i, Y_zero_point_i, negative_slope):
    """linear, then leaky_relu."""
    after = lambda real: cresset.nn.functional.leaky_relu(real, negative_slope)  # noqa: E731
    return _linear("linear_leaky_relu", after)(X, W_prepack, Y_scale_i, Y_zero_point_i)


def dynamic_product(x, weight, bias, reduce_range=True):
    """x weightᵀ + bias for a quantized weight and a real x, which is quantized for it."""
    reduced = reduce_range and cresset.backends.quantized.engine != "qnnpack"  # which takes all of the range, whatever is asked for
    sums, scale = _sums(_integers.dynamic(x.detach().float(), reduced), weight)
    made = sums * (_integers.weight_scales(weight) * scale)
    return made if bias is None else made + bias


@operator("linear_dynamic(Tensor X, LINEAR W_prepack, bool reduce_range=False) -> Tensor Y")
def linear_dynamic(X, W_prepack, reduce_range=False):
    """A linear operator on a real input, which is quantized by its own range."""
    require_engine("quantized::linear_dynamic")
    weight, bias = W_prepack.unpack()
    return dynamic_product(X, weight, bias, reduce_range)


@operator("linear_relu_dynamic(Tensor X, LINEAR W_prepack, bool reduce_range=False) -> Tensor Y")
def linear_relu_dynamic(X, W_prepack, reduce_range=False):
    """linear_dynamic, then relu."""
    return linear_dynamic(X, W_prepack, reduce_range).relu()


@operator("linear_dynamic_fp16(Tensor X, LINEAR W_prepack) -> Tensor Y")
def linear_dynamic_fp16(X, W_prepack):
    """A linear operator with weights of float16 and sums in float32."""
    require_engine("quantized::linear_dynamic_fp16")
    weight, bias = W_prepack.unpack()
    return cresset.nn.functional.linear(X.detach().float(), weight, bias)


@operator("linear_dynamic_fp16_unpacked_weight(Tensor X, Tensor weight, Tensor? bias) -> Tensor Y")
def linear_dynamic_fp16_unpacked_weight(X, weight, bias):
    """linear_dynamic_fp16 of a weight that is packed for this call. RuntimeError for other dtypes than float32, and for a weight that is no matrix."""
    for tensor in (X, weight):
        if tensor.dtype is not cresset.float32:
            raise RuntimeError(f"expected scalar type Float but found {word_of(tensor.dtype)}")
    if weight.dim() != 2:
        raise RuntimeError("The dimension of weight tensor should be equal to 2")
    return linear_dynamic_fp16(X, linear_prepack_fp16(weight, bias))


@operator("linear_relu_dynamic_fp16(Tensor X, LINEAR W_prepack) -> Tensor Y")
def linear_relu_dynamic_fp16(X, W_prepack):
    """linear_dynamic_fp16, then relu."""
    return linear_dynamic_fp16(X, W_prepack).relu()


def any_product(x, packed, reduce_range=True):
    """linear_dynamic or linear_dynamic_fp16, as the weight was packed."""
    return linear_dynamic_fp16(x, packed) if packed.numbers() == [FLOAT16] else linear_dynamic(x, packed, reduce_range)


@operator("linear_with_input_q_dq_qweight_dq_output_fp32(Tensor X, float X_scale, int X_zero_point, LINEAR W_prepack) -> Tensor Y")
def linear_with_input_q_dq_qweight_dq_output_fp32(X, X_scale, X_zero_point, W_prepack):
    """A linear operator on a real input that is quantized by the scale and zero point given; a real result."""
    weight, bias = W_prepack.unpack()
    sums, scale = _sums(cresset.quantize_per_tensor(X, X_scale, X_zero_point, cresset.quint8), weight)
    made = sums * (_integers.weight_scales(weight) * scale)
    return made if bias is None else made + bias


@operator("linear_with_input_q_dq_qweight_dq_relu_output_fp32(Tensor X, float X_scale, int X_zero_point, LINEAR W_prepack) -> Tensor Y")
def linear_with_input_q_dq_qweight_dq_relu_output_fp32(X, X_scale, X_zero_point, W_prepack):
    """The same, then relu."""
    return linear_with_input_q_dq_qweight_dq_output_fp32(X, X_scale, X_zero_point, W_prepack).relu()
