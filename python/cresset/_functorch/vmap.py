"""`vmap` by the module that defines it in PyTorch."""

from cresset.func import vmap

__all__ = ["vmap"]
