"""Operators of several tensors or results: joining, cutting, and lists in step (`_foreach_…`, which _foreach.py runs tensor by tensor)."""

from .._call import Strategy, everywhere
from ..placement_types import Replicate, Shard
from .registry import register


def _kinds(call):
    return {p for spec in call.specs for p in spec.placements if p.is_partial("sum") or p.is_partial("avg")}


@register("cat", "concat", "_cat")
def cat(call):
    """Along other dimensions than the joined one; empty one-dimensional tensors do not count."""
    specs = call.specs
    first = next((s for s in specs if s.ndim != 1 or s.shape[0] != 0), specs[0])
    dim = (call.argument("dim") or 0) % max(1, first.ndim)
    dims = [p.dim for s in specs for p in s.placements if p.is_shard() and p.dim != dim and s.ndim == first.ndim]
    found = [everywhere(call)]
    for d in dict.fromkeys(dims):
        found.append(Strategy(Shard(d), tuple(Shard(d) if s.ndim == first.ndim else Replicate() for s in specs)))
    return found + [Strategy(p, (p,) * len(specs)) for p in _kinds(call)]


@register("stack")
def stack(call):
    """Along all dimensions that there were."""
    specs = call.specs
    dim = (call.argument("dim") or 0) % (specs[0].ndim + 1)
    dims = [p.dim for s in specs for p in s.placements if p.is_shard()]
    found = [everywhere(call)] + [Strategy(Shard(d + (d >= dim)), (Shard(d),) * len(specs)) for d in dict.fromkeys(dims)]
    return found + [Strategy(p, (p,) * len(specs)) for p in {p for s in specs for p in s.placements if p.is_partial()}]


@register("split", "split_with_sizes", "chunk", "unsafe_split", "unsafe_chunk", "unsafe_split_with_sizes", "tensor_split")
def split(call):
    """Along other dimensions than the cut one."""
    spec = call.specs[0]
    dim = (call.argument("dim") or 0) % max(1, spec.ndim)
    found = [everywhere(call)] + [Strategy(Shard(d), (Shard(d),)) for d in range(spec.ndim) if d != dim]
    return found + [Strategy(p, (p,)) for p in {p for p in spec.placements if p.is_partial()}]


@register("unbind")
def unbind(call):
    """Along other dimensions than the one that goes."""
    spec = call.specs[0]
    dim = (call.argument("dim") or 0) % max(1, spec.ndim)
    found = [everywhere(call)] + [Strategy(Shard(d - (d > dim)), (Shard(d),)) for d in range(spec.ndim) if d != dim]
    return found + [Strategy(p, (p,)) for p in {p for p in spec.placements if p.is_partial()}]
