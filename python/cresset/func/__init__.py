"""Transforms of functions: derivatives, batches, and modules as functions of their parameters."""

from cresset._homes import settle
from cresset._subclasses.functional_tensor import functionalize
from cresset._vmap import vmap

from ._modules import functional_call, replace_all_batch_norm_modules_, stack_module_state
from ._rearrange import rearrange
from ._transforms import debug_unwrap, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp

__all__ = [
    "grad", "grad_and_value", "vmap", "replace_all_batch_norm_modules_", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp",
    "functional_call", "stack_module_state", "debug_unwrap", "functionalize", "rearrange",
]  # fmt: skip

settle(globals())
