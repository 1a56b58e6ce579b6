"""Functions that change the spatial layout: padding, shuffles, sliding blocks."""

from typing import List, Optional

import cresset
from cresset import Tensor
from cresset._C import _nn
from cresset._overridable import overridable

from ._common import Ints2

__all__ = ["pad", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "unfold", "fold"]


@overridable
def pad(input: Tensor, pad: List[int], mode: str = "constant", value: Optional[float] = None) -> Tensor:
    """Pad the last dimensions by `pad` = (last before, last after, second last before, ...).

    Modes: "constant" (with `value`, any rank), "reflect", "replicate", "circular" (1 to 3 spatial dimensions).
    """
    return _nn.pad(input, pad, mode, value)


def _at_least(name: str, input: Tensor, ndim: int):
    if input.dim() < ndim:
        raise RuntimeError(
            f"{name} expects input to have at least {ndim} dimensions, but got input with {input.dim()} dimension(s)"
        )


@overridable
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(*, C r r, H, W) -> (*, C, H r, W r)."""
    return cresset.pixel_shuffle(input, upscale_factor)


@overridable
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(*, C, H r, W r) -> (*, C r r, H, W)."""
    _at_least("pixel_unshuffle", input, 3)
    if downscale_factor > 0:
        for name, size in zip(["height", "width"], [input.size(-2), input.size(-1)]):
            if size % downscale_factor != 0:
                raise RuntimeError(
                    f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but {size} is not divisible by "
                    f"{downscale_factor}"
                )
    return cresset.pixel_unshuffle(input, downscale_factor)


@overridable
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Interleave `groups` groups of the channels of (N, C, ...)."""
    _at_least("channel_shuffle", input, 3)
    return cresset.channel_shuffle(input, groups)


@overridable
def unfold(input: Tensor, kernel_size: Ints2, dilation: Ints2 = 1, padding: Ints2 = 0, stride: Ints2 = 1) -> Tensor:
    """Sliding blocks of (N, C, H, W) as columns: (N, C kernel elements, blocks); also without N."""
    return _nn.im2col(input, kernel_size, dilation, padding, stride)


@overridable
def fold(
    input: Tensor, output_size: Ints2, kernel_size: Ints2, dilation: Ints2 = 1, padding: Ints2 = 0, stride: Ints2 = 1
) -> Tensor:
    """The columns of `unfold` added back into an image of `output_size`."""
    return _nn.col2im(input, output_size, kernel_size, dilation, padding, stride)
