"""Resizing images, and sampling them at the positions of a grid."""

import math
import warnings

import cresset
from cresset._C import _nn

from ._common import handle, overrides, overrides1

__all__ = ["interpolate", "upsample", "upsample_nearest", "upsample_bilinear", "grid_sample", "affine_grid"]

# Mode and number of spatial dimensions -> the operator.
_NEAREST = {
    ("nearest", 1): _nn.upsample_nearest1d, ("nearest", 2): _nn.upsample_nearest2d, ("nearest", 3): _nn.upsample_nearest3d,
    ("nearest-exact", 1): _nn._upsample_nearest_exact1d, ("nearest-exact", 2): _nn._upsample_nearest_exact2d,
    ("nearest-exact", 3): _nn._upsample_nearest_exact3d,
}  # fmt: skip
_WEIGHTED = {
    ("linear", 1): _nn.upsample_linear1d, ("bilinear", 2): _nn.upsample_bilinear2d, ("trilinear", 3): _nn.upsample_trilinear3d,
    ("bicubic", 2): _nn.upsample_bicubic2d,
}  # fmt: skip
_FILTERED = {
    "bilinear": _nn._upsample_bilinear2d_aa, "bicubic": _nn._upsample_bicubic2d_aa, "lanczos": _nn._upsample_lanczos2d_aa,
}  # fmt: skip
_MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"


def _per_dimension(name, value, input, kind):
    """`value` as a list with one entry for each spatial dimension."""
    spatial = input.dim() - 2
    if not isinstance(value, (list, tuple)):
        return [value] * spatial
    if len(value) != spatial:
        raise ValueError(
            f"Input and {name} must have the same number of spatial dimensions, but got input with spatial dimensions of "
            f"{list(input.shape[2:])} and {kind} {value}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and {name} in "
            f"({name[0]}1, {name[0]}2, ...,{name[0]}K) format."
        )
    return list(value)


def interpolate(
    input, size=None, scale_factor=None, mode="nearest", align_corners=None, recompute_scale_factor=None, antialias=False
):  # fmt: skip
    """Resize the spatial dimensions of (N, C, ...) to `size` or by `scale_factor`.

    Modes: "nearest", "nearest-exact", "area", "linear" (3-D), "bilinear", "bicubic" and "lanczos" (4-D), "trilinear" (5-D).
    `antialias` (bilinear, bicubic and always lanczos) widens the filter when shrinking. With `recompute_scale_factor` the
    positions follow from the sizes and not from the given factor. ValueError for arguments that do not fit together.
    """
    if overrides1(input):
        return handle(
            interpolate, (input,), input, size=size, scale_factor=scale_factor, mode=mode, align_corners=align_corners,
            recompute_scale_factor=recompute_scale_factor, antialias=antialias,
        )  # fmt: skip
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
            )
    elif align_corners is None:
        align_corners = False
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        size, scales = _per_dimension("output size", size, input, "output size of"), None
    elif scale_factor is not None:
        scales = _per_dimension("scale_factor", scale_factor, input, "scale_factor of shape")
    else:
        raise ValueError("either size or scale_factor should be defined")
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if scales is not None and (recompute_scale_factor or mode == "area"):
        size, scales = [math.floor(n * s) for n, s in zip(input.shape[2:], scales)], None
    if antialias and not (mode in _FILTERED and input.dim() == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    if mode == "lanczos" and not antialias:
        raise ValueError("Lanczos mode requires antialias=True")
    scales = None if scales is None else [float(s) for s in scales]
    spatial = input.dim() - 2
    if mode == "area" and spatial in (1, 2, 3):
        pools = (cresset.adaptive_avg_pool1d, _nn.adaptive_avg_pool2d, _nn.adaptive_avg_pool3d)
        return pools[spatial - 1](input, size)
    if antialias:
        return _FILTERED[mode](input, size, align_corners, scales)
    if (mode, spatial) in _NEAREST:
        return _NEAREST[mode, spatial](input, size, scales)
    if (mode, spatial) in _WEIGHTED:
        return _WEIGHTED[mode, spatial](input, size, align_corners, scales)
    needed = {"linear": 3, "bilinear": 4, "trilinear": 5}.get(mode)
    if needed and spatial in (1, 2, 3):
        raise NotImplementedError(f"Got {input.dim()}D input, but {mode} mode needs {needed}D input")
    raise NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for the modes: {_MODES} (got {mode})"
    )


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """Older name of `interpolate`."""
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input, size=None, scale_factor=None):
    """Older name of `interpolate` with mode "nearest"."""
    warnings.warn("`nn.functional.upsample_nearest` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode="nearest")


def upsample_bilinear(input, size=None, scale_factor=None):
    """Older name of `interpolate` with mode "bilinear" and aligned corners."""
    warnings.warn("`nn.functional.upsample_bilinear` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


_INTERPOLATIONS = {"bilinear": 0, "nearest": 1, "bicubic": 2}
_PADDINGS = {"zeros": 0, "border": 1, "reflection": 2}


def grid_sample(input, grid, mode="bilinear", padding_mode="zeros", align_corners=None):
    """Samples of (N, C, [D,] H, W) at the positions `grid` (N, ..., 2 or 3), x first, -1 and 1 being the borders.

    Modes "bilinear", "nearest", "bicubic" (4-D only); outside, `padding_mode` gives "zeros", the "border" or its "reflection".
    With `align_corners` the borders are the centres of the outermost pixels, otherwise their outer edges.
    """
    if overrides((input, grid)):
        return handle(
            grid_sample, (input, grid), input, grid, mode=mode, padding_mode=padding_mode, align_corners=align_corners
        )
    if mode not in _INTERPOLATIONS:
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in _PADDINGS:
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
            "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details.",
            stacklevel=2,
        )
        align_corners = False
    return cresset.grid_sampler(input, grid, _INTERPOLATIONS[mode], _PADDINGS[padding_mode], align_corners)


def affine_grid(theta, size, align_corners=None):
    """The grid for `grid_sample` that the matrices `theta` (N, n, n + 1) make of an image of `size` (N, C, ...)."""
    if overrides1(theta):
        return handle(affine_grid, (theta,), theta, size, align_corners=align_corners)
    if align_corners is None:
        warnings.warn(
            "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
            "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details.",
            stacklevel=2,
        )
        align_corners = False
    if not theta.is_floating_point():
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    size = list(size)
    n = len(size) - 2
    if n not in (2, 3):
        raise NotImplementedError(
            f"affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size {size}."
        )
    if theta.dim() != 3 or tuple(theta.shape[-2:]) != (n, n + 1):
        raise ValueError(
            f"Expected a batch of {n}D affine matrices of shape Nx{n}x{n + 1} for size {size}. Got {theta.shape}."
        )
    if min(size) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return cresset.affine_grid_generator(theta, size, align_corners)
