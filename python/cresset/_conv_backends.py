"""`_C._select_conv_backend`: which of PyTorch's ways to compute a convolution one is. All are computed by Cresset's kernels; the answer tells kinds of convolutions apart."""

import enum

from . import _C, backends

__all__ = ["ConvBackend", "select"]

ConvBackend = enum.Enum(
    "_ConvBackend",
    "CudaDepthwise2d CudaDepthwise3d Cudnn CudnnTranspose Empty Miopen MiopenDepthwise MiopenTranspose Mkldnn MkldnnTranspose MkldnnEmpty NnpackSpatial Overrideable "
    "Slow2d Slow3d SlowDilated2d SlowDilated3d SlowTranspose2d SlowTranspose3d Winograd3x3Depthwise Xnnpack2d Mps MpsTranspose",
    start=0,
    module=__name__,
)


def select(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, bias_sizes=None):
    """Empty or MkldnnEmpty without elements; Mkldnn or MkldnnTranspose in the layout `_mkldnn`, and where backends.mkldnn.enabled for float32, bfloat16 and float16
    of the CPU; else the plain way for two or three dimensions (one counts as two), with steps between the weights' elements (Dilated), or transposed."""
    opaque = input.layout is _C._mkldnn
    if not input.numel() or not weight.numel():
        return ConvBackend.MkldnnEmpty if opaque else ConvBackend.Empty
    if opaque or (backends.mkldnn.enabled and input.device.type == "cpu" and input.dtype in (_C.float32, _C.bfloat16, _C.float16)):
        return ConvBackend.MkldnnTranspose if transposed else ConvBackend.Mkldnn
    kind = "Transpose" if transposed else "Dilated" if any(d != 1 for d in dilation) else ""
    return ConvBackend[f"Slow{kind}{max(input.dim() - 2, 2)}d"]
