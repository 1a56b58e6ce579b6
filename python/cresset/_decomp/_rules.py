"""How a decomposition is noted: for an overload, and with it for the forms that write to `out` and to the first argument."""

import functools

import cresset
from cresset.utils import _pytree as pytree

from ._tables import add as add_entry
from ._tables import decomposition_table

aten = cresset.ops.aten
CORE = set()  # what core_aten_decompositions has


def rule(*names, core=True, inplace=None):
    """Decorator: the function takes these overloads ("silu.default", or "silu" for that) apart. core: does core_aten_decompositions have them?

    The overloads that write to `out` and the one in place (`silu_`) go with them; inplace says whether core has the latter, if not as the others.
    """

    def add(function):
        for name in names:
            packet, _, overload = name.partition(".")
            packet = getattr(aten, packet)
            op = getattr(packet, overload or "default")
            note(op, function, core)
            arguments = [a.name for a in op._schema.arguments]
            for other in [getattr(packet, n) for n in packet.overloads()]:
                outs = [a.name for a in other._schema.arguments if a.is_out]
                if outs and [a.name for a in other._schema.arguments if not a.is_out] == arguments and other not in decomposition_table:
                    note(other, _with_out(function, outs), core)
            written = getattr(getattr(aten, f"{op._schema.name.split('::')[1]}_", None), overload or "default", None)
            if written is not None:
                note(written, _in_place(function), core if inplace is None else inplace)
        return function

    return add


def note(op, function, core):
    add_entry(op, function, decomposition_table)
    if core:
        CORE.add(op)


def _with_out(function, outs):
    @functools.wraps(function)
    def run(*args, **kwargs):
        places = [kwargs.pop(name) for name in outs]
        results = function(*args, **kwargs)
        for place, result in zip(places, results if isinstance(results, tuple) else (results,)):
            if place.shape != result.shape:
                place.resize_(result.shape)
            aten.copy_(place, result)
        return places[0] if len(places) == 1 else tuple(places)

    return run


def _in_place(function):
    @functools.wraps(function)
    def run(self, *args, **kwargs):
        return aten.copy_(self, function(self, *args, **kwargs))

    return run


_LOW = frozenset([cresset.float16, cresset.bfloat16])


def in_float(function):
    """Decorator: halves are computed as float32, and the results are of the type that the arguments have together."""

    @functools.wraps(function)
    def run(*args, **kwargs):
        dtypes = [t.dtype for t in pytree.tree_leaves((args, kwargs)) if isinstance(t, cresset.Tensor) and t.dtype.is_floating_point]
        if not _LOW.intersection(dtypes):
            return function(*args, **kwargs)
        dtype = functools.reduce(cresset.promote_types, dtypes)
        args, kwargs = pytree.tree_map_only(cresset.Tensor, lambda t: t.to(cresset.float32) if t.dtype in _LOW else t, (args, kwargs))
        return pytree.tree_map_only(cresset.Tensor, lambda t: t.to(dtype) if t.dtype == cresset.float32 else t, function(*args, **kwargs))

    return run


def number(value, like):
    """A tensor without dimensions for a number that meets `like`: of the type of the result."""
    return aten.full.default([], value, dtype=cresset.result_type(like, value), device=like.device)


def reduced(loss, reduction):
    """The loss, its mean (1) or its sum (2)."""
    if reduction == 1:
        return aten.mean.default(loss)
    return aten.sum.default(loss) if reduction == 2 else loss


def last_first(dim, rank):
    """A dimension counted from the front."""
    return dim % rank if rank else 0
