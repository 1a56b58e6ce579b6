"""Pooling layers."""

from typing import List, Optional

from cresset import Tensor
from cresset._scripting import is_scripting
from cresset.nn import functional as F
from cresset.nn._functional._common import ntuple
from cresset.nn._functional.pooling import kept_sizes

from ._by_name import ByName
from .module import Module

__all__ = [
    "MaxPool1d", "MaxPool2d", "MaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "LPPool1d", "LPPool2d", "LPPool3d",
    "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d",
    "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d", "FractionalMaxPool2d", "FractionalMaxPool3d",
]  # fmt: skip


class _MaxPoolNd(Module):
    __constants__ = ["return_indices"]

    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor):
        return self._function(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )

    def extra_repr(self):
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPoolNd):
    """Largest value of each window of (N, C, L) or (C, L)."""

    _function = ByName("max_pool1d")


class MaxPool2d(_MaxPoolNd):
    """Largest value of each window of (N, C, H, W) or (C, H, W)."""

    _function = ByName("max_pool2d")


class MaxPool3d(_MaxPoolNd):
    """Largest value of each window of (N, C, D, H, W) or (C, D, H, W)."""

    _function = ByName("max_pool3d")


class _AvgPoolNd(Module):
    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """Mean of each window of (N, C, L) or (C, L)."""

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
        super().__init__()
        self.kernel_size = ntuple(kernel_size, 1)
        self.stride = self.kernel_size if stride is None else ntuple(stride, 1)
        self.padding = ntuple(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor):
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class _AvgPool23d(_AvgPoolNd):
    def __init__(
        self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor):
        return self._function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )


class AvgPool2d(_AvgPool23d):
    """Mean of each window of (N, C, H, W) or (C, H, W)."""

    _function = ByName("avg_pool2d")


class AvgPool3d(_AvgPool23d):
    """Mean of each window of (N, C, D, H, W) or (C, D, H, W)."""

    _function = ByName("avg_pool3d")


class _LPPoolNd(Module):
    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor):
        return self._function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self):
        return f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, ceil_mode={self.ceil_mode}"


class LPPool1d(_LPPoolNd):
    """p-norm of each window of (N, C, L) or (C, L)."""

    _function = ByName("lp_pool1d")


class LPPool2d(_LPPoolNd):
    """p-norm of each window of (N, C, H, W) or (C, H, W)."""

    _function = ByName("lp_pool2d")


class LPPool3d(_LPPoolNd):
    """p-norm of each window of (N, C, D, H, W) or (C, D, H, W)."""

    _function = ByName("lp_pool3d")


class _AdaptiveMaxPoolNd(Module):
    __constants__ = ["return_indices"]

    def __init__(self, output_size, return_indices=False):
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor):
        if is_scripting() and isinstance(self.output_size, tuple):  # None is no int there
            return self._function(input, kept_sizes(self.output_size, input), self.return_indices)
        else:
            return self._function(input, self.output_size, self.return_indices)

    def extra_repr(self):
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Max pooling to a given length."""

    _function = ByName("adaptive_max_pool1d")


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Max pooling to a given plane size; None keeps a size."""

    _function = ByName("adaptive_max_pool2d")


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Max pooling to a given volume size; None keeps a size."""

    _function = ByName("adaptive_max_pool3d")


class _AdaptiveAvgPoolNd(Module):
    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor):
        if is_scripting() and isinstance(self.output_size, tuple):  # None is no int there
            return self._function(input, kept_sizes(self.output_size, input))
        else:
            return self._function(input, self.output_size)

    def extra_repr(self):
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Mean pooling to a given length."""

    _function = ByName("adaptive_avg_pool1d")


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Mean pooling to a given plane size; None keeps a size."""

    _function = ByName("adaptive_avg_pool2d")


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Mean pooling to a given volume size; None keeps a size."""

    _function = ByName("adaptive_avg_pool3d")


class _MaxUnpoolNd(Module):
    _ndim = 0

    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        self.kernel_size = ntuple(kernel_size, self._ndim)
        self.stride = self.kernel_size if stride is None else ntuple(stride, self._ndim)
        self.padding = ntuple(padding, self._ndim)

    def forward(self, input: Tensor, indices: Tensor, output_size: Optional[List[int]] = None):
        return self._function(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpoolNd):
    """Values of (N, C, L) or (C, L) back at the indices that MaxPool1d returned; zeros elsewhere."""

    _ndim, _function = 1, ByName("max_unpool1d")


class MaxUnpool2d(_MaxUnpoolNd):
    """Values of (N, C, H, W) or (C, H, W) back at the indices that MaxPool2d returned; zeros elsewhere."""

    _ndim, _function = 2, ByName("max_unpool2d")


class MaxUnpool3d(_MaxUnpoolNd):
    """Values of (N, C, D, H, W) or (C, D, H, W) back at the indices that MaxPool3d returned; zeros elsewhere."""

    _ndim, _function = 3, ByName("max_unpool3d")


class _FractionalMaxPoolNd(Module):
    __constants__ = ["return_indices"]
    _ndim = 0

    def __init__(self, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        super().__init__()
        name, n = type(self).__name__, self._ndim
        if (isinstance(kernel_size, int) and kernel_size <= 0) or (
            isinstance(kernel_size, (tuple, list)) and not all(k > 0 for k in kernel_size)
        ):
            raise ValueError(f"kernel_size must greater than zero, but got {kernel_size}")
        self.kernel_size = ntuple(kernel_size, n)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = ntuple(output_size, n) if output_size is not None else None
        self.output_ratio = ntuple(output_ratio, n) if output_ratio is not None else None
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor):
        return self._function(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """Largest values of randomly spaced windows of (N, C, H, W) or (C, H, W)."""

    _ndim, _function = 2, ByName("fractional_max_pool2d")


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """Largest values of randomly spaced windows of (N, C, D, H, W) or (C, D, H, W)."""

    _ndim, _function = 3, ByName("fractional_max_pool3d")
