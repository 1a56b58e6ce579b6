"""Pooling functions that choose between forms; the plain ones are the operators themselves."""

from typing import List, Optional, Tuple

import cresset
from cresset import Tensor
from cresset._C import _nn
from cresset._overridable import overridable
from cresset._scripting import is_scripting

from ._common import Floats2, Floats3, Ints1, Ints2, Ints3, chosen_by, number

__all__ = [
    "max_pool1d", "max_pool2d", "max_pool3d", "max_pool1d_with_indices", "max_pool2d_with_indices", "max_pool3d_with_indices",
    "adaptive_max_pool1d", "adaptive_max_pool2d", "adaptive_max_pool3d", "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d_with_indices", "adaptive_max_pool3d_with_indices", "adaptive_avg_pool2d", "adaptive_avg_pool3d",
    "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_unpool1d", "max_unpool2d", "max_unpool3d", "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices", "fractional_max_pool3d", "fractional_max_pool3d_with_indices",
]  # fmt: skip


@overridable
def max_pool1d_with_indices(
    input: Tensor, kernel_size: Ints1, stride: Optional[Ints1] = None, padding: Ints1 = 0, dilation: Ints1 = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    """(largest values, their indices) of the windows of (N, C, L) or (C, L)."""
    return cresset.max_pool1d_with_indices(input, kernel_size, kernel_size if stride is None else stride, padding, dilation, ceil_mode)


def _max_pool1d(
    input: Tensor, kernel_size: Ints1, stride: Optional[Ints1] = None, padding: Ints1 = 0, dilation: Ints1 = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:  # fmt: skip
    return cresset.max_pool1d(input, kernel_size, kernel_size if stride is None else stride, padding, dilation, ceil_mode)


@overridable
@chosen_by("return_indices", max_pool1d_with_indices, _max_pool1d)
def max_pool1d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """Largest value in each window of (N, C, L) or (C, L); `return_indices` adds where it was."""
    if return_indices:
        return max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    return cresset.max_pool1d(input, kernel_size, kernel_size if stride is None else stride, padding, dilation, ceil_mode)


@overridable
def max_pool2d_with_indices(
    input: Tensor, kernel_size: Ints2, stride: Optional[Ints2] = None, padding: Ints2 = 0, dilation: Ints2 = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    """(largest values, their flat indices in the plane) of the windows of (N, C, H, W) or (C, H, W)."""
    return _nn.max_pool2d_with_indices(input, kernel_size, kernel_size if stride is None else stride, padding, dilation, ceil_mode)


def _max_pool2d(
    input: Tensor, kernel_size: Ints2, stride: Optional[Ints2] = None, padding: Ints2 = 0, dilation: Ints2 = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:  # fmt: skip
    return cresset.max_pool2d(input, kernel_size, kernel_size if stride is None else stride, padding, dilation, ceil_mode)


@overridable
@chosen_by("return_indices", max_pool2d_with_indices, _max_pool2d)
def max_pool2d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """Largest value in each window of (N, C, H, W) or (C, H, W); `return_indices` adds where it was."""
    if return_indices:
        return max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    return cresset.max_pool2d(input, kernel_size, kernel_size if stride is None else stride, padding, dilation, ceil_mode)


@overridable
def max_pool3d_with_indices(
    input: Tensor, kernel_size: Ints3, stride: Optional[Ints3] = None, padding: Ints3 = 0, dilation: Ints3 = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    """(largest values, their flat indices in the volume) of the windows of (N, C, D, H, W) or (C, D, H, W)."""
    return _nn.max_pool3d_with_indices(input, kernel_size, kernel_size if stride is None else stride, padding, dilation, ceil_mode)


def _max_pool3d(
    input: Tensor, kernel_size: Ints3, stride: Optional[Ints3] = None, padding: Ints3 = 0, dilation: Ints3 = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:  # fmt: skip
    return cresset.max_pool3d(input, kernel_size, kernel_size if stride is None else stride, padding, dilation, ceil_mode)


@overridable
@chosen_by("return_indices", max_pool3d_with_indices, _max_pool3d)
def max_pool3d(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False):
    """Largest value in each window of (N, C, D, H, W) or (C, D, H, W); `return_indices` adds where it was."""
    if return_indices:
        return max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)
    return cresset.max_pool3d(input, kernel_size, kernel_size if stride is None else stride, padding, dilation, ceil_mode)


def kept_sizes(output_size: List[Optional[int]], input: Tensor) -> List[int]:
    """`output_size` with the input's sizes where it is None."""
    if input.dim() <= len(output_size):
        raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
    sizes: List[int] = []
    for i, size in enumerate(output_size):
        sizes.append(input.size(i - len(output_size)) if size is None else size)
    return sizes


def _output_size(output_size: List[int], input: Tensor, n: int) -> List[int]:
    if is_scripting():  # where None is no int
        return output_size
    else:
        return kept_sizes(output_size, input) if isinstance(output_size, (list, tuple)) else [output_size] * n


@overridable
def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: Ints1, return_indices: bool = False
) -> Tuple[Tensor, Tensor]:
    """(largest values, indices) of windows chosen so that the result has length `output_size`."""
    return cresset.adaptive_max_pool1d(input, output_size)


def _adaptive_max_pool1d(input: Tensor, output_size: Ints1, return_indices: bool = False) -> Tensor:
    return adaptive_max_pool1d_with_indices(input, output_size)[0]


@overridable
@chosen_by("return_indices", adaptive_max_pool1d_with_indices, _adaptive_max_pool1d)
def adaptive_max_pool1d(input, output_size, return_indices=False):
    """Largest values of windows chosen so that the result has length `output_size`."""
    result = adaptive_max_pool1d_with_indices(input, output_size)
    return result if return_indices else result[0]


@overridable
def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: Ints2, return_indices: bool = False
) -> Tuple[Tensor, Tensor]:
    """(largest values, indices) of windows chosen so that the result has the plane size `output_size`."""
    return _nn.adaptive_max_pool2d(input, _output_size(output_size, input, 2))


def _adaptive_max_pool2d(input: Tensor, output_size: Ints2, return_indices: bool = False) -> Tensor:
    return adaptive_max_pool2d_with_indices(input, output_size)[0]


@overridable
@chosen_by("return_indices", adaptive_max_pool2d_with_indices, _adaptive_max_pool2d)
def adaptive_max_pool2d(input, output_size, return_indices=False):
    """Largest values of windows chosen so that the result has the plane size `output_size`."""
    result = adaptive_max_pool2d_with_indices(input, output_size)
    return result if return_indices else result[0]


@overridable
def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: Ints3, return_indices: bool = False
) -> Tuple[Tensor, Tensor]:
    """(largest values, indices) of windows chosen so that the result has the volume size `output_size`."""
    return _nn.adaptive_max_pool3d(input, _output_size(output_size, input, 3))


def _adaptive_max_pool3d(input: Tensor, output_size: Ints3, return_indices: bool = False) -> Tensor:
    return adaptive_max_pool3d_with_indices(input, output_size)[0]


@overridable
@chosen_by("return_indices", adaptive_max_pool3d_with_indices, _adaptive_max_pool3d)
def adaptive_max_pool3d(input, output_size, return_indices=False):
    """Largest values of windows chosen so that the result has the volume size `output_size`."""
    result = adaptive_max_pool3d_with_indices(input, output_size)
    return result if return_indices else result[0]


@overridable
def adaptive_avg_pool2d(input: Tensor, output_size: Ints2) -> Tensor:
    """Means over windows chosen so that the result has the plane size `output_size`; None keeps a size."""
    return _nn.adaptive_avg_pool2d(input, _output_size(output_size, input, 2))


@overridable
def adaptive_avg_pool3d(input: Tensor, output_size: Ints3) -> Tensor:
    """Means over windows chosen so that the result has the volume size `output_size`; None keeps a size."""
    return _nn.adaptive_avg_pool3d(input, _output_size(output_size, input, 3))


def _lp(pooled_mean: Tensor, norm_type: float, window: int) -> Tensor:
    # The pool gave the mean of x ** p; the sign keeps the root real when rounding made it negative.
    return (pooled_mean.sign() * pooled_mean.abs().relu() * window).pow(1.0 / norm_type)


def _elements(kernel_size: List[int], n: int) -> int:
    if not isinstance(kernel_size, (list, tuple)):
        return kernel_size**n
    count = 1
    for size in kernel_size:
        count *= size
    return count


@overridable
def lp_pool1d(
    input: Tensor, norm_type: number, kernel_size: Ints1, stride: Optional[Ints1] = None, ceil_mode: bool = False
) -> Tensor:
    """(sum of x ** p over each window) ** (1 / p)."""
    if stride is None:
        mean = cresset.avg_pool1d(input.pow(norm_type), kernel_size, padding=0, ceil_mode=ceil_mode)
    else:
        mean = cresset.avg_pool1d(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    return _lp(mean, float(norm_type), _elements(kernel_size, 1))


@overridable
def lp_pool2d(
    input: Tensor, norm_type: number, kernel_size: Ints2, stride: Optional[Ints2] = None, ceil_mode: bool = False
) -> Tensor:
    """(sum of x ** p over each window of a plane) ** (1 / p)."""
    if stride is None:
        mean = _nn.avg_pool2d(input.pow(norm_type), kernel_size, padding=0, ceil_mode=ceil_mode)
    else:
        mean = _nn.avg_pool2d(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    return _lp(mean, float(norm_type), _elements(kernel_size, 2))


@overridable
def lp_pool3d(
    input: Tensor, norm_type: number, kernel_size: Ints3, stride: Optional[Ints3] = None, ceil_mode: bool = False
) -> Tensor:
    """(sum of x ** p over each window of a volume) ** (1 / p)."""
    if stride is None:
        mean = _nn.avg_pool3d(input.pow(norm_type), kernel_size, padding=0, ceil_mode=ceil_mode)
    else:
        mean = _nn.avg_pool3d(input.pow(norm_type), kernel_size, stride, 0, ceil_mode)
    return _lp(mean, float(norm_type), _elements(kernel_size, 3))


def _unpool_size(
    input: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], output_size: Optional[List[int]]
) -> List[int]:
    """The size that unpooling restores: the given one when pooling of it could give `input`, else the smallest."""
    n = len(kernel_size)
    if input.dim() not in (n + 1, n + 2):
        raise RuntimeError(f"max_unpool{n}d: input of {n + 1} or {n + 2} dimensions was required; got {list(input.shape)}.")
    smallest: List[int] = []
    for d in range(n):
        smallest.append((input.size(d - n) - 1) * stride[d] + kernel_size[d] - 2 * padding[d])
    if output_size is None:
        return smallest
    wanted = output_size[2:] if len(output_size) == n + 2 else output_size
    if len(wanted) != n:
        raise ValueError(
            f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of '{len(wanted)}'"
        )
    for d in range(n):
        low, high = smallest[d] - stride[d], smallest[d] + stride[d]
        if not low < wanted[d] < high:
            raise ValueError(f'invalid output_size "{wanted}" (dim {d} must be between {low} and {high})')
    return wanted


def _listed(value: List[int], n: int) -> List[int]:
    return list(value) if isinstance(value, (list, tuple)) else [value] * n


@overridable
def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Ints1, stride: Optional[Ints1] = None, padding: Ints1 = 0,
    output_size: Optional[List[int]] = None,
) -> Tensor:  # fmt: skip
    """Zeros with the values of (N, C, L) or (C, L) at `indices`: what max_pool1d forgot."""
    step = kernel_size if stride is None else stride
    size = _unpool_size(input, _listed(kernel_size, 1), _listed(step, 1), _listed(padding, 1), output_size)
    return _nn.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [size[0], 1]).squeeze(-1)


@overridable
def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Ints2, stride: Optional[Ints2] = None, padding: Ints2 = 0,
    output_size: Optional[List[int]] = None,
) -> Tensor:  # fmt: skip
    """Zeros with the values of (N, C, H, W) or (C, H, W) at `indices`: what max_pool2d forgot."""
    step = kernel_size if stride is None else stride
    size = _unpool_size(input, _listed(kernel_size, 2), _listed(step, 2), _listed(padding, 2), output_size)
    return _nn.max_unpool2d(input, indices, size)


