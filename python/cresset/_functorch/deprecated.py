"""The names of the package `functorch`, by the module that keeps them in PyTorch."""

from cresset.functorch import (
    combine_state_for_ensemble, functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, make_functional, make_functional_with_buffers, vjp, vmap,
)  # fmt: skip

__all__ = [
    "combine_state_for_ensemble", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "make_functional",
    "make_functional_with_buffers", "vjp", "vmap",
]  # fmt: skip
