"""Linear operators whose weights have blocks of zeros: `torch.ops.sparse`. Their numbers are those of the dense operators, and so are the kernels."""

from ...backends._quantized import require_engine
from .._tensor import PerTensor, QuantizedTensor
from . import linear
from ._register import operator

BLOCK = [1, 4]  # the blocks that there are: four elements of a row


@operator("qlinear_prepack(Tensor W, Tensor? B, int out_features_block_size, int in_features_block_size) -> LINEAR W_prepack", namespace="sparse")
def qlinear_prepack(W, B, out_features_block_size, in_features_block_size):
    """The weight (qint8, zero points of 0) and bias, packed."""
    require_engine("sparse::qlinear_prepack")
    if not isinstance(W, QuantizedTensor):
        raise NotImplementedError("Could not run 'sparse::qlinear_prepack' with arguments from the 'CPU' backend: a quantized weight was required.")
    if W.dim() != 2:
        raise RuntimeError("The weight tensor for ao::sparse::qlinear_prepack (fbgemm) should be 2-dimensional.")
    if [out_features_block_size, in_features_block_size] != BLOCK:
        raise RuntimeError(f"The out and in features block sizes for ao::sparse::qlinear_prepack (fbgemm) should be 1 and 4 respectively (got {out_features_block_size} and {in_features_block_size})")
    q = W._quantizer
    if (q.zero_point if isinstance(q, PerTensor) else q.zero_points.any()) != 0:
        raise RuntimeError("zero point(s) should be 0 for the weight tensor of ao::sparse::qlinear op")
    if B is not None and (B.dim() != 1 or B.numel() != W.shape[0]):
        raise RuntimeError(f"bias should have N elements: {W.shape[0]}")
    return linear.linear_prepack(W, B)


@operator("qlinear_unpack(LINEAR W_prepack) -> (Tensor W_origin, Tensor? B_origin, int[] block_pattern)", namespace="sparse")
def qlinear_unpack(W_prepack):
    """What was packed."""
    weight, bias = W_prepack.unpack()
    return weight, bias, list(BLOCK)


def _static(name, dense):
    def run(X, W_prepack, Y_scale_i, Y_zero_point_i):
        if not isinstance(X, QuantizedTensor):
            raise NotImplementedError(f"Could not run 'sparse::{name}' with arguments from the 'CPU' backend: a quantized input was required.")
        if X.dim() < 2:
            raise RuntimeError("The dimension of input tensor should be larger than or equal to 2")
        if X.shape[-1] != W_prepack.unpack()[0].shape[1]:
            raise RuntimeError(f"The number of columns in the packW should be equal to K: {X.shape[-1]}")
        return dense(X, W_prepack, Y_scale_i, Y_zero_point_i)

    run.__name__ = name
    return run


_TAIL = "(Tensor X, LINEAR W_prepack, float Y_scale_i, int Y_zero_point_i) -> Tensor Y"
qlinear = operator("qlinear" + _TAIL, namespace="sparse")(_static("qlinear", linear.linear))
qlinear_relu = operator("qlinear_relu" + _TAIL, namespace="sparse")(_static("qlinear_relu", linear.linear_relu))


@operator("qlinear_dynamic(Tensor X, LINEAR W_prepack) -> Tensor Y", namespace="sparse")
def qlinear_dynamic(X, W_prepack):
    """qlinear on a real input, which is quantized by its own range."""
    return linear.linear_dynamic(X, W_prepack)


@operator("qlinear_relu_dynamic(Tensor X, LINEAR W_prepack) -> Tensor Y", namespace="sparse")
def qlinear_relu_dynamic(X, W_prepack):
    """qlinear_dynamic, then relu."""
    return linear.linear_dynamic(X, W_prepack).relu()
