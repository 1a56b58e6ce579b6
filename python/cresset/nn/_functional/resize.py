"""Resizing images, and sampling them at the positions of a grid."""

import math
import numbers
import warnings

from typing import List, Optional

import cresset
from cresset import Tensor
from cresset._C import _nn
from cresset._overridable import overridable
from cresset._scripting import is_scripting

from ._common import Floats1, Ints1

__all__ = ["interpolate", "upsample", "upsample_nearest", "upsample_bilinear", "grid_sample", "affine_grid"]

def _wrong_count(what: str, name: str, input: Tensor, given: str):
    raise ValueError(
        f"Input and {what} must have the same number of spatial dimensions, but got input with spatial dimensions of "
        f"{list(input.shape[2:])} and {given}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and {name} in "
        f"({name[0]}1, {name[0]}2, ...,{name[0]}K) format."
    )


def _sizes(size: Ints1, n: int) -> List[int]:
    """The sizes as a list; one number stands for n of them, and in scripts is a list of one."""
    if not isinstance(size, (list, tuple)):
        return [size] * n
    return list(size) * n if is_scripting() and len(size) == 1 else list(size)


def _factors(factor: Floats1, n: int) -> List[float]:
    if not isinstance(factor, (list, tuple)):
        return [float(factor)] * n
    factors = [float(f) for f in factor]
    return factors * n if is_scripting() and len(factor) == 1 else factors


def _check_factors(factor):
    for f in factor if isinstance(factor, (list, tuple)) else [factor]:
        if not isinstance(f, (numbers.Real, cresset.SymInt, cresset.SymFloat)):
            raise TypeError(f"interpolate(): argument 'scale_factor' must be float or tuple of floats, but found element of type {type(f).__name__}")


def _nearest(input: Tensor, size: Optional[List[int]], scales: Optional[List[float]]) -> Tensor:
    if input.dim() == 3:
        return _nn.upsample_nearest1d(input, size, scales)
    return _nn.upsample_nearest2d(input, size, scales) if input.dim() == 4 else _nn.upsample_nearest3d(input, size, scales)


def _nearest_exact(input: Tensor, size: Optional[List[int]], scales: Optional[List[float]]) -> Tensor:
    if input.dim() == 3:
        return _nn._upsample_nearest_exact1d(input, size, scales)
    if input.dim() == 4:
        return _nn._upsample_nearest_exact2d(input, size, scales)
    return _nn._upsample_nearest_exact3d(input, size, scales)


def _area(input: Tensor, size: List[int]) -> Tensor:
    if input.dim() == 3:
        return cresset.adaptive_avg_pool1d(input, size)
    return _nn.adaptive_avg_pool2d(input, size) if input.dim() == 4 else _nn.adaptive_avg_pool3d(input, size)


def _weighted(
    input: Tensor, size: Optional[List[int]], scales: Optional[List[float]], mode: str, align_corners: bool
) -> Tensor:
    if mode == "linear" and input.dim() == 3:
        return _nn.upsample_linear1d(input, size, align_corners, scales)
    if mode == "bilinear" and input.dim() == 4:
        return _nn.upsample_bilinear2d(input, size, align_corners, scales)
    if mode == "trilinear" and input.dim() == 5:
        return _nn.upsample_trilinear3d(input, size, align_corners, scales)
    if mode == "bicubic" and input.dim() == 4:
        return _nn.upsample_bicubic2d(input, size, align_corners, scales)
    if input.dim() in (3, 4, 5):
        for name, needed in zip(["linear", "bilinear", "trilinear"], [3, 4, 5]):
            if mode == name:
                raise NotImplementedError(f"Got {input.dim()}D input, but {mode} mode needs {needed}D input")
    raise NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for the modes: nearest | "
        f"linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got {mode})"
    )


def _filtered(
    input: Tensor, size: Optional[List[int]], scales: Optional[List[float]], mode: str, align_corners: bool
) -> Tensor:
    if mode == "bilinear":
        return _nn._upsample_bilinear2d_aa(input, size, align_corners, scales)
    if mode == "bicubic":
        return _nn._upsample_bicubic2d_aa(input, size, align_corners, scales)
    return _nn._upsample_lanczos2d_aa(input, size, align_corners, scales)


