"""Reductions over dimensions. Along a dimension that stays a division stays; along one that goes the ranks' results are terms of the whole result,
where the reduction is made of its own results (a sum of sums, a maximum of maxima), else the whole dimension comes first.
"""

import math

import cresset

from .._call import Strategy, everywhere
from ..placement_types import Partial, Replicate, Shard
from .pointwise import outputs_like
from .registry import register

# operator → the reduction that makes the result of the ranks' results
_TERMS = {
    "sum": "sum", "nansum": "sum", "mean": "avg", "max": "max", "min": "min", "amax": "max", "amin": "min", "prod": "product", "any": "max", "all": "min",
    "count_nonzero": "sum",
}  # fmt: skip
_WHOLE = (
    "std", "var", "std_mean", "var_mean", "logsumexp", "argmax", "argmin", "median", "nanmedian", "kthvalue", "mode", "cummax", "cummin", "topk", "aminmax",
    "_softmax", "_log_softmax", "softmax", "log_softmax", "_safe_softmax", "quantile",
)  # fmt: skip


def reduced_dims(call, spec):
    """The dimensions that are reduced, and whether they stay with size 1."""
    dim = call.argument("dim")
    keep = bool(call.argument("keepdim"))
    if dim is None or (isinstance(dim, (list, tuple)) and not dim):
        return list(range(spec.ndim)), keep
    dims = dim if isinstance(dim, (list, tuple)) else [dim]
    return [d % spec.ndim if spec.ndim else 0 for d in dims], keep


def _is_pointwise(call):
    """max and min of two tensors."""
    return len(call.specs) > 1 and call.op._schema.overload_name in ("other", "out") and call.argument("other") is not None


def kept(dim, gone, keep):
    """Where a dimension that stays is in the result."""
    return dim if keep else dim - sum(g < dim for g in gone)


def _stays(call, spec, gone, keep):
    rest = (Replicate(),) * (len(call.specs) - 1)
    return [
        Strategy(outputs_like(call, Shard(kept(d, gone, keep))), (Shard(d), *rest)) for d in range(spec.ndim) if d not in gone and spec.shape[d] > 0
    ]


def _equal_parts(spec, dim):
    return spec.shape[dim] % spec.num_shards_map[dim] == 0


def _terms(call, spec, gone, kind):
    """The dimensions along which results of parts are terms."""
    if len(call.op._schema.returns) > 1:  # values with places of the whole dimension
        return []
    return [Strategy(Partial(kind), (Shard(d),)) for d in gone if kind != "avg" or _equal_parts(spec, d)]


@register(*_TERMS)
def made_of_results(call):
    """Sums, means, products, extremes, any and all."""
    if _is_pointwise(call):
        from .pointwise import rule

        return rule(call)
    spec, kind = call.specs[0], _TERMS[call.name]
    gone, keep = reduced_dims(call, spec)
    found = [everywhere(call)._replace(outputs=outputs_like(call, Replicate()))] + _stays(call, spec, gone, keep)
    if spec.tensor_meta.dtype.is_complex and kind not in ("sum", "avg"):
        return found
    found += _terms(call, spec, gone, kind)
    if call.name in ("sum", "mean"):
        found += [Strategy(p, (p,)) for p in {p for p in spec.placements if type(p) is Partial and p.reduce_op in ("sum", "avg")}]
    elif call.name in ("max", "min", "amax", "amin") and len(call.op._schema.returns) == 1:
        found += [Strategy(p, (p,)) for p in {p for p in spec.placements if type(p) is Partial and p.reduce_op == kind}]
    return [_with_out(call, s) for s in found]


def _with_out(call, strategy):
    out = call.place("out")
    if out is None:
        return strategy
    inputs = list(strategy.inputs) + [Replicate()] * (len(call.specs) - len(strategy.inputs))
    inputs[out] = strategy.outputs
    return strategy._replace(inputs=tuple(inputs))


