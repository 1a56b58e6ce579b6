"""rearrange: reshape and permute by a pattern of names, in the notation of einops."""

import math

import cresset

from ._axes import _ellipsis, parse_pattern, validate_rearrange_expressions

__all__ = ["rearrange"]

def _sizes(axes, shape, given):
    """The size of every name, from the tensor's shape and what was given."""
    sizes = {}
    for names, size in zip(axes, shape):
        unknown = [n for n in names if n not in given]
        known = math.prod(given[n] for n in names if n in given)
        if len(unknown) > 1:
            raise ValueError(f"cannot infer the sizes of two dimensions at once {unknown[0]} and {unknown[1]}")
        if size != known and not unknown or unknown and (known == 0 or size % known):
            raise ValueError(f"inferred dimension does not evenly fit into larger dimension: {size} vs {tuple(given.get(n, '?') for n in names)}")
        for n in names:
            sizes[n] = given[n] if n in given else size // known
    return sizes


def rearrange(tensor, pattern, **axes_lengths):
    """The tensor's elements in the order of a pattern: `rearrange(images, "b c (h k) w -> (b k) h w c", k=2)`.

    tensor: a tensor, or a list or tuple of tensors, whose number is the first dimension. pattern: names of its dimensions, `->`, names of those
    of the result; `(a b)` is one dimension made of several, `...` stands for any number of them, `1` for one of size 1. axes_lengths: sizes
    that the shape does not tell. ValueError for a pattern that does not fit.
    """
    if not isinstance(tensor, cresset.Tensor):
        tensor = cresset.stack(tensor)
    left, right = parse_pattern(pattern, axes_lengths)
    validate_rearrange_expressions(left, right, axes_lengths)
    left, right = left.composition, right.composition
    dots = []
    if _ellipsis in left:
        more = tensor.dim() - len(left) + 1
        if more < 0:
            raise ValueError(
                f"Number of dimensions in pattern ({len(left) - 1}) must be less than or equal to the number of dimensions in the tensor ({tensor.dim()})"
            )
        dots = [f"{_ellipsis}{i}" for i in range(more)]
        at = left.index(_ellipsis)
        left[at : at + 1] = [[d] for d in dots]
    elif tensor.dim() != len(left):
        raise ValueError(f"Number of dimensions in pattern ({len(left)}) must be equal to the number of dimensions in the tensor ({tensor.dim()})")
    spread = []
    for names in right:
        if names == _ellipsis:
            spread += [[d] for d in dots]
        else:
            spread.append([m for n in names for m in (dots if n == _ellipsis else (n,))])
    sizes = _sizes(left, tensor.shape, axes_lengths)
    order = [n for names in left for n in names]
    apart = tensor.reshape([sizes[n] for n in order])
    moved = apart.permute([order.index(n) for names in spread for n in names])
    return moved.reshape([math.prod(sizes[n] for n in names) for names in spread])
