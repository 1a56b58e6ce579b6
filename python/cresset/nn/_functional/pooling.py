"""Pooling functions that choose between forms; the plain ones are the operators themselves."""

import cresset
from cresset._overridable import overridable
from cresset._C import _nn

from ._common import handle, ntuple, overrides, overrides1

__all__ = [
    "max_pool1d", "max_pool2d", "max_pool3d", "max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices",
    "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d", "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d_with_indices", "adaptive_avg_pool2d", "adaptive_avg_pool3d",
    "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d", "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices", "fractional_max_pool3d", "fractional_max_pool3d_with_indices",
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
    if isinstance(output_size, int):
        return (output_size,) * n
    output_size = ntuple(output_size, n)
    if input.dim() <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    sizes = input.shape[-len(output_size) :]
    if None not in output_size:
        return output_size
    return tuple(have if want is None else want for want, have in zip(output_size, sizes))


def adaptive_max_pool1d_with_indices(input, output_size, return_indices=False):
    """(largest values, indices) of windows chosen so that the result has length `output_size`."""
    if overrides1(input):
        return handle(adaptive_max_pool1d_with_indices, (input,), input, output_size, return_indices=return_indices)
    return cresset.adaptive_max_pool1d(input, output_size)


@overridable
def adaptive_max_pool1d(input, output_size, return_indices=False):
    """Largest values of windows chosen so that the result has length `output_size`."""
    result = adaptive_max_pool1d_with_indices(input, output_size)
    return result if return_indices else result[0]


def adaptive_max_pool2d_with_indices(input, output_size, return_indices=False):
    """(largest values, indices) of windows chosen so that the result has the plane size `output_size`."""
    if overrides1(input):
        return handle(adaptive_max_pool2d_with_indices, (input,), input, output_size, return_indices=return_indices)
    return _nn.adaptive_max_pool2d(input, _output_size(output_size, input, 2))


@overridable
def adaptive_max_pool2d(input, output_size, return_indices=False):
    """Largest values of windows chosen so that the result has the plane size `output_size`."""
    result = adaptive_max_pool2d_with_indices(input, output_size)
    return result if return_indices else result[0]


def adaptive_max_pool3d_with_indices(input, output_size, return_indices=False):
    """(largest values, indices) of windows chosen so that the result has the volume size `output_size`."""
    if overrides1(input):
        return handle(adaptive_max_pool3d_with_indices, (input,), input, output_size, return_indices=return_indices)
    return _nn.adaptive_max_pool3d(input, _output_size(output_size, input, 3))


@overridable
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


def _unpool_output_size(input, kernel_size, stride, padding, output_size):
    """The size that unpooling restores: the given one when pooling of it could give `input`, else the smallest."""
    n = len(kernel_size)
    smallest = [
        (have - 1) * s + k - 2 * p for have, k, s, p in zip(input.shape[-n:], kernel_size, stride, padding)
    ]
    if output_size is None:
        return smallest
    if len(output_size) == n + 2:
        output_size = output_size[2:]
    if len(output_size) != n:
        raise ValueError(
            f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of '{len(output_size)}'"
        )
    for d, (size, want, s) in enumerate(zip(smallest, output_size, stride)):
        if not size - s < want < size + s:
            raise ValueError(
                f'invalid output_size "{list(output_size)}" (dim {d} must be between {size - s} and {size + s})'
            )
    return list(output_size)


def _unpool(function, n, input, indices, kernel_size, stride, padding, output_size):
    if overrides((input, indices)):
        return handle(
            function, (input, indices), input, indices, kernel_size, stride=stride, padding=padding, output_size=output_size
        )
    kernel_size = ntuple(kernel_size, n)
    stride = kernel_size if stride is None else ntuple(stride, n)
    padding = ntuple(padding, n)
    if input.dim() not in (n + 1, n + 2):
        raise RuntimeError(f"max_unpool{n}d: input of {n + 1} or {n + 2} dimensions was required; got {tuple(input.shape)}.")
    size = _unpool_output_size(input, kernel_size, stride, padding, output_size)
    if n == 1:
        return _nn.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [*size, 1]).squeeze(-1)
    if n == 2:
        return _nn.max_unpool2d(input, indices, size)
    return _nn.max_unpool3d(input, indices, size, stride, padding)


@overridable
def max_unpool1d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Zeros with the values of (N, C, L) or (C, L) at `indices`: what max_pool1d forgot."""
    return _unpool(max_unpool1d, 1, input, indices, kernel_size, stride, padding, output_size)


@overridable
def max_unpool2d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Zeros with the values of (N, C, H, W) or (C, H, W) at `indices`: what max_pool2d forgot."""
    return _unpool(max_unpool2d, 2, input, indices, kernel_size, stride, padding, output_size)


@overridable
def max_unpool3d(input, indices, kernel_size, stride=None, padding=0, output_size=None):
    """Zeros with the values of (N, C, D, H, W) or (C, D, H, W) at `indices`: what max_pool3d forgot."""
    return _unpool(max_unpool3d, 3, input, indices, kernel_size, stride, padding, output_size)


def _fractional(function, n, operator, input, kernel_size, output_size, output_ratio, return_indices, samples):
    if overrides((input, samples)):
        return handle(
            function, (input, samples), input, kernel_size, output_size=output_size, output_ratio=output_ratio,
            return_indices=return_indices, _random_samples=samples,
        )  # fmt: skip
    if output_size is None and output_ratio is None:
        raise ValueError(f"fractional_max_pool{n}d requires specifying either an output_size or an output_ratio")
    if output_size is None:
        if not isinstance(output_ratio, (tuple, list)):
            output_ratio = (output_ratio,) * n
        if len(output_ratio) > n:
            raise ValueError(f"fractional_max_pool{n}d requires output_ratio to either be a single Int or tuple of Ints.")
        output_size = [int(size * ratio) for size, ratio in zip(input.shape[-n:], output_ratio)]
    if samples is None:
        batch = 1 if input.dim() == n + 1 else input.size(0)
        samples = cresset.rand(batch, input.size(-n - 1), n, dtype=input.dtype, device=input.device)
    return operator(input, ntuple(kernel_size, n), ntuple(output_size, n), samples)


@overridable
def fractional_max_pool2d_with_indices(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """(largest values, their indices) of windows of (N, C, H, W) or (C, H, W) whose distances vary at random."""
    return _fractional(
        fractional_max_pool2d_with_indices, 2, _nn.fractional_max_pool2d, input, kernel_size, output_size, output_ratio,
        return_indices, _random_samples,
    )  # fmt: skip


@overridable
def fractional_max_pool2d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """Largest values of randomly spaced windows, to `output_size` or to `output_ratio` of the input's size."""
    result = fractional_max_pool2d_with_indices(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )
    return result if return_indices else result[0]


@overridable
def fractional_max_pool3d_with_indices(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """(largest values, their indices) of windows of (N, C, D, H, W) or (C, D, H, W) whose distances vary at random."""
    return _fractional(
        fractional_max_pool3d_with_indices, 3, _nn.fractional_max_pool3d, input, kernel_size, output_size, output_ratio,
        return_indices, _random_samples,
    )  # fmt: skip


@overridable
def fractional_max_pool3d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """Largest values of randomly spaced windows, to `output_size` or to `output_ratio` of the input's size."""
    result = fractional_max_pool3d_with_indices(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )
    return result if return_indices else result[0]
