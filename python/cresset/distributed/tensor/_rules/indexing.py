"""Embeddings, gathers and scatters: the tables may be divided along dimensions that are not looked up; indices along theirs."""

import cresset

from .._call import Strategy, everywhere
from ..placement_types import Partial, Replicate, Shard, local_range
from .pointwise import broadcast_shape, shard_of
from .registry import register


class _MaskPartial(Partial):
    """Terms of which one rank has what was looked up, in a table of sizes `table`, and the others zeros."""

    __slots__ = ("table",)

    def __init__(self, reduce_op="sum", table=None):
        super().__init__(reduce_op)
        self.table = table

    def __eq__(self, other):
        return isinstance(other, _MaskPartial) and self.table == other.table

    def __hash__(self):
        return hash((_MaskPartial, self.table))

    def __reduce__(self):
        return _MaskPartial, (self.reduce_op, self.table)


def _own_rows(call, place, mesh_dims):
    """(number, first) of the rows of a table that are this rank's, where `mesh_dims` divide it."""
    spec = call.specs[place]
    return local_range(spec.shape[0], call.mesh.shape, list(mesh_dims), call.mesh.get_coordinate())


def embedding_of_own_rows(op, args, kwargs, call, mesh_dims):
    """Rows that this rank has; zeros for others."""
    weight, indices = args[0], args[1]
    count, first = _own_rows(call, 0, mesh_dims)
    own = (indices >= first) & (indices < first + count)
    if count == 0:
        return weight.new_zeros((*indices.shape, weight.shape[1]))
    rows = op(weight, cresset.where(own, indices - first, cresset.zeros_like(indices)))
    return rows.masked_fill(own.logical_not().unsqueeze(-1), 0)


@register("embedding")
def embedding(call):
    """Rows of the table divided: terms; columns divided: columns of the result; indices divided: rows of the result."""
    weight, indices = call.specs[0], call.specs[1]
    found = [everywhere(call)]
    found.append(Strategy(Shard(indices.ndim), (Shard(1), Replicate())))
    found.append(Strategy(_MaskPartial(table=tuple(weight.shape)), (Shard(0), Replicate()), embedding_of_own_rows))
    found += [Strategy(Shard(d), (Replicate(), Shard(d))) for d in range(indices.ndim)]
    found += [Strategy(p, (p, Replicate())) for p in {p for p in weight.placements if p.is_partial("sum")}]
    return found


@register("embedding_dense_backward", "embedding_backward")
def embedding_backward(call):
    """The gradient of the table: terms where indices are divided, columns where columns are."""
    grad, indices = call.specs[0], call.specs[1]
    found = [everywhere(call), Strategy(Shard(1), (Shard(grad.ndim - 1), Replicate()))]
    found += [Strategy(Partial(), (Shard(d), Shard(d))) for d in range(indices.ndim)]
    found += [Strategy(p, (p, Replicate())) for p in {p for p in grad.placements if p.is_partial("sum")}]
    return found


def gather_of_own(op, args, kwargs, call, mesh_dims):
    """What this rank has of the looked-up dimension; zeros for the rest."""
    source, dim, index = args[0], args[1], args[2]
    dim %= source.dim()
    count, first = local_range(call.specs[0].shape[dim], call.mesh.shape, list(mesh_dims), call.mesh.get_coordinate())
    if count == 0:
        return source.new_zeros(index.shape)
    own = (index >= first) & (index < first + count)
    return op(source, dim, cresset.where(own, index - first, cresset.zeros_like(index))).masked_fill(own.logical_not(), 0)


@register("gather", "take_along_dim")
def gather(call):
    """Along other dimensions than the looked-up one, where both have the same size; along it indices alone."""
    source, index = call.specs[0], call.specs[1]
    dim = (call.argument("dim") or 0) % max(1, source.ndim)
    found = [everywhere(call)]
    if index.shape and source.ndim == index.ndim:
        found.append(Strategy(Shard(dim), (Replicate(), Shard(dim))))
    for d in range(source.ndim):
        if d != dim and source.shape[d] == index.shape[d]:
            found.append(Strategy(Shard(d), (Shard(d), Shard(d))))
    if call.name == "gather" and source.ndim:
        found.append(Strategy(_MaskPartial(table=tuple(source.shape)), (Shard(dim), Replicate()), gather_of_own))
    return found


