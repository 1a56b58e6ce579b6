"""Views and permutations: each operator says where a dimension goes, and so where its division does.

A mapper is called with the sizes and the operator's further arguments, and gives {dimension: dimension of the result} of those whose division stays as it is.
"""

import math

from .._call import Strategy, everywhere
from ..placement_types import Replicate, Shard
from .registry import register


def view_groups(source, target):
    """Pairs of runs of dimensions, of the old sizes and the new, with equal numbers of elements and as short as possible."""
    groups, i, j = [], 0, 0
    while i < len(source) or j < len(target):
        left, right, a, b = [], [], 1, 1
        while a != b or not (left or right):
            if i < len(source) and (a < b or not left or j == len(target)):
                left.append(i)
                a *= source[i]
                i += 1
            if j < len(target) and (b < a or not right):
                right.append(j)
                b *= target[j]
                j += 1
        groups.append((left, right))
    return groups


def inferred(shape, size):
    """Sizes with -1 filled in."""
    size = [int(s) for s in size]
    if -1 in size:
        rest = math.prod(s for s in size if s != -1)
        size[size.index(-1)] = math.prod(shape) // rest if rest else 0
    return size


def _ones(sizes):
    """{(number of elements before it, how many there are before it): dimension} of dimensions of size 1."""
    found, before = {}, 1
    for d, size in enumerate(sizes):
        if size == 1:
            found[before, sum(key[0] == before for key in found)] = d
        before *= size
    return found


def view_map(spec, target):
    """Where divisions go when a tensor is seen with other sizes: the first dimension of a run keeps its division where the parts stay whole, and one of
    size 1 where there is one at the same place."""
    source, target = list(spec.shape), inferred(spec.shape, target)
    counts, mapping = spec.num_shards_map, {}
    if 0 in source:
        return {}
    ones = _ones(target)
    mapping.update((d, ones[place]) for place, d in _ones(source).items() if place in ones)
    for left, right in view_groups(source, target):
        big_left, big_right = [d for d in left if source[d] != 1], [d for d in right if target[d] != 1]
        if not big_left or not big_right:
            continue
        first, goal = big_left[0], big_right[0]
        if len(big_left) == len(big_right) == 1:
            mapping[first] = goal
        elif source[first] % counts[first] == 0 and target[goal] % counts[first] == 0:
            mapping[first] = goal
    return mapping


def _dims(value, ndim):
    values = list(value) if isinstance(value, (list, tuple)) else [value]
    return [v % ndim if ndim else 0 for v in values]


def _permuted(order):
    return {source: place for place, source in enumerate(order)}


def _permute(call, spec):
    return _permuted(_dims(call.argument("dims"), spec.ndim))


def _transpose(call, spec):
    order = list(range(spec.ndim))
    if spec.ndim:
        a, b = call.argument("dim0") % spec.ndim, call.argument("dim1") % spec.ndim
        order[a], order[b] = order[b], order[a]
    return _permuted(order)


def _t(call, spec):
    return _permuted(list(reversed(range(spec.ndim))))


def _unsqueeze(call, spec):
    dim = call.argument("dim") % (spec.ndim + 1)
    return {d: d + (d >= dim) for d in range(spec.ndim)}


def _squeeze(call, spec):
    dim = call.argument("dim")
    gone = [d for d in (range(spec.ndim) if dim is None else _dims(dim, spec.ndim)) if spec.shape[d] == 1]
    return {d: d - sum(g < d for g in gone) for d in range(spec.ndim) if d not in gone}


def _expand(call, spec):
    more = len(call.argument("size")) - spec.ndim
    return {d: d + more for d in range(spec.ndim) if spec.shape[d] != 1 or int(call.argument("size")[d + more]) in (1, -1)}


def _view(call, spec):
    size = call.argument("size")
    return view_map(spec, call.argument("shape") if size is None else size)


def _dtype_view(call, spec):
    return {d: d for d in range(spec.ndim - 1)} | ({spec.ndim - 1: spec.ndim - 1} if call.argument("dtype").itemsize == spec.tensor_meta.dtype.itemsize else {})


def _slice(call, spec):
    dim = (call.argument("dim") or 0) % spec.ndim
    start, end, step = call.argument("start"), call.argument("end"), call.argument("step")
    whole = (start in (None, 0) or start <= -spec.shape[dim]) and (end is None or end >= spec.shape[dim]) and step in (None, 1)
    return {d: d for d in range(spec.ndim) if d != dim or whole}


def _without_dim(name, gone):
    def mapper(call, spec):
        dim = (call.argument(name) or 0) % spec.ndim
        return {d: d - (gone and d > dim) for d in range(spec.ndim) if d != dim}

    return mapper


