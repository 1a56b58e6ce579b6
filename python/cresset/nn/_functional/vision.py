"""Functions that change the spatial layout: padding, sliding blocks, resizing."""

import math
import warnings

import cresset
from cresset._C import _nn

from ._common import handle, ntuple, overrides1

__all__ = ["pad", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "unfold", "fold", "interpolate", "upsample"]


def pad(input, pad, mode="constant", value=None):
    """Pad the last dimensions by `pad` = (last before, last after, second last before, ...).

    Modes: "constant" (with `value`, any rank), "reflect", "replicate", "circular" (1 to 3 spatial dimensions).
    """
    if overrides1(input):
        return handle(_pad, (input,), input, pad, mode=mode, value=value)
    return _nn.pad(input, pad, mode, value)


_pad = pad  # inside the function the name is its argument


def _at_least(name, input, ndim):
    if input.dim() < ndim:
        raise RuntimeError(
            f"{name} expects input to have at least {ndim} dimensions, but got input with {input.dim()} dimension(s)"
        )


def pixel_shuffle(input, upscale_factor):
    """(*, C r r, H, W) -> (*, C, H r, W r)."""
    if overrides1(input):
        return handle(pixel_shuffle, (input,), input, upscale_factor)
    return cresset.pixel_shuffle(input, upscale_factor)


def pixel_unshuffle(input, downscale_factor):
    """(*, C, H r, W r) -> (*, C r r, H, W)."""
    if overrides1(input):
        return handle(pixel_unshuffle, (input,), input, downscale_factor)
    _at_least("pixel_unshuffle", input, 3)
    if downscale_factor > 0:
        for name, size in (("height", input.size(-2)), ("width", input.size(-1))):
            if size % downscale_factor != 0:
                raise RuntimeError(
                    f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but {size} is not divisible by "
                    f"{downscale_factor}"
                )
    return cresset.pixel_unshuffle(input, downscale_factor)