@overridable
def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Ints3, stride: Optional[Ints3] = None, padding: Ints3 = 0,
    output_size: Optional[List[int]] = None,
) -> Tensor:  # fmt: skip
    """Zeros with the values of (N, C, D, H, W) or (C, D, H, W) at `indices`: what max_pool3d forgot."""
    step = kernel_size if stride is None else stride
    size = _unpool_size(input, _listed(kernel_size, 3), _listed(step, 3), _listed(padding, 3), output_size)
    return _nn.max_unpool3d(input, indices, size, step, padding)


def _fractional_size(input: Tensor, n: int, size: Optional[List[int]], ratio: Optional[List[float]]) -> List[int]:
    if size is not None:
        return size
    if ratio is None:
        raise ValueError(f"fractional_max_pool{n}d requires specifying either an output_size or an output_ratio")
    if not isinstance(ratio, (list, tuple)):
        ratio = [ratio] * n
    if len(ratio) > n:
        raise ValueError(f"fractional_max_pool{n}d requires output_ratio to either be a single Int or tuple of Ints.")
    return [int(have * part) for have, part in zip(input.shape[-n:], ratio)]


def _fractional_samples(input: Tensor, n: int, samples: Optional[Tensor]) -> Tensor:
    if samples is not None:
        return samples
    batch = 1 if input.dim() == n + 1 else input.size(0)
    return cresset.rand(batch, input.size(-n - 1), n, dtype=input.dtype, device=input.device)


