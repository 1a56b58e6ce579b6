"""A function of plain tensors as one of DTensors."""

import functools

import cresset
from cresset.utils._pytree import tree_flatten, tree_unflatten

from .._api import DTensor

__all__ = ["local_map"]


def _is_placements(value):
    return isinstance(value, (list, tuple)) and not any(isinstance(v, (list, tuple)) or v is None for v in value)


def _local(place, leaf, wanted, grad, mesh, redistribute):
    if not isinstance(leaf, DTensor):
        if wanted is not None and not isinstance(leaf, cresset.Tensor):
            raise AssertionError(f"Non-tensor input {place} of local_map must have None in in_placements; it has {wanted}.")
        return leaf
    if wanted is None:
        raise AssertionError(f"Tensor input {place} expects placements but received None!")
    if leaf.placements != tuple(wanted):
        if not redistribute:
            raise ValueError(
                f"arg {leaf} in local_map has a mismatched placements: arg placements is {leaf.placements} but the input placements is {tuple(wanted)}! "
                "If it is to be redistributed, set redistribute_inputs=True for local_map."
            )
        leaf = leaf.redistribute(mesh, wanted)
    return leaf.to_local(grad_placements=grad)


def local_map(func=None, out_placements=None, in_placements=None, in_grad_placements=None, device_mesh=None, *, redistribute_inputs=False):
    """`func`, a function of local parts, as a function of DTensors.

    `in_placements` has a list of placements for each argument (None for what is no DTensor); inputs under others are an error, or are redistributed.
    `out_placements` is a list of placements, or a tuple of them (None: left alone). Without DTensors among the arguments `func` is simply called.
    """
    if func is None:
        return functools.partial(
            local_map, out_placements=out_placements, in_placements=in_placements, in_grad_placements=in_grad_placements, device_mesh=device_mesh,
            redistribute_inputs=redistribute_inputs,
        )  # fmt: skip

    @functools.wraps(func)
    def mapped(*args, **kwargs):
        leaves, tree = tree_flatten(args)
        mesh = device_mesh or next((leaf.device_mesh for leaf in leaves if isinstance(leaf, DTensor)), None)
        if in_placements is not None and len(in_placements) != len(leaves):
            raise AssertionError(f"in_placements length {len(in_placements)} does not match the number of input args {len(leaves)}!")
        locals_, found = [], False
        for i, leaf in enumerate(leaves):
            found = found or isinstance(leaf, DTensor)
            wanted = in_placements[i] if in_placements is not None else (leaf.placements if isinstance(leaf, DTensor) else None)
            grad = in_grad_placements[i] if in_grad_placements is not None else None
            locals_.append(_local(i, leaf, wanted, grad, mesh, redistribute_inputs))
        out = func(*tree_unflatten(locals_, tree), **kwargs)
        return _wrapped(out, out_placements, mesh) if found else out

    return mapped


def _wrapped(out, out_placements, mesh):
    leaves, tree = tree_flatten(out)
    placements = [out_placements] * len(leaves) if out_placements is None or _is_placements(out_placements) else list(out_placements)
    if len(placements) != len(leaves):
        raise AssertionError(f"local_map requires one PlacementType be provided for each output value, received {len(placements)} out_placements but {len(leaves)} is expected!")
    return tree_unflatten([o if p is None else DTensor.from_local(o, mesh, p, run_check=False) for o, p in zip(leaves, placements)], tree)
