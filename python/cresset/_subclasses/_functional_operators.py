"""The functional forms of operators that write, and the way back through views."""

import functools

import cresset

aten = cresset.ops.aten


# --- views: what puts a changed view into its base ------------------------------------------------------------------------------


def _inverse_permutation(dims):
    out = [0] * len(dims)
    for i, d in enumerate(dims):
        out[d % len(dims)] = i
    return out


def _reshaped(base, view, place, args, kwargs, form):
    return view.reshape(base.shape) if form is _as_it_is else aten.view_copy.default(view, list(base.shape))


def _squeezed(base, view, place, args, kwargs, form):
    """Dimensions of one element come back where `squeeze`, without arguments, with one dimension or with several, took them away."""
    dims = args[0] if args else kwargs.get("dim", list(range(base.dim())))
    dims = {d % max(base.dim(), 1) for d in ([dims] if isinstance(dims, int) else dims)}
    for d in sorted(dims):
        if base.dim() and base.size(d) == 1:
            view = form(aten.unsqueeze.default)(view, d)
    return view


def _expanded(base, view, place, args, kwargs, form):
    if view.numel() != base.numel():
        _refuse_overlap("expand")
    return _reshaped(base, view, place, args, kwargs, form)


def _refuse_overlap(name):
    raise RuntimeError(
        f"While executing {name}, functionalization encountered a tensor being mutated that has internal overlap: its elements may share memory. "
        "Clone it before it is changed in place."
    )


def _same(base, view, place, args, kwargs, form):
    return view


def _as_it_is(operator):
    return operator


def _pieces(sizes, dim):
    """Puts the piece with the number `place` back: sizes(base, *args) are the lengths of all of them."""

    def put(base, view, place, args, kwargs, form):
        d = args[dim] if len(args) > dim else kwargs.get("dim", 0)
        lengths = sizes(base, d, *args)
        start = sum(lengths[:place])
        return aten.slice_scatter.default(base, view, d, start, start + lengths[place], 1)

    return put


def _equal_pieces(base, d, size, *rest):
    total = base.size(d)
    return [min(size, total - start) for start in range(0, max(total, 1), size)]


def _scatter(name):
    def put(base, view, place, args, kwargs, form):
        return getattr(aten, name).default(base, view, *args, **kwargs)

    return put


_INVERSES = {
    "alias": _same, "detach": _same, "view_as": _reshaped, "expand": _expanded,
    "as_strided": _scatter("as_strided_scatter"),
    "diagonal": _scatter("diagonal_scatter"),
    "select": _scatter("select_scatter"),
    "slice": _scatter("slice_scatter"),
    "t": lambda base, view, place, args, kwargs, form: form(aten.t.default)(view),
    "transpose": lambda base, view, place, args, kwargs, form: form(aten.transpose.int)(view, *args),
    "swapaxes": lambda base, view, place, args, kwargs, form: form(aten.transpose.int)(view, *args),
    "swapdims": lambda base, view, place, args, kwargs, form: form(aten.transpose.int)(view, *args),
    "permute": lambda base, view, place, args, kwargs, form: form(aten.permute.default)(view, _inverse_permutation(args[0])),
    "split": _pieces(_equal_pieces, 1),
    "split_with_sizes": _pieces(lambda base, d, sizes, *rest: list(sizes), 1),
    "squeeze": _squeezed, "unsqueeze": lambda base, view, place, args, kwargs, form: form(aten.squeeze.dim)(view, args[0] if args else kwargs["dim"]),
    "view": _reshaped, "_unsafe_view": _reshaped, "_reshape_alias": _reshaped,
    "unbind": lambda base, view, place, args, kwargs, form: aten.select_scatter.default(base, view, args[0] if args else kwargs.get("dim", 0), place),
    "view_as_real": lambda base, view, place, args, kwargs, form: form(aten.view_as_complex.default)(view),
    "view_as_complex": lambda base, view, place, args, kwargs, form: form(aten.view_as_real.default)(view),
    "real": lambda base, view, place, args, kwargs, form: cresset.complex(view, base.imag),
    "imag": lambda base, view, place, args, kwargs, form: cresset.complex(base.real, view),
}  # fmt: skip


def _name_of(view):
    name = str(view._schema.name if hasattr(view, "_schema") else view.__name__).rpartition("::")[2]
    return name.removesuffix("_copy")


def _one(base, view, args, kwargs, place):
    out = view(base, *args, **kwargs)
    return out if place is None else out[place]


