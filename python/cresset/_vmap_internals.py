"""The older vmap: dimensions count from the front, and the function gives a tensor or a tuple of them."""

import functools

from ._C import Tensor
from ._vmap import _get_name, older
from ._vmap import vmap as _new
from .utils import _pytree as pytree

__all__ = ["vmap"]


def _dims_of(out_dims, count, name):
    if isinstance(out_dims, int):
        return (out_dims,) * count
    if len(out_dims) != count:
        raise ValueError(f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must have one dim per output (got {count} outputs) of {name}.")
    return out_dims


def _check_outputs(outputs, single, none, name):
    for place, output in enumerate(outputs):
        if not (isinstance(output, Tensor) or none and output is None):
            where = "as the return" if single else f"for return {place}"
            raise ValueError(f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(output)} {where}.")


def _check_in_dims(in_dims, args, name):
    """Negative dimensions are refused; all else is said by the newer vmap."""
    if not isinstance(in_dims, (int, tuple)):
        return
    leaves, spec = pytree.tree_flatten(args)
    for value, dim in zip(leaves, pytree._broadcast_to_and_flatten(in_dims, spec) or ()):
        if isinstance(value, Tensor) and isinstance(dim, int) and not 0 <= dim < value.dim():
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for some input, but that input is a Tensor of dimensionality "
                f"{value.dim()} so expected in_dim to satisfy 0 <= in_dim < {value.dim()}."
            )


def vmap(func, in_dims=0, out_dims=0):
    """`cresset.vmap`, for a function that gives a tensor or a tuple of them; `out_dims`: an int for all, or one for each."""
    return _vmap(func, in_dims, out_dims)


def _vmap(func, in_dims=0, out_dims=0, allow_none_pass_through=False):
    """The same; where allow_none_pass_through is given, the function may give None, which stays None."""

    @functools.wraps(func, assigned=[a for a in functools.WRAPPER_ASSIGNMENTS if hasattr(func, a)])
    def wrapped(*args):
        name, single, kept = _get_name(func), False, []
        if not isinstance(out_dims, int) and not (isinstance(out_dims, tuple) and all(isinstance(d, int) for d in out_dims)):
            raise ValueError(
                f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int or a tuple of int representing where in the outputs the vmapped "
                "dimension should appear."
            )
        _check_in_dims(in_dims, args, name)

        @functools.wraps(func, assigned=[a for a in functools.WRAPPER_ASSIGNMENTS if hasattr(func, a)])
        def checked(*batched):
            nonlocal single
            outputs = func(*batched)
            single = not isinstance(outputs, tuple)
            outputs = (outputs,) if single else outputs
            _check_outputs(outputs, single, allow_none_pass_through, name)
            kept[:] = [None if o is None else d for o, d in zip(outputs, _dims_of(out_dims, len(outputs), name))]
            return tuple(o for o in outputs if o is not None)

        older.depth += 1
        try:
            found = iter(_new(checked, in_dims)(*args))
        finally:
            older.depth -= 1
        results = tuple(None if dim is None else next(found).movedim(0, dim) for dim in kept)
        return results[0] if single else results

    return wrapped