@register("scatter", "scatter_add", "scatter_reduce")
def scatter(call):
    """Along other dimensions than the written one, where all tensors have the same size."""
    source = call.specs[0]
    dim = call.argument("dim") % max(1, source.ndim)
    found = [everywhere(call)]
    for d in range(source.ndim):
        if d != dim and all(spec.ndim == source.ndim and spec.shape[d] == source.shape[d] for spec in call.specs):
            found.append(Strategy(Shard(d), (Shard(d),) * len(call.specs)))
    return found


@register("index_select")
def index_select(call):
    """Along other dimensions; along it the index alone."""
    source = call.specs[0]
    dim = call.argument("dim") % max(1, source.ndim)
    found = [everywhere(call), Strategy(Shard(dim), (Replicate(), Shard(0)))]
    found += [Strategy(Shard(d), (Shard(d), Replicate())) for d in range(source.ndim) if d != dim]
    found += [Strategy(p, (p, Replicate())) for p in {p for p in source.placements if p.is_partial("sum")}]
    return found


@register("index_add", "index_copy", "index_fill")
def index_add(call):
    """Along other dimensions than the written one."""
    source = call.specs[0]
    dim = call.argument("dim") % max(1, source.ndim)
    found = [everywhere(call)]
    for d in range(source.ndim):
        if d != dim:
            inputs = tuple(Replicate() if i == call.place("index") or s.ndim != source.ndim else Shard(d) for i, s in enumerate(call.specs))
            found.append(Strategy(Shard(d), inputs))
    return found


def _index_layout(indices):
    """(places of the dimensions with an index, whether they are neighbours)."""
    places = [d for d, index in enumerate(indices) if index is not None]
    return places, places == list(range(places[0], places[-1] + 1)) if places else True


@register("index", "_unsafe_index")
def index(call):
    """Along dimensions without an index; along dimensions of the indices themselves."""
    source, indices = call.specs[0], call.argument("indices")
    if any(i is not None and i.tensor_meta.dtype in (cresset.bool, cresset.uint8) for i in indices):
        return [everywhere(call)]
    places, neighbours = _index_layout(indices)
    shape = broadcast_shape([i.shape for i in indices if i is not None])
    front = places[0] if neighbours and places else 0
    found = [everywhere(call)]
    for d in range(len(shape)):
        inputs = tuple(shard_of(s.shape, shape, d) for s in call.specs[1:])
        found.append(Strategy(Shard(front + d), (Replicate(), *inputs)))
    rest = (Replicate(),) * (len(call.specs) - 1)
    for d in range(source.ndim):
        if d not in places:
            before = sum(p < d for p in places)
            found.append(Strategy(Shard(d - before + (len(shape) if d > front or not neighbours else 0)), (Shard(d), *rest)))
    return found


@register("index_put", "_index_put_impl", "_unsafe_index_put")
def index_put(call):
    """Along dimensions without an index, where the values have them."""
    source, indices, values = call.specs[0], call.argument("indices"), call.argument("values")
    found = [everywhere(call)]
    if any(i is not None and i.tensor_meta.dtype in (cresset.bool, cresset.uint8) for i in indices):
        return found
    places, neighbours = _index_layout(indices)
    shape = broadcast_shape([i.shape for i in indices if i is not None])
    front = places[0] if neighbours and places else 0
    out_ndim = source.ndim - len(places) + len(shape)
    middle = (Replicate(),) * (len(call.specs) - 2)
    for d in range(source.ndim):
        if d not in places:
            goal = d - sum(p < d for p in places) + (len(shape) if d > front or not neighbours else 0)
            own = goal - (out_ndim - values.ndim)
            value = Shard(own) if own >= 0 and values.shape[own] == source.shape[d] else Replicate()
            found.append(Strategy(Shard(d), (Shard(d), *middle, value)))
    found += [Strategy(p, (p, *middle, p)) for p in {p for p in source.placements if p.is_partial("sum")} if call.argument("accumulate")]
    return found


@register("one_hot")
def one_hot(call):
    """Along all dimensions of the indices, where the number of classes is given."""
    spec = call.specs[0]
    found = [everywhere(call)]
    return found + [Strategy(Shard(d), (Shard(d),)) for d in range(spec.ndim) if call.argument("num_classes") not in (None, -1)]


@register("nonzero", "masked_select", "unique2", "_unique2", "bincount")
def of_values(call):
    """Results whose sizes depend on values: the whole on every rank."""
    from .pointwise import outputs_like

    return [everywhere(call)._replace(outputs=outputs_like(call, Replicate()))]
