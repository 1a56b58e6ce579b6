"""Branches and loops as functions."""

import cresset
from cresset import cond
from cresset.utils import _pytree as pytree

__all__ = ["cond", "map"]


def map(f, xs, *args):
    """`f(x, *args)` for each x along the first dimension of the tensors in xs, with the results' tensors stacked.

    RuntimeError where xs holds others than tensors, and for first dimensions that differ or are 0. Programs of `export` hold each step.
    """
    leaves, spec = pytree.tree_flatten(xs)
    if not leaves or not all(isinstance(leaf, cresset.Tensor) for leaf in leaves):
        raise RuntimeError(f"Mapped xs can only consist of tensors. Got xs {leaves}.")
    shapes = [leaf.shape for leaf in leaves]
    if any(not shape or shape[0] == 0 for shape in shapes):
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    if len({shape[0] for shape in shapes}) > 1:
        raise RuntimeError(f"Leading dimensions of mapped xs must be consistent. Got shapes {shapes}.")
    results = [f(pytree.tree_unflatten([leaf[i] for leaf in leaves], spec), *args) for i in range(shapes[0][0])]
    return pytree.tree_map(lambda *parts: cresset.stack(parts) if isinstance(parts[0], cresset.Tensor) else parts[0], *results)
