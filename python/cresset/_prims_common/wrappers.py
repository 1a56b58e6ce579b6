"""Decorators of operators that programs write in Python."""

import collections
import functools
import inspect

import cresset

__all__ = ["out_wrapper"]


def _copied(result, out, exact_dtype):
    """`out` with the elements of a result, in its size. RuntimeError where its type cannot hold them."""
    if not isinstance(out, cresset.Tensor):
        raise AssertionError(f"out must be TensorLike, got {type(out)}")
    if exact_dtype and out.dtype != result.dtype:
        raise RuntimeError(f"Expected out tensor to have dtype {result.dtype} but got {out.dtype} instead")
    if not cresset.can_cast(result.dtype, out.dtype):
        raise RuntimeError(f"Attempting to cast from {result.dtype} to out tensor with dtype {out.dtype}, but this can't be cast because it is not safe!")
    if out.shape != result.shape:
        out.resize_(result.shape)
    return out if out is result else out.copy_(result)


def out_wrapper(*out_names, exact_dtype=False, pass_is_out=False, preserve_memory_format=False):
    """Decorator: a function of tensors gets an argument `out`. Without names its result is a tensor; with several it is a named tuple of them.

    The result is copied to `out`, which is resized to it; a type that is not safe to cast to is a RuntimeError, with exact_dtype every other one. With
    pass_is_out the function is told by an argument `is_out` whether there is one. A new tensor has the strides of the result anyway, so that
    preserve_memory_format changes nothing.
    """
    several = len(out_names) > 1

    def wrapper(fn):
        returned = collections.namedtuple(f"return_types_{fn.__name__}", out_names) if several else None

        @functools.wraps(fn)
        def with_out(*args, out=None, **kwargs):
            result = fn(*args, **kwargs, is_out=out is not None) if pass_is_out else fn(*args, **kwargs)
            if not several:
                return result if out is None else _copied(result, out, exact_dtype)
            if out is not None:
                if not isinstance(out, tuple) or len(out) != len(result):
                    raise TypeError(f"{fn.__name__}(): out must be a tuple of {len(result)} tensors; a {type(out).__name__} was given.")
                result = [_copied(r, o, exact_dtype) for r, o in zip(result, out)]
            return returned(*result)

        signature = inspect.signature(fn)
        kind = tuple[(cresset.Tensor,) * len(out_names)] if several else cresset.Tensor
        given = [p for p in signature.parameters.values() if p.name != "is_out"]
        at = next((i for i, p in enumerate(given) if p.kind is p.VAR_KEYWORD), len(given))
        given.insert(at, inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=kind))
        with_out.__signature__ = signature.replace(parameters=given, return_annotation=returned or cresset.Tensor)
        with_out._torch_decompositions_out_wrapper = True
        return with_out

    return wrapper


def _maybe_remove_out_wrapper(fn):
    """The function that `out_wrapper` decorates; another one as it is."""
    return fn.__wrapped__ if getattr(fn, "_torch_decompositions_out_wrapper", False) else fn