@overridable
def fractional_max_pool2d_with_indices(
    input: Tensor, kernel_size: Ints2, output_size: Optional[Ints2] = None, output_ratio: Optional[Floats2] = None,
    return_indices: bool = False, _random_samples: Optional[Tensor] = None,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    """(largest values, their indices) of windows of (N, C, H, W) or (C, H, W) whose distances vary at random."""
    size = _fractional_size(input, 2, output_size, output_ratio)
    return _nn.fractional_max_pool2d(input, kernel_size, size, _fractional_samples(input, 2, _random_samples))


def _fractional_max_pool2d(
    input: Tensor, kernel_size: Ints2, output_size: Optional[Ints2] = None, output_ratio: Optional[Floats2] = None,
    return_indices: bool = False, _random_samples: Optional[Tensor] = None,
) -> Tensor:  # fmt: skip
    return fractional_max_pool2d_with_indices(input, kernel_size, output_size, output_ratio, return_indices, _random_samples)[0]


@overridable
@chosen_by("return_indices", fractional_max_pool2d_with_indices, _fractional_max_pool2d)
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
    input: Tensor, kernel_size: Ints3, output_size: Optional[Ints3] = None, output_ratio: Optional[Floats3] = None,
    return_indices: bool = False, _random_samples: Optional[Tensor] = None,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    """(largest values, their indices) of windows of (N, C, D, H, W) or (C, D, H, W) whose distances vary at random."""
    size = _fractional_size(input, 3, output_size, output_ratio)
    return _nn.fractional_max_pool3d(input, kernel_size, size, _fractional_samples(input, 3, _random_samples))


def _fractional_max_pool3d(
    input: Tensor, kernel_size: Ints3, output_size: Optional[Ints3] = None, output_ratio: Optional[Floats3] = None,
    return_indices: bool = False, _random_samples: Optional[Tensor] = None,
) -> Tensor:  # fmt: skip
    return fractional_max_pool3d_with_indices(input, kernel_size, output_size, output_ratio, return_indices, _random_samples)[0]


@overridable
@chosen_by("return_indices", fractional_max_pool3d_with_indices, _fractional_max_pool3d)
def fractional_max_pool3d(
    input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None
):
    """Largest values of randomly spaced windows, to `output_size` or to `output_ratio` of the input's size."""
    result = fractional_max_pool3d_with_indices(
        input, kernel_size, output_size, output_ratio, return_indices, _random_samples
    )
    return result if return_indices else result[0]
