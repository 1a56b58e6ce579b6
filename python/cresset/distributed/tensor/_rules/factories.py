"""Tensors made like others."""

from .._call import Strategy, everywhere
from ..placement_types import Replicate, Shard
from .pointwise import even
from .registry import register

_LIKE = ("empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like")
_NEW = ("new_empty", "new_zeros", "new_ones", "new_full", "new_empty_strided")


@register(*_LIKE)
def like(call):
    """Divided as the other is; the whole where the other has terms, which zeros can be, too."""
    spec = call.specs[0]
    found = [everywhere(call)]
    for p in spec.placements:
        if p.is_shard():
            found.append(Strategy(p, (p,)))
        elif p.is_partial():
            found.append(Strategy(p if call.name in ("zeros_like", "empty_like") else Replicate(), (p,)))
    return found


def _same_strides(call, spec, placement):
    """Have all parts the strides that follow from the whole's: parts are even, or divided along the dimension with the largest stride."""
    stride = call.argument("stride")
    return even(spec) or stride[placement.dim] == max(stride)


@register(*_NEW)
def new(call):
    """Of the same sizes: divided as the other is; else the whole, whatever the other is."""
    spec, size = call.specs[0], tuple(call.argument("size"))
    found = [everywhere(call)]
    for p in spec.placements:
        same = p.is_shard() and size == tuple(spec.shape) and (call.name != "new_empty_strided" or _same_strides(call, spec, p))
        found.append(Strategy(Shard(p.dim) if same else Replicate(), (p,)))
    return found