@register(*_WHOLE)
def of_whole_dimensions(call):
    """Reductions and the like that need a whole dimension; softmax and topk keep it."""
    spec = call.specs[0]
    gone, keep = reduced_dims(call, spec)
    if call.name in ("_softmax", "_log_softmax", "_safe_softmax", "softmax", "log_softmax", "cummax", "cummin", "topk"):
        gone, keep = gone if call.argument("dim") is not None else [spec.ndim - 1], True
    if call.name == "kthvalue" and call.argument("dim") is None:
        gone = [spec.ndim - 1]
    return [everywhere(call)._replace(outputs=outputs_like(call, Replicate()))] + _stays(call, spec, gone, keep)


@register("_softmax_backward_data", "_log_softmax_backward_data")
def softmax_backward(call):
    """The gradient of softmax: along other dimensions than its own."""
    spec = call.specs[0]
    dim = call.argument("dim") % max(1, spec.ndim)
    return [everywhere(call)] + [Strategy(Shard(d), (Shard(d),) * len(call.specs)) for d in range(spec.ndim) if d != dim]


class _NormPartial(Partial):
    """Norms of parts: their norm is the norm of the whole."""

    __slots__ = ("norm_type",)

    def __init__(self, norm_type=2):
        super().__init__({math.inf: "max", -math.inf: "min"}.get(norm_type, "sum"))
        self.norm_type = norm_type

    def __eq__(self, other):
        return isinstance(other, _NormPartial) and self.norm_type == other.norm_type

    def __hash__(self):
        return hash((_NormPartial, self.norm_type))

    def __repr__(self):
        return f"_NormPartial(reduce_op={self.reduce_op}, norm_type={self.norm_type})"

    def __reduce__(self):
        return _NormPartial, (self.norm_type,)

    def _powers(self, tensor):
        return tensor if self.reduce_op != "sum" or self.norm_type in (0, 1) else tensor**self.norm_type

    def _root(self, tensor):
        return tensor if self.reduce_op != "sum" or self.norm_type in (0, 1) else tensor ** (1.0 / self.norm_type)

    def _reduce_value(self, tensor, mesh, mesh_dim):
        return self._root(super()._reduce_value(self._powers(tensor), mesh, mesh_dim) + 0)

    def _reduce_shard_value(self, tensor, mesh, mesh_dim, shard_spec):
        return self._root(super()._reduce_shard_value(self._powers(tensor), mesh, mesh_dim, shard_spec) + 0)

    def _partition_value(self, tensor, mesh, mesh_dim):
        if self.reduce_op != "sum":
            return tensor
        count = mesh.size(mesh_dim)
        return tensor / (count if self.norm_type in (0, 1) else count ** (1.0 / self.norm_type))


def _order(call):
    order = call.argument("ord")
    if order is None:
        order = call.argument("p")
    return 2 if order is None else order


@register("linalg_vector_norm", "norm")
def vector_norm(call):
    """Norms over dimensions: norms of parts are terms of a norm."""
    spec, order = call.specs[0], _order(call)
    gone, keep = reduced_dims(call, spec)
    found = [everywhere(call)] + _stays(call, spec, gone, keep)
    if isinstance(order, (int, float)):
        kind = _NormPartial(order)
        found += [Strategy(kind, (Shard(d),)) for d in gone if order not in (-math.inf,) or spec.shape[d] >= max(spec.num_shards_map[d], 1)]
        found += [Strategy(p, (p,)) for p in {p for p in spec.placements if p == kind}]
    return [_with_out(call, s) for s in found]


@register("equal", "allclose")
def equal(call):
    """Two tensors under the same placements; the ranks' answers are put together by `together`."""
    first = call.specs[0]
    found = [everywhere(call)._replace(outputs=None)]
    for p in first.placements:
        if p.is_shard():
            found.append(Strategy(None, (p, p), together))
    return found


def together(op, args, kwargs, call, mesh_dims):
    """True where the answers of all ranks along these mesh dimensions are."""
    from ... import _collectives

    answer = cresset.tensor(int(op(*args, **kwargs)))
    for mesh_dim in mesh_dims:
        _collectives.all_reduce(answer, op=_collectives.ReduceOp.MIN, group=call.mesh.get_group(mesh_dim))
    return bool(answer.item())


@register("_local_scalar_dense", "item", "is_nonzero")
def number(call):
    """The value: the whole on every rank."""
    return [everywhere(call)._replace(outputs=None)]
