"""rearrange: reshape and permute by a pattern of names, in the notation of einops."""

import math

import cresset

__all__ = ["rearrange"]

_DOTS = "..."


def _axes(text):
    """The axes of one side, a tuple of names for each dimension (none for "1"), or the ellipsis outside of brackets; and all names."""
    if "." in text and (text.count(_DOTS) != 1 or text.count(".") != 3):
        raise ValueError("Expression may contain dots only inside ellipsis (...); only one ellipsis for tensor ")
    axes, group, seen = [], None, set()
    for word in text.replace("(", " ( ").replace(")", " ) ").replace(_DOTS, f" {_DOTS} ").split():
        if word == "(":
            if group is not None:
                raise ValueError("Axis composition is one-level (brackets inside brackets not allowed)")
            group = []
        elif word == ")":
            if group is None:
                raise ValueError("Brackets are not balanced")
            axes.append(tuple(group))
            group = None
        else:
            if word.isdecimal():
                if word != "1":
                    raise ValueError("rearrange only supports unnamed axes of size 1")
                if group is None:
                    axes.append(())
                continue
            if word != _DOTS and (not word.isidentifier() or word.startswith("_") or word.endswith("_")):
                raise ValueError(f"Invalid axis identifier: {word}")
            if word in seen:
                raise ValueError(f"Indexing expression contains duplicate dimension '{word}'")
            seen.add(word)
            if group is not None:
                group.append(word)
            else:
                axes.append(_DOTS if word == _DOTS else (word,))
    if group is not None:
        raise ValueError("Brackets are not balanced")
    return axes, seen


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
    if pattern.count("->") != 1:
        raise ValueError("Pattern must contain a single '->' separator")
    (left, left_names), (right, right_names) = (_axes(side) for side in pattern.split("->"))
    if left_names != right_names:
        raise ValueError(f"Identifiers only on one side of rearrange expression (should be on both): {left_names ^ right_names}")
    if strange := axes_lengths.keys() - left_names:
        raise ValueError(f"Identifiers not found in rearrange expression: {strange}")
    if _DOTS in left:
        more = tensor.dim() - len(left) + 1
        if more < 0:
            raise ValueError(
                f"Number of dimensions in pattern ({len(left) - 1}) must be less than or equal to the number of dimensions in the tensor ({tensor.dim()})"
            )
        dots = [f"{_DOTS}{i}" for i in range(more)]
        at = left.index(_DOTS)
        left[at : at + 1] = [(d,) for d in dots]
    elif _DOTS in left_names:
        raise ValueError("Ellipsis inside parentheses on the left side is not allowed")
    else:
        dots = []
        if tensor.dim() != len(left):
            raise ValueError(f"Number of dimensions in pattern ({len(left)}) must be equal to the number of dimensions in the tensor ({tensor.dim()})")
    spread = []
    for names in right:
        if names == _DOTS:
            spread += [(d,) for d in dots]
        else:
            spread.append(tuple(m for n in names for m in (dots if n == _DOTS else (n,))))
    sizes = _sizes(left, tensor.shape, axes_lengths)
    order = [n for names in left for n in names]
    apart = tensor.reshape([sizes[n] for n in order])
    moved = apart.permute([order.index(n) for names in spread for n in names])
    return moved.reshape([math.prod(sizes[n] for n in names) for names in spread])
