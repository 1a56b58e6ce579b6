"""Transforms that were tried out under this name."""

import cresset
from cresset.func import functionalize, replace_all_batch_norm_modules_

from . import control_flow

__all__ = ["chunk_vmap", "control_flow", "functionalize", "replace_all_batch_norm_modules_"]


def chunk_vmap(func, in_dims=0, out_dims=0, randomness="error", chunks=2):
    """vmap in at most `chunks` parts of equal size, one after the other, for less memory; their results are joined."""
    if chunks < 1:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunks})")

    def call(*args, **kwargs):
        tree = cresset.utils._pytree
        dims = tree._broadcast_to_and_flatten(in_dims if isinstance(in_dims, int) else tuple(in_dims), tree.tree_flatten(args)[1])
        sizes = [leaf.shape[d] for leaf, d in zip(tree.tree_leaves(args), dims or ()) if d is not None]
        size = -(-sizes[0] // chunks) if sizes else None
        return cresset.vmap(func, in_dims, out_dims, randomness, chunk_size=size)(*args, **kwargs)

    return call
