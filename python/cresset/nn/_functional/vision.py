"""Functions that change the spatial layout: padding, sliding blocks, resizing."""

import math
import warnings

import cresset
from cresset._C import _nn

from ._common import handle, ntuple, overrides1

__all__ = ["pad", "unfold", "fold", "interpolate", "upsample"]


def pad(input, pad, mode="constant", value=None):
    """Pad the last dimensions by `pad` = (last before, last after, second last before, ...).

    Modes: "constant" (with `value`, any rank), "reflect", "replicate", "circular" (1 to 3 spatial dimensions).
    """
    if overrides1(input):
        return handle(_pad, (input,), input, pad, mode=mode, value=value)
    return _nn.pad(input, pad, mode, value)


_pad = pad  # inside the function the name is its argument


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """Sliding blocks of (N, C, H, W) as columns: (N, C kernel elements, blocks)."""
    if overrides1(input):
        return handle(unfold, (input,), input, kernel_size, dilation=dilation, padding=padding, stride=stride)
    return _nn.im2col(input, ntuple(kernel_size, 2), ntuple(dilation, 2), ntuple(padding, 2), ntuple(stride, 2))


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """The columns of `unfold` added back into an image of `output_size`."""
    if overrides1(input):
        return handle(
            fold, (input,), input, output_size, kernel_size, dilation=dilation, padding=padding, stride=stride
        )
    return _nn.col2im(
        input,
        ntuple(output_size, 2),
        ntuple(kernel_size, 2),
        ntuple(dilation, 2),
        ntuple(padding, 2),
        ntuple(stride, 2),
    )


_ALIGNED_MODES = {3: "linear", 4: "bilinear", 5: "trilinear"}


def interpolate(
    input,
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
    antialias=False,
):
    """Resize the spatial dimensions of (N, C, ...) to `size` or by `scale_factor`.

    Modes: "nearest", "nearest-exact", "linear" (3-D), "bilinear" and "bicubic" (4-D), "trilinear" (5-D), "area".
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
    spatial = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    scales = None
    if size is not None:
        size = ntuple(size, spatial)
        if len(size) != spatial:
            raise ValueError(
                f"Input and output must have the same number of spatial dimensions, but got input with spatial dimensions of "
                f"{list(input.shape[2:])} and output size of {size}."
            )
    elif scale_factor is not None:
        scales = ntuple(scale_factor, spatial)
        if len(scales) != spatial:
            raise ValueError(
                f"Input and scale_factor must have the same number of spatial dimensions, but got input with spatial dimensions of "
                f"{list(input.shape[2:])} and scale_factor of shape {scale_factor}."
            )
    else:
        raise ValueError("either size or scale_factor should be defined")
    if recompute_scale_factor and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if scales is not None and (recompute_scale_factor or mode == "area"):
        size = tuple(int(math.floor(n * s)) for n, s in zip(input.shape[2:], scales))
        scales = None
    if antialias and not (mode in ("bilinear", "bicubic") and input.dim() == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear and bicubic modes and requires a 4-D tensor as input"
        )
    if mode in ("nearest", "nearest-exact") and spatial in (1, 2, 3):
        name = "upsample_nearest" if mode == "nearest" else "_upsample_nearest_exact"
        return getattr(_nn, f"{name}{spatial}d")(input, size, scales)
    if mode == "area" and spatial in (1, 2, 3):
        if spatial == 1:
            return cresset.adaptive_avg_pool1d(input, size)
        return (_nn.adaptive_avg_pool2d if spatial == 2 else _nn.adaptive_avg_pool3d)(input, size)
    if mode == _ALIGNED_MODES.get(input.dim()) or (mode == "bicubic" and input.dim() == 4):
        name = f"upsample_{mode}{spatial}d"
        if antialias:
            name = f"_{name}_aa"
        return getattr(_nn, name)(input, size, align_corners, scales)
    raise NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for the modes: nearest | linear | bilinear | "
        f"bicubic | trilinear | area | nearest-exact (got {mode})"
    )


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """Older name of `interpolate`."""
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)
