"""The transforms of `cresset.func`, by the module that offers them in PyTorch."""

from cresset.func import grad, grad_and_value, vmap

__all__ = ["grad", "grad_and_value", "vmap"]
