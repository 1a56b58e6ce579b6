"""The transforms of `cresset.func`, by the module that defines them in PyTorch."""

from cresset.func import functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from cresset.func._transforms import _check_argnums, _selected, _wrap_tensor_for_grad  # noqa: F401

__all__ = ["functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize", "vjp"]


def _slice_argnums(args, argnums, as_tuple=True):
    """The arguments that argnums names, in its order: a tuple, also of one unless as_tuple is false. RuntimeError for argnums that name none."""
    chosen = _selected(args, _check_argnums(argnums, len(args)))
    return (chosen,) if as_tuple and isinstance(argnums, int) else chosen


def _as_tuple(value):
    """A list as a tuple, a tuple as it is, anything else as a tuple of one."""
    if isinstance(value, tuple):
        return value
    return tuple(value) if isinstance(value, list) else (value,)