@overridable
def interpolate(
    input: Tensor, size: Optional[Ints1] = None, scale_factor: Optional[Floats1] = None, mode: str = "nearest",
    align_corners: Optional[bool] = None, recompute_scale_factor: Optional[bool] = None, antialias: bool = False,
) -> Tensor:  # fmt: skip
    """Resize the spatial dimensions of (N, C, ...) to `size` or by `scale_factor`.

    Modes: "nearest", "nearest-exact", "area", "linear" (3-D), "bilinear", "bicubic" and "lanczos" (4-D), "trilinear" (5-D).
    `antialias` (bilinear, bicubic and always lanczos) widens the filter when shrinking. With `recompute_scale_factor` the
    positions follow from the sizes and not from the given factor. ValueError for arguments that do not fit together.
    """
    if align_corners is not None and mode in ("nearest", "area", "nearest-exact"):
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    align = False if align_corners is None else align_corners
    scales: Optional[List[float]] = None
    spatial = max(input.dim() - 2, 0)
    if size is not None:
        if scale_factor is not None:
            raise ValueError("only one of size or scale_factor should be defined")
        given = f"{size}"
        size = _sizes(size, spatial)
        if len(size) != spatial:
            _wrong_count("output", "output size", input, f"output size of {given}")
        if recompute_scale_factor is not None and recompute_scale_factor:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    elif scale_factor is not None:
        factors = f"{scale_factor}"
        scales = _factors(scale_factor, spatial)
        if len(scales) != spatial:
            _wrong_count("scale_factor", "scale_factor", input, f"scale_factor of shape {factors}")
        if mode == "area" or (recompute_scale_factor is not None and recompute_scale_factor):
            size = [int(math.floor(float(n) * s)) for n, s in zip(input.shape[2:], scales)]
            scales = None
        elif not is_scripting():
            _check_factors(scale_factor)
    else:
        raise ValueError("either size or scale_factor should be defined")
    if antialias and not (mode in ("bilinear", "bicubic", "lanczos") and input.dim() == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    if mode == "lanczos" and not antialias:
        raise ValueError("Lanczos mode requires antialias=True")
    if antialias:
        return _filtered(input, size, scales, mode, align)
    if mode in ("nearest", "nearest-exact", "area") and input.dim() in (3, 4, 5):
        if mode == "nearest":
            return _nearest(input, size, scales)
        if mode == "nearest-exact":
            return _nearest_exact(input, size, scales)
        assert size is not None
        return _area(input, size)
    return _weighted(input, size, scales, mode, align)


def upsample(
    input: Tensor, size: Optional[Ints1] = None, scale_factor: Optional[Floats1] = None, mode: str = "nearest",
    align_corners: Optional[bool] = None,
) -> Tensor:  # fmt: skip
    """Older name of `interpolate`."""
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Optional[Ints1] = None, scale_factor: Optional[Floats1] = None) -> Tensor:
    """Older name of `interpolate` with mode "nearest"."""
    warnings.warn("`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input: Tensor, size: Optional[Ints1] = None, scale_factor: Optional[Floats1] = None) -> Tensor:
    """Older name of `interpolate` with mode "bilinear" and aligned corners."""
    warnings.warn("`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


def _aligned(align_corners: Optional[bool]) -> bool:
    if align_corners is not None:
        return align_corners
    warnings.warn(
        "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
        "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details.",
        stacklevel=3,
    )
    return False


@overridable
def grid_sample(
    input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: Optional[bool] = None
) -> Tensor:
    """Samples of (N, C, [D,] H, W) at the positions `grid` (N, ..., 2 or 3), x first, -1 and 1 being the borders.

    Modes "bilinear", "nearest", "bicubic" (4-D only); outside, `padding_mode` gives "zeros", the "border" or its "reflection".
    With `align_corners` the borders are the centres of the outermost pixels, otherwise their outer edges.
    """
    modes = {"bilinear": 0, "nearest": 1, "bicubic": 2}
    paddings = {"zeros": 0, "border": 1, "reflection": 2}
    if mode not in modes:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in paddings:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    aligned = _aligned(align_corners)
    return cresset.grid_sampler(input, grid, modes[mode], paddings[padding_mode], aligned)


@overridable
def affine_grid(theta: Tensor, size: List[int], align_corners: Optional[bool] = None) -> Tensor:
    """The grid for `grid_sample` that the matrices `theta` (N, n, n + 1) make of an image of `size` (N, C, ...)."""
    aligned = _aligned(align_corners)
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    n = len(size) - 2
    if n not in (2, 3):
        raise NotImplementedError(
            f"affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size {size}."
        )
    if theta.dim() != 3 or list(theta.shape[-2:]) != [n, n + 1]:
        raise ValueError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {size}. Got {theta.shape}."
        )
    if min(list(size)) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return cresset.affine_grid_generator(theta, size, aligned)
