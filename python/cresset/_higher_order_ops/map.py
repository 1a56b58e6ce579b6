"""One function for each part of tensors."""

import cresset
from cresset import _rare_functions
from cresset.utils import _pytree as pytree

__all__ = ["map"]


def _checked(xs):
    """(leaves, structure, size of the first dimension). RuntimeError for leaves that are no tensors, sizes that differ and for 0."""
    leaves, spec = pytree.tree_flatten(xs)
    if not leaves or not all(isinstance(leaf, cresset.Tensor) for leaf in leaves):
        raise RuntimeError(f"Mapped xs can only consist of tensors. Got xs {leaves}.")
    shapes = [leaf.shape for leaf in leaves]
    if any(not shape or shape[0] == 0 for shape in shapes):
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    if len({shape[0] for shape in shapes}) > 1:
        raise RuntimeError(f"Leading dimensions of mapped xs must be consistent. Got shapes {shapes}.")
    return leaves, spec, shapes[0][0]


def _unstack_pytree(xs):
    """The structures of the tensors' parts along their first dimension, a list. RuntimeError for other leaves, sizes that differ and for 0."""
    leaves, spec, size = _checked(xs)
    return [pytree.tree_unflatten([leaf[i] for leaf in leaves], spec) for i in range(size)]


def outputs_of_map(value):
    """RuntimeError for leaves of what a function gave that are neither tensors nor None."""
    for leaf in pytree.tree_leaves(value):
        if leaf is not None and not isinstance(leaf, cresset.Tensor):
            raise RuntimeError(f"Expect outputs of map only contains tensors or None. Got types {[type(leaf)]}.")


def _stack_pytree(pytrees):
    """One structure of the tensors stacked, from a list of structures; None stays None. RuntimeError for other leaves."""
    outputs_of_map(pytrees)
    return pytree.tree_map(lambda *parts: None if parts[0] is None else cresset.stack(parts), *pytrees)


def map(f, xs, *args):
    """`f(x, *args)` for each x along the first dimension of the tensors in xs, with the results' tensors stacked; None stays None.

    RuntimeError where xs holds others than tensors or f gives them, and for first dimensions that differ or are 0. Programs of `export` hold one step.
    """
    if _rare_functions._recorders is not None:
        _checked(xs)
        return _rare_functions._recorders["map"](f, xs, *args)
    return _stack_pytree([f(x, *args) for x in _unstack_pytree(xs)])


def _fake_map(f, x, *args):
    """`map`, part by part also where a program is recorded."""
    return _stack_pytree([f(part, *args) for part in _unstack_pytree(x)])