def _two_dims_last(call, spec):
    a, b = (call.argument("dim1") or 0) % spec.ndim, (1 if call.argument("dim2") is None else call.argument("dim2")) % spec.ndim
    rest = [d for d in range(spec.ndim) if d not in (a, b)]
    return {d: i for i, d in enumerate(rest)}


def _unfold(call, spec):
    dim = call.argument("dimension") % spec.ndim
    return {d: d for d in range(spec.ndim) if d != dim}


def _flip(call, spec):
    dims = _dims(call.argument("dims"), spec.ndim)
    return {d: d for d in range(spec.ndim) if d not in dims}


def _roll(call, spec):
    dims = call.argument("dims")
    return {d: d for d in range(spec.ndim) if dims and d not in _dims(dims, spec.ndim)}


def _repeat(call, spec):
    repeats = call.argument("repeats")
    more = len(repeats) - spec.ndim
    return {d: d + more for d in range(spec.ndim) if repeats[d + more] == 1}


def _triangle(call, spec):
    return {d: d for d in range(spec.ndim - 2)}


def _complex_view(call, spec):
    return {d: d for d in range(spec.ndim)}


def _complex_from_real(call, spec):
    return {d: d for d in range(spec.ndim - 1)}


_MAPPERS = {
    "permute": _permute, "transpose": _transpose, "t": _t, "numpy_T": _t, "unsqueeze": _unsqueeze, "squeeze": _squeeze, "expand": _expand, "view": _view,
    "_unsafe_view": _view, "reshape": _view, "_reshape_alias": _view, "view.dtype": _dtype_view, "slice": _slice, "select": _without_dim("dim", True),
    "unfold": _unfold, "diagonal": _two_dims_last, "flip": _flip, "roll": _roll, "repeat": _repeat, "tril": _triangle, "triu": _triangle,
    "view_as_real": _complex_view, "view_as_complex": _complex_from_real, "cumsum": _without_dim("dim", False), "cumprod": _without_dim("dim", False),
    "logcumsumexp": _without_dim("dim", False), "sort": _without_dim("dim", False), "argsort": _without_dim("dim", False),
}  # fmt: skip

_LINEAR = set(_MAPPERS) - {"view.dtype", "cumprod", "logcumsumexp", "sort", "argsort"}


def rule_with(mapper, linear, outputs=1):
    """The rule of an operator of one tensor, of its mapper."""

    def rule(call):
        spec, found = call.specs[0], [everywhere(call)]
        rest = (Replicate(),) * (len(call.specs) - 1)
        for dim, goal in mapper(call, spec).items():
            found.append(Strategy(Shard(goal), (Shard(dim), *rest)))
        if linear:
            kinds = {p for p in spec.placements if p.is_partial()}
            found += [Strategy(kind, (kind, *rest)) for kind in kinds]
        if len(call.op._schema.returns) > 1:
            count = len(call.op._schema.returns)
            found = [s._replace(outputs=(s.outputs,) * count) for s in found]
        return found

    return rule


for _name, _mapper in _MAPPERS.items():
    _copies = [f"{_name}_copy"] if "." not in _name else []
    register(_name, *_copies)(rule_with(_mapper, _name in _LINEAR))


def _transformed(call, spec):
    """Fourier transforms need their dimensions whole."""
    return {d: d for d in range(spec.ndim) if d not in _dims(call.argument("dim"), spec.ndim)}


register("_fft_c2c", "_fft_c2r", "_fft_r2c")(rule_with(_transformed, True))


def _drawn_from(call, spec):
    """Numbers of distributions along the last dimension."""
    return {d: d for d in range(spec.ndim - 1)}


register("multinomial", "_sample_dirichlet")(rule_with(_drawn_from, False))


@register("slice_scatter", "select_scatter")
def scatter_into_part(call):
    """A part is replaced along other dimensions than the cut one."""
    spec = call.specs[0]
    dim, gone = (call.argument("dim") or 0) % spec.ndim, call.name.startswith("select")
    found = [everywhere(call)]
    return found + [Strategy(Shard(d), (Shard(d), Shard(d - (gone and d > dim)))) for d in range(spec.ndim) if d != dim]


@register("slice_backward", "select_backward", "unfold_backward", "diagonal_backward")
def backward_of_part(call):
    """The gradient of a part is as large as the whole: dimensions that were not cut stay."""
    spec, sizes = call.specs[0], list(call.argument("input_sizes") if call.argument("input_sizes") is not None else call.argument("input_size") or call.argument("in_sizes") or [])
    found = [everywhere(call)]
    dim = (call.argument("dim") or 0) % len(sizes) if call.name.startswith(("slice", "select")) else None
    if dim is not None:
        for d in range(len(sizes)):
            if d != dim:
                found.append(Strategy(Shard(d), (Shard(d - (call.name.startswith("select") and d > dim)),)))
    found += [Strategy(kind, (kind,)) for kind in {p for p in spec.placements if p.is_partial()}]
    return found