def channel_shuffle(input, groups):
    """Interleave `groups` groups of the channels of (N, C, ...)."""
    if overrides1(input):
        return handle(channel_shuffle, (input,), input, groups)
    _at_least("channel_shuffle", input, 3)
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    n, channels, *rest = input.shape
    if channels % groups != 0:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        )
    return input.reshape(n, groups, channels // groups, *rest).transpose(1, 2).reshape(n, channels, *rest)


def _blocks(size, kernel, dilation, padding, stride):
    """The padded plane size, the number of blocks each way, and the flat index of every element of every block."""
    padded = [n + 2 * p for n, p in zip(size, padding)]
    counts = [(n - d * (k - 1) - 1) // s + 1 for n, k, d, s in zip(padded, kernel, dilation, stride)]
    if min(counts) <= 0:
        raise RuntimeError(
            f"sliding blocks: kernel {kernel} with dilation {dilation} and padding {padding} was required to fit into {tuple(size)}; "
            f"the number of blocks would be {tuple(counts)}."
        )
    places = [
        (cresset.arange(k) * d).reshape(-1, 1) + cresset.arange(c) * s
        for k, d, c, s in zip(kernel, dilation, counts, stride)
    ]
    rows, columns = places  # (kernel, blocks) each way
    index = rows.reshape(kernel[0], 1, counts[0], 1) * padded[1] + columns.reshape(1, kernel[1], 1, counts[1])
    return padded, counts[0] * counts[1], index.reshape(-1)


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """Sliding blocks of (N, C, H, W) as columns: (N, C kernel elements, blocks); also without N."""
    if overrides1(input):
        return handle(unfold, (input,), input, kernel_size, dilation=dilation, padding=padding, stride=stride)
    if input.dim() not in (3, 4):
        raise RuntimeError(
            f"Expected 3D or 4D (batch mode) tensor for input with possibly 0 batch size, but got: {tuple(input.shape)}"
        )
    kernel, padding = ntuple(kernel_size, 2), ntuple(padding, 2)
    padded, blocks, index = _blocks(input.shape[-2:], kernel, ntuple(dilation, 2), padding, ntuple(stride, 2))
    *batch, channels, _, _ = input.shape
    if any(padding):
        input = _nn.pad(input, (padding[1], padding[1], padding[0], padding[0]))
    flat = input.reshape(*batch, channels, padded[0] * padded[1])
    return flat.index_select(-1, index.to(input.device)).reshape(*batch, channels * kernel[0] * kernel[1], blocks)


def fold(input, output_size, kernel_size, dilation=1, padding=0, stride=1):
    """The columns of `unfold` added back into an image of `output_size`."""
    if overrides1(input):
        return handle(
            fold, (input,), input, output_size, kernel_size, dilation=dilation, padding=padding, stride=stride
        )
    if input.dim() not in (2, 3):
        raise RuntimeError(
            f"Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size, but got: {tuple(input.shape)}"
        )
    size, kernel, padding = ntuple(output_size, 2), ntuple(kernel_size, 2), ntuple(padding, 2)
    padded, blocks, index = _blocks(size, kernel, ntuple(dilation, 2), padding, ntuple(stride, 2))
    *batch, rows, columns = input.shape
    area = kernel[0] * kernel[1]
    if rows % area != 0:
        raise RuntimeError(
            f"Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.size(1)={rows} and "
            f"kernel_size={kernel}."
        )
    if columns != blocks:
        raise RuntimeError(
            f"Given output_size={size}, kernel_size={kernel}, expected size of input's dimension 2 to match the calculated number of "
            f"sliding blocks {blocks}, but got input.size(2)={columns}."
        )
    channels = rows // area
    flat = input.new_zeros((*batch, channels, padded[0] * padded[1]))
    flat = flat.index_add(-1, index.to(input.device), input.reshape(*batch, channels, area * blocks))
    image = flat.reshape(*batch, channels, *padded)
    return image[..., padding[0] : padding[0] + size[0], padding[1] : padding[1] + size[1]]


_ALIGNED_MODES = {3: "linear", 4: "bilinear", 5: "trilinear"}


def _source(out, size, scale, mode, align_corners, dtype, device):
    """Where each of `out` positions lies in a dimension of `size` elements; `scale` is the factor given, or None."""
    position = cresset.arange(out, dtype=dtype, device=device)
    if align_corners:
        return position * ((size - 1) / (out - 1) if out > 1 else 0.0)
    step = size / out if scale is None else 1.0 / scale
    if mode == "nearest":
        return position * step
    if mode == "nearest-exact":
        return (position + 0.5) * step
    source = (position + 0.5) * step - 0.5
    return source if mode == "bicubic" else source.clamp(min=0)


def _cubic(d):
    """Weights of the four neighbours of a point at distance `d` (0 to 1) behind the second."""
    a = -0.75

    def near(x):
        return ((a + 2) * x - (a + 3)) * x * x + 1

    def far(x):
        return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a

    return far(d + 1), near(d), near(1 - d), far(2 - d)


def _resize(x, dim, out, scale, mode, align_corners):
    """Resize one dimension: a weighted sum of selections."""
    size = x.size(dim)
    if out == size and (mode == "nearest" or align_corners) and scale in (None, 1.0):
        return x
    dtype = cresset.float64 if x.dtype == cresset.float64 else cresset.float32
    source = _source(out, size, scale, mode, align_corners, dtype, x.device)
    low = source.floor()
    first = low.to(cresset.int64)
    if mode.startswith("nearest"):
        return x.index_select(dim, first.clamp(max=size - 1))
    shape = [1] * x.dim()
    shape[dim] = out
    d = (source - low).to(x.dtype).reshape(shape)
    weights = _cubic(d) if mode == "bicubic" else (1 - d, d)
    start = -1 if mode == "bicubic" else 0
    return sum(w * x.index_select(dim, (first + (start + k)).clamp(0, size - 1)) for k, w in enumerate(weights))


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
    if mode == "area" and spatial in (1, 2, 3):
        if spatial == 1:
            return cresset.adaptive_avg_pool1d(input, size)
        return (_nn.adaptive_avg_pool2d if spatial == 2 else _nn.adaptive_avg_pool3d)(input, size)
    known = mode in ("nearest", "nearest-exact") and spatial in (1, 2, 3)
    if known or mode == _ALIGNED_MODES.get(input.dim()) or (mode == "bicubic" and input.dim() == 4):
        if antialias:
            raise NotImplementedError("interpolate: antialias=True is not supported. Use antialias=False.")
        if size is None:
            size = tuple(int(math.floor(n * s)) for n, s in zip(input.shape[2:], scales))
        if min(*size, *input.shape[2:]) <= 0:
            raise RuntimeError(
                f"Input and output sizes should be greater than 0, but got input {tuple(input.shape[2:])} and output {tuple(size)}"
            )
        result = input
        for i in range(spatial):
            scale = None if scales is None else float(scales[i])
            result = _resize(result, i + 2, int(size[i]), scale, mode, bool(align_corners))
        return result
    raise NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {input.dim()}D) for the modes: nearest | linear | bilinear | "
        f"bicubic | trilinear | area | nearest-exact (got {mode})"
    )


def upsample(input, size=None, scale_factor=None, mode="nearest", align_corners=None):
    """Older name of `interpolate`."""
    warnings.warn("`nn.functional.upsample` is deprecated. Use `nn.functional.interpolate` instead.", stacklevel=2)
    return interpolate(input, size, scale_factor, mode, align_corners)
