"""PyTorch's package `functorch`: the older names of `cresset.func`, which warn, and modules as functions of tuples of parameters."""

import functools

import cresset
from cresset.fx.experimental.proxy_tensor import make_fx

from ._modules import FunctionalModule, FunctionalModuleWithBuffers, combine_state_for_ensemble, make_functional, make_functional_with_buffers
from ._warning import warn_deprecated

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers", "combine_state_for_ensemble", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd",
    "jacrev", "jvp", "make_functional", "make_fx", "make_functional_with_buffers", "vjp", "vmap",
]  # fmt: skip


def _older(function, place):
    @functools.wraps(function)
    def call(*args, **kwargs):
        warn_deprecated(function.__name__, place)
        return function(*args, **kwargs)

    return call


vmap = _older(cresset.vmap, "torch.vmap")
functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp = (
    _older(getattr(cresset.func, name), f"torch.func.{name}")
    for name in ("functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "vjp")
)
