"""Reductions: what the mask leaves out does not count; a slice with nothing in it is left out of the result."""

import cresset

from .. import _ops
from . import core

REDUCE_NAMES = ["sum", "mean", "amin", "amax", "argmin", "argmax", "prod", "all", "norm", "var", "std"]


def _truth(op):
    def reduce(data, dim=None, *, keepdim=False, mask=None):
        return op(cresset.where(mask, data.to(cresset.bool), op is cresset.all), _ops._dims(dim, data.dim()), keepdim)

    return reduce


_REDUCTIONS = {"all": _truth(cresset.all), "any": _truth(cresset.any)}


def _reduce(name, masked, dim, keepdim, *args, **kwargs):
    data, mask = core.dense(masked.get_data()), core.dense(masked._mask)
    if masked.layout is not cresset.strided:
        data = cresset.where(mask, data, cresset.zeros((), dtype=data.dtype))
    result = _REDUCTIONS.get(name, getattr(_ops, name, None))(data, *args, dim=dim, keepdim=keepdim, mask=mask, **kwargs)
    kept = cresset.any(mask, _ops._dims(dim, mask.dim()), keepdim)
    return core.Masked.apply(result, kept)


def _with_dtype(name):
    return lambda masked, dim=None, keepdim=False, *, dtype=None: _reduce(name, masked, dim, keepdim, dtype=dtype)


def _plain(name):
    return lambda masked, dim=None, keepdim=False: _reduce(name, masked, dim, keepdim)


def _spread(name):
    def rule(masked, dim=None, unbiased=None, keepdim=False, *, correction=None):
        if isinstance(dim, bool):  # var(unbiased)
            dim, unbiased = None, dim
        return _reduce(name, masked, dim, keepdim, unbiased=unbiased, correction=correction)

    return rule


def _norm(masked, p=2.0, dim=None, keepdim=False, out=None, dtype=None):
    if out is not None:
        raise ValueError("MaskedTensor reductions take no out=")
    return _reduce("norm", masked, dim, keepdim, 2.0 if p in (None, "fro") else p, dtype=dtype)


RULES = {
    **{name: _with_dtype(name) for name in ("sum", "mean", "prod")},
    **{name: _plain(name) for name in ("amin", "amax", "argmin", "argmax", "all")},
    **{name: _spread(name) for name in ("var", "std")},
    "norm": _norm,
}
"""name -> function of (masked, the arguments of the operator)."""


def any_true(masked, dim=None, keepdim=False):
    """Whether an element that counts is true."""
    return _reduce("any", masked, dim, keepdim)