def _is_copying(view):
    return hasattr(view, "_schema") and view._schema.name.endswith("_copy")


def replay(base, views):
    """The view of `base` that a list of (operator, arguments, keyword arguments, place among several results) makes."""
    for view, args, kwargs, place in views:
        base = _one(base, view, args, kwargs, place)
    return base


def put_into(base, views, value):
    """`base` with the part that `views` lead to replaced by `value`."""
    if not views:
        return value
    view, args, kwargs, place = views[0]
    inner = put_into(_one(base, view, args, kwargs, place), views[1:], value) if views[1:] else value
    inverse = _INVERSES.get(_name_of(view))
    if inverse is None:
        _refuse_overlap(_name_of(view))
    if _name_of(view) == "view" and inner.dtype != base.dtype:
        return inner.view(base.dtype)
    # Where views are copies, the way back has no views either.
    return inverse(base, inner, place, args, kwargs, copying_form if _is_copying(view) else _as_it_is)


@functools.lru_cache(maxsize=None)
def copying_form(view):
    """The operator that gives a copy in place of a view."""
    packet = getattr(aten, f"{_name_of(view)}_copy", None)
    return view if packet is None else getattr(packet, view._overloadname, view)


# --- operators that write -------------------------------------------------------------------------------------------------------


# What functional factories are told and out= forms read off their out.
_OPTIONS = ("dtype", "layout", "device", "pin_memory")


def _same_inputs(schema, other):
    """Do both take the same arguments, apart from the ones that are written behind the star (out) and options that follow from them?"""
    ours = [(a.name, a.type) for a in schema.arguments if not a.is_out]
    theirs = [(a.name, a.type) for a in other.arguments]
    return ours == theirs or ours == [(n, t) for n, t in theirs if n not in _OPTIONS]


@functools.lru_cache(maxsize=None)
def functional_form(func):
    """f(args, kwargs) that gives the new values of what `func` writes, in the order of its schema, and changes nothing; with them what `func` gives,
    where that is not these values alone (None where it is)."""
    schema = func._schema
    name = schema.name.rpartition("::")[2]
    namespace = getattr(cresset.ops, schema.name.partition("::")[0])
    outs = [a.name for a in schema.arguments if a.is_out]
    base = name if outs else name[:-1] if name.endswith("_") else None
    packet = getattr(namespace, base, None) if base else None
    for overload in packet.overloads() if packet is not None else ():
        other = getattr(packet, overload)
        if any(a.is_write for a in other._schema.arguments) or not _same_inputs(schema, other._schema):
            continue
        told = {a.name for a in schema.arguments}
        options = (
            [a.name for a in other._schema.arguments if a.name in ("dtype", "device") and a.name not in told]
            if outs
            else []
        )

        def call(args, kwargs):
            given = {k: v for k, v in kwargs.items() if k not in outs}
            given.update({option: getattr(kwargs[outs[0]], option) for option in options})
            results = other(*args, **given)
            return list(results) if isinstance(results, (tuple, list)) else [results], None

        return call
    named = _named_form(namespace, name, schema)
    return functools.partial(on_copies, func) if named is None else named


def _named_form(namespace, name, schema):
    """f(args, kwargs) by the operator `…_functional`, which gives what is written behind the other results; None where there is none."""
    packet = getattr(namespace, f"{name}_functional", None)
    other = next((o for o in (getattr(packet, n) for n in (packet.overloads() if packet else ())) if _same_inputs(schema, o._schema)), None)
    if other is None:
        return None
    own = sum(r.alias_info is None for r in schema.returns)

    def call(args, kwargs):
        results = other(*args, **kwargs)
        return list(results[own:]), results[:own] if own != 1 else results[0]

    return call


def on_copies(func, args, kwargs):
    """An operator without functional form writes to copies."""
    args, kwargs, written = list(args), dict(kwargs), []

    def copied(value):
        if isinstance(value, (list, tuple)):
            return [copied(v) for v in value]
        if not isinstance(value, cresset.Tensor):
            return value
        written.append(value.clone())
        return written[-1]

    for place, argument in enumerate(func._schema.arguments):
        if not argument.is_write:
            continue
        if place < len(args):
            args[place] = copied(args[place])
        elif argument.name in kwargs:
            kwargs[argument.name] = copied(kwargs[argument.name])
    out = func(*args, **kwargs)
    return written, None if all(r.alias_info is not None for r in func._schema.returns) else out
