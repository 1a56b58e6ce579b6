"""Functions that change the spatial layout: padding, shuffles, sliding blocks."""

import cresset
from cresset._C import _nn

from ._common import handle, ntuple, overrides1

__all__ = ["pad", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "unfold", "fold"]


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


def unfold(input, kernel_size, dilation=1, padding=0, stride=1):
    """Sliding blocks of (N, C, H, W) as columns: (N, C kernel elements, blocks); also without N."""
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
        input, ntuple(output_size, 2), ntuple(kernel_size, 2), ntuple(dilation, 2), ntuple(padding, 2), ntuple(stride, 2)
    )
