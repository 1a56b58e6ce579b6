"""Operators that work element by element, with broadcasting: found by the word `pointwise`, which is how their rows run on a batch, or by the tag.

They follow what their inputs have: any dimension along which an input is divided. Terms of a sum pass through those that are linear.
"""

from .._call import Strategy, everywhere
from ..placement_types import Partial, Replicate, Shard
from .registry import register, register_word

# Linear in all their tensors together: terms in, terms out.
_ADDITIVE = {"add", "sub", "neg", "real", "imag", "positive", "_conj", "conj", "_neg_view", "to", "_to_copy", "clone", "detach", "alias", "lift_fresh", "lift", "contiguous", "rsub", "subtract"}
# Linear in the first, the others being the same on all ranks.
_SCALING = {"mul", "div", "true_divide", "multiply", "divide"}
# Of monotone functions maxima and minima pass through, too: only those that keep them exactly.
_IDENTITY = {"to", "_to_copy", "clone", "detach", "alias", "lift_fresh", "lift", "contiguous", "positive"}


def broadcast_shape(shapes):
    """The common shape."""
    ndim = max((len(s) for s in shapes), default=0)
    out = [1] * ndim
    for shape in shapes:
        for i, size in enumerate(shape):
            place = ndim - len(shape) + i
            if size != 1:
                out[place] = size
    return tuple(out)


def shard_of(shape, out_shape, dim):
    """The placement of an input where dimension `dim` of the broadcast result is divided."""
    own = dim - (len(out_shape) - len(shape))
    return Shard(own) if own >= 0 and shape[own] == out_shape[dim] and out_shape[dim] != 1 else Replicate()


def _input_shard(spec, out_shape, dim):
    """The same, for a dimension of size 1, too, which is divided where the input has it so: one rank has it, the others nothing."""
    own = Shard(dim - (len(out_shape) - spec.ndim))
    if out_shape[dim] == 1 and own in spec.placements:
        return own
    return shard_of(spec.shape, out_shape, dim)


def result_shape(call):
    """The broadcast shape of the tensors that are read, or of the one that is written."""
    written = set(call.written())
    read = [spec.shape for i, spec in enumerate(call.specs) if i not in written]
    return broadcast_shape([call.specs[i].shape for i in written] or read)


def followed_dims(call, out_shape):
    """Dimensions of the result that some input is divided along, those of the first input first."""
    dims = []
    for spec in call.specs:
        for placement in spec.placements:
            if placement.is_shard():
                dim = placement.dim + len(out_shape) - spec.ndim
                if dim >= 0 and dim not in dims and spec.shape[placement.dim] == out_shape[dim]:
                    dims.append(dim)
    return dims


def _partial_kinds(call):
    kinds = []
    for spec in call.specs:
        kinds += [p for p in spec.placements if type(p) is Partial and p not in kinds]
    return kinds


def outputs_like(call, placement):
    """The placement for each result."""
    returns = call.op._schema.returns
    return placement if len(returns) == 1 else (placement,) * len(returns)


def linear_strategies(call):
    """Terms of a reduction that pass through."""
    name = call.name.rstrip("_")
    kinds = _partial_kinds(call)
    found, count = [], len(call.specs)
    for kind in kinds:
        if name in _IDENTITY or (name in _ADDITIVE and kind.reduce_op in ("sum", "avg") and _all_tensors(call)):
            found.append(Strategy(outputs_like(call, kind), (kind,) * count))
        elif name in _SCALING and kind.reduce_op in ("sum", "avg") and call.argument("rounding_mode") is None and (
            "mul" in name or call.place("self") is not None
        ):
            others = tuple(Replicate() for _ in range(count - 1))
            found.append(Strategy(kind, (kind, *others)))
            if name in ("mul", "multiply") and count == 2:
                found.append(Strategy(kind, (Replicate(), kind)))
    return found


def _all_tensors(call):
    """Is nothing added that is no term: a number?"""
    return not any(isinstance(call.argument(name), (int, float, complex)) for name in ("self", "other"))


def rule(call):
    """Of the result's dimensions those that an input is divided along."""
    out_shape = result_shape(call)
    found = [everywhere(call)._replace(outputs=outputs_like(call, Replicate()))]
    for dim in followed_dims(call, out_shape):
        inputs = tuple(_input_shard(spec, out_shape, dim) for spec in call.specs)
        found.append(Strategy(outputs_like(call, Shard(dim)), inputs))
    return [_with_out(call, s) for s in found + linear_strategies(call)]


def _with_out(call, strategy):
    """`out` has the placement of the result."""
    out = call.place("out")
    if out is None:
        return strategy
    outputs = strategy.outputs if not isinstance(strategy.outputs, tuple) else strategy.outputs[0]
    return strategy._replace(inputs=tuple(outputs if i == out else p for i, p in enumerate(strategy.inputs)))


# Made of other operators, or with a batching rule of their own; and two whose rows align ranks as these do.
register(
    "lift_fresh", "copy", "alias_copy", "detach", "detach_copy", "native_dropout_backward", "masked_fill", "isclose", "_prelu_kernel_backward", "_conj",
    "_standard_gamma_grad", "_dirichlet_grad",
)(rule)  # fmt: skip
register_word("pointwise", lambda _: rule)
register_word("random", lambda _: rule)


@register("fill", "zero")
def fill(call):
    """Each rank's part, or term, gets the value."""
    return rule(call) + [Strategy(p, (p, *(Replicate(),) * (len(call.specs) - 1))) for p in {p for p in call.specs[0].placements if p.is_partial()}]


@register("log_sigmoid_forward", "log_sigmoid_backward")
def log_sigmoid(call):
    """Pointwise but for the buffer, which is empty here."""
    backward = call.name.endswith("backward")
    spec = call.specs[1 if backward else 0]
    found = [everywhere(call)]
    for d in range(spec.ndim):
        found.append(Strategy(Shard(d), (Shard(d), Shard(d), Replicate())) if backward else Strategy((Shard(d), Replicate()), (Shard(d),)))
    return found


def even(spec):
    """Do all ranks have as many elements?"""
    counts = spec.num_shards_map
    return all(size % count == 0 for size, count in zip(spec.shape, counts))

