"""The older place of vmap, with positional dimensions."""

from ._vmap import vmap as _new

__all__ = ["vmap"]


def vmap(func, in_dims=0, out_dims=0):
    """`cresset.vmap`."""
    return _new(func, in_dims, out_dims)


_vmap = vmap
