"""Pooling functions that choose between forms; the plain ones are the operators themselves."""

import cresset
from cresset._C import _nn

from ._common import handle, ntuple, overrides1

__all__ = [
    "max_pool1d", "max_pool2d", "max_pool3d", "max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices",
    "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d", "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d_with_indices", "adaptive_avg_pool2d", "adaptive_avg_pool3d",
    "lp_pool1d", "lp_pool2d", "lp_pool3d",
]  # fmt: skip


def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """Largest value in each window of (N, C, L) or (C, L); `return_indices` adds where it was."""
    if return_indices:
        return max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    if overrides1(input):
        return handle(
            max_pool1d, (input,), input, kernel_size, stride=stride, padding=padding, dilation=dilation, ceil_mode=ceil_mode,
            return_indices=return_indices,
        )  # fmt: skip
    return cresset.max_pool1d(input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode)


def max_pool1d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """(largest values, their indices) of the windows of (N, C, L) or (C, L)."""
    if overrides1(input):
        return handle(
            max_pool1d_with_indices, (input,), input, kernel_size, stride=stride, padding=padding, dilation=dilation,
            ceil_mode=ceil_mode, return_indices=return_indices,
        )  # fmt: skip
    return cresset.max_pool1d_with_indices(
        input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode
    )


def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """Largest value in each window of (N, C, H, W) or (C, H, W); `return_indices` adds where it was."""
    if return_indices:
        return max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    if overrides1(input):
        return handle(
            max_pool2d, (input,), input, kernel_size, stride=stride, padding=padding, dilation=dilation, ceil_mode=ceil_mode,
            return_indices=return_indices,
        )  # fmt: skip
    return cresset.max_pool2d(input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode)


def max_pool2d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """(largest values, their flat indices in the plane) of the windows of (N, C, H, W) or (C, H, W)."""
    if overrides1(input):
        return handle(
            max_pool2d_with_indices, (input,), input, kernel_size, stride=stride, padding=padding, dilation=dilation,
            ceil_mode=ceil_mode, return_indices=return_indices,
        )  # fmt: skip
    return _nn.max_pool2d_with_indices(
        input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode
    )


def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """Largest value in each window of (N, C, D, H, W) or (C, D, H, W); `return_indices` adds where it was."""
    if return_indices:
        return max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    if overrides1(input):
        return handle(
            max_pool3d, (input,), input, kernel_size, stride=stride, padding=padding, dilation=dilation, ceil_mode=ceil_mode,
            return_indices=return_indices,
        )  # fmt: skip
    return cresset.max_pool3d(input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode)


def max_pool3d_with_indices(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False
):
    """(largest values, their flat indices in the volume) of the windows of (N, C, D, H, W) or (C, D, H, W)."""
    if overrides1(input):
        return handle(
            max_pool3d_with_indices, (input,), input, kernel_size, stride=stride, padding=padding, dilation=dilation,
            ceil_mode=ceil_mode, return_indices=return_indices,
        )  # fmt: skip
    return _nn.max_pool3d_with_indices(
        input, kernel_size, () if stride is None else stride, padding, dilation, ceil_mode
    )


def _output_size(output_size, input, n):
    # None keeps the input's size of that dimension.
    sizes = input.shape[-n:]
    if isinstance(output_size, int):
        return (output_size,) * n
    output_size = ntuple(output_size, n)
    if None not in output_size:
        return output_size
    return tuple(have if want is None else want for want, have in zip(output_size, sizes))


def adaptive_max_pool1d_with_indices(input, output_size, return_indices=False):
    """(largest values, indices) of windows chosen so that the result has length `output_size`."""
    if overrides1(input):
        return handle(adaptive_max_pool1d_with_indices, (input,), input, output_size, return_indices=return_indices)
    return cresset.adaptive_max_pool1d(input, output_size)


def adaptive_max_pool1d(input, output_size, return_indices=False):
    """Largest values of windows chosen so that the result has length `output_size`."""
    result = adaptive_max_pool1d_with_indices(input, output_size)
    return result if return_indices else result[0]


def adaptive_max_pool2d_with_indices(input, output_size, return_indices=False):
    """(largest values, indices) of windows chosen so that the result has the plane size `output_size`."""
    if overrides1(input):
        return handle(adaptive_max_pool2d_with_indices, (input,), input, output_size, return_indices=return_indices)
    return _nn.adaptive_max_pool2d(input, _output_size(output_size, input, 2))


def adaptive_max_pool2d(input, output_size, return_indices=False):
    """Largest values of windows chosen so that the result has the plane size `output_size`."""
    result = adaptive_max_pool2d_with_indices(input, output_size)
    return result if return_indices else result[0]


def adaptive_max_pool3d_with_indices(input, output_size, return_indices=False):
    """(largest values, indices) of windows chosen so that the result has the volume size `output_size`."""
    if overrides1(input):
        return handle(adaptive_max_pool3d_with_indices, (input,), input, output_size, return_indices=return_indices)
    return _nn.adaptive_max_pool3d(input, _output_size(output_size, input, 3))


def adaptive_max_pool3d(input, output_size, return_indices=False):
    """Largest values of windows chosen so that the result has the volume size `output_size`."""
    result = adaptive_max_pool3d_with_indices(input, output_size)
    return result if return_indices else result[0]


def adaptive_avg_pool2d(input, output_size):
    """Means over windows chosen so that the result has the plane size `output_size`; None keeps a size."""
    if overrides1(input):
        return handle(adaptive_avg_pool2d, (input,), input, output_size)
    return _nn.adaptive_avg_pool2d(input, _output_size(output_size, input, 2))


def adaptive_avg_pool3d(input, output_size):
    """Means over windows chosen so that the result has the volume size `output_size`; None keeps a size."""
    if overrides1(input):
        return handle(adaptive_avg_pool3d, (input,), input, output_size)
    return _nn.adaptive_avg_pool3d(input, _output_size(output_size, input, 3))


def _lp(pooled_mean, norm_type, window):
    # The pool gave the mean of x ** p; the sign keeps the root real when rounding made it negative.
    return (pooled_mean.sign() * pooled_mean.abs().relu() * window).pow(1.0 / norm_type)


def lp_pool1d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """(sum of x ** p over each window) ** (1 / p)."""
    if overrides1(input):
        return handle(lp_pool1d, (input,), input, norm_type, kernel_size, stride=stride, ceil_mode=ceil_mode)
    powers = input.pow(norm_type)
    mean = cresset.avg_pool1d(powers, kernel_size, () if stride is None else stride, 0, ceil_mode)
    return _lp(mean, norm_type, ntuple(kernel_size, 1)[0])


def lp_pool2d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """(sum of x ** p over each window of a plane) ** (1 / p)."""
    if overrides1(input):
        return handle(lp_pool2d, (input,), input, norm_type, kernel_size, stride=stride, ceil_mode=ceil_mode)
    height, width = ntuple(kernel_size, 2)
    mean = _nn.avg_pool2d(input.pow(norm_type), kernel_size, () if stride is None else stride, 0, ceil_mode)
    return _lp(mean, norm_type, height * width)


def lp_pool3d(input, norm_type, kernel_size, stride=None, ceil_mode=False):
    """(sum of x ** p over each window of a volume) ** (1 / p)."""
    if overrides1(input):
        return handle(lp_pool3d, (input,), input, norm_type, kernel_size, stride=stride, ceil_mode=ceil_mode)
    depth, height, width = ntuple(kernel_size, 3)
    mean = _nn.avg_pool3d(input.pow(norm_type), kernel_size, () if stride is None else stride, 0, ceil_mode)
    return _lp(mean, norm_type, depth * height * width)
