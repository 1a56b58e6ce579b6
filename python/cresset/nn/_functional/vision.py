"""Functions that change the spatial layout: padding, sliding blocks."""

from typing import List, Optional

from cresset import Tensor
from cresset._C import _nn
from cresset._overridable import overridable

from ._common import Ints2

__all__ = ["pad", "unfold", "fold"]


@overridable
def pad(input: Tensor, pad: List[int], mode: str = "constant", value: Optional[float] = None) -> Tensor:
    """Pad the last dimensions by `pad` = (last before, last after, second last before, ...).

    Modes: "constant" (with `value`, any rank), "reflect", "replicate", "circular" (1 to 3 spatial dimensions).
    """
    return _nn.pad(input, pad, mode, value)


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
