"""Products of matrices, convolutions and attention, by the letters of their dimensions.

An equation "mk,kn->mn" says all: a letter of the result can be divided in each operand that has it; a letter that is summed over gives terms of a sum; and the
product is linear in each operand.
"""

from .._call import Strategy, everywhere
from ..placement_types import Partial, Replicate, Shard
from .pointwise import broadcast_shape, even, outputs_like, shard_of
from .registry import register


def einsum_strategies(equation, linear=()):
    """[(placement of the result, placements of the operands)] of an equation; `linear`: kinds of terms that are present."""
    operands, result = equation.split("->")
    operands = operands.split(",")
    found = []
    for letter in sorted(set("".join(operands)), key=lambda c: result.find(c) if c in result else len(result)):
        inputs = tuple(Shard(o.index(letter)) if letter in o else Replicate() for o in operands)
        if letter in result:
            found.append((Shard(result.index(letter)), inputs))
        else:
            found.append((Partial(), inputs))
    for kind in linear:
        for place in range(len(operands)):
            found.append((kind, tuple(kind if i == place else Replicate() for i in range(len(operands)))))
    return found


def _kinds(call):
    found = []
    for spec in call.specs:
        found += [p for p in spec.placements if type(p) is Partial and p.reduce_op in ("sum", "avg") and p not in found]
    return found


def _plain(equation):
    def rule(call):
        found = [everywhere(call)]
        for output, inputs in einsum_strategies(equation, _kinds(call)):
            out = (output,) if call.place("out") is not None else ()
            found.append(Strategy(output, inputs + out))
        return found

    return rule


register("mm")(_plain("mk,kn->mn"))
register("bmm")(_plain("bmk,bkn->bmn"))
register("dot", "vdot")(_plain("k,k->"))
register("mv")(_plain("mk,k->m"))
register("outer", "ger")(_plain("m,n->mn"))


def _added(equation, ndim):
    """addmm and its kin: the operand that is added is broadcast."""

    def rule(call):
        bias, out_shape = call.specs[0], None
        first, second = call.specs[1], call.specs[2]
        sizes = dict(zip(equation.split(",")[0], first.shape)) | dict(zip(equation.split("->")[0].split(",")[1], second.shape))
        out_shape = tuple(sizes[c] for c in equation.split("->")[1])
        found = [everywhere(call)]
        for output, inputs in einsum_strategies(equation):
            added = shard_of(bias.shape, out_shape, output.dim) if output.is_shard() else output
            out = (output,) if call.place("out") is not None else ()
            found.append(Strategy(output, (added, *inputs) + out))
        return found

    return rule


register("addmm")(_added("mk,kn->mn", 2))
register("baddbmm")(_added("bmk,bkn->bmn", 3))
register("addmv")(_added("mk,k->m", 1))
register("addr")(_added("m,n->mn", 2))


@register("linear")
def linear(call):
    """x @ weight.T + bias for x of any number of dimensions."""
    x = call.specs[0]
    bias = call.specs[2] if len(call.specs) > 2 else None
    last = x.ndim - 1
    found = [everywhere(call)]
    for d in range(last):
        found.append(Strategy(Shard(d), (Shard(d), Replicate()) + ((Replicate(),) if bias else ())))
    found.append(Strategy(Shard(last), (Replicate(), Shard(0)) + ((Shard(0),) if bias else ())))
    found.append(Strategy(Partial(), (Shard(last), Shard(1)) + ((Partial(),) if bias else ())))
    if not bias:
        for kind in _kinds(call):
            found += [Strategy(kind, (kind, Replicate())), Strategy(kind, (Replicate(), kind))]
    return found


@register("linear_backward")
def linear_backward(call):
    """(gradient of x, of the weight, of the bias) of linear, for (x, gradient, weight)."""
    x, grad = call.specs[0], call.specs[1]
    last = x.ndim - 1
    found = [everywhere(call)._replace(outputs=(Replicate(),) * 3)]
    for d in range(last):
        found.append(Strategy((Shard(d), Partial(), Partial()), (Shard(d), Shard(d), Replicate())))
    found.append(Strategy((Partial(), Shard(0), Shard(0)), (Replicate(), Shard(grad.ndim - 1), Shard(0))))
    found.append(Strategy((Shard(last), Shard(1), Replicate()), (Shard(last), Replicate(), Shard(1))))
    return found


@register("matmul")
def matmul(call):
    """Products with broadcasting batch dimensions."""
    first, second = call.specs
    found = [everywhere(call)]
    if first.ndim < 2 or second.ndim < 2:
        if max(first.ndim, second.ndim) > 2:
            return found
        equation = {(1, 1): "k,k->", (2, 1): "mk,k->m", (1, 2): "k,kn->n"}.get((first.ndim, second.ndim), "->")
        return found + [Strategy(o, i) for o, i in einsum_strategies(equation, ())][:4]
    batch = broadcast_shape([first.shape[:-2], second.shape[:-2]])
    n = len(batch)
    for d in range(n):
        found.append(Strategy(Shard(d), (_batch(first, batch, d), _batch(second, batch, d))))
    found.append(Strategy(Shard(n), (Shard(first.ndim - 2), Replicate())))
    found.append(Strategy(Shard(n + 1), (Replicate(), Shard(second.ndim - 1))))
    found.append(Strategy(Partial(), (Shard(first.ndim - 1), Shard(second.ndim - 2))))
    for kind in _kinds(call):
        found += [Strategy(kind, (kind, Replicate())), Strategy(kind, (Replicate(), kind))]
    return found


def _batch(spec, batch, dim):
    return shard_of(spec.shape[:-2], batch, dim)


@register("convolution", "_convolution")
def convolution(call):
    """Batches, channels of the result, and channels of the input, whose products are terms."""
    bias = call.argument("bias") is not None
    extra = (Replicate(),) if bias else ()
    found = [everywhere(call), Strategy(Shard(0), (Shard(0), Replicate(), *extra))]
    if call.argument("groups") == 1 and not call.argument("transposed"):
        found.append(Strategy(Shard(1), (Replicate(), Shard(0)) + ((Shard(0),) if bias else ())))
        if even(call.specs[0]):
            found.append(Strategy(Partial(), (Shard(1), Shard(1)) + ((Partial(),) if bias else ())))
    return found


@register("convolution_backward")
def convolution_backward(call):
    """(gradient of the input, of the weight, of the bias) for (gradient, input, weight)."""
    found = [everywhere(call)._replace(outputs=(Replicate(),) * 3), Strategy((Shard(0), Partial(), Partial()), (Shard(0), Shard(0), Replicate()))]
    if call.argument("groups") == 1 and not call.argument("transposed"):
        found.append(Strategy((Partial(), Shard(0), Shard(0)), (Shard(1), Replicate(), Shard(0))))
        found.append(Strategy((Shard(1), Shard(1), Replicate()), (Replicate(), Shard(1), Shard(1))))
    mask = call.argument("output_mask")
    return [s._replace(outputs=tuple(p if m else None for p, m in zip(s.outputs, mask))) for s in found]


@register(
    "_scaled_dot_product_flash_attention_for_cpu", "scaled_dot_product_attention", "_scaled_dot_product_attention", "_scaled_dot_product_attention_math",
    "_scaled_dot_product_flash_attention_for_cpu_backward", "_scaled_dot_product_attention_backward", "scaled_dot_product_attention_backward",
)
def attention(call):
    """Batches and heads: dimensions 0 and, of four, 1. Keys of other numbers of heads, and masks that differ by batch, follow."""
    query = call.specs[0]
    found = [everywhere(call)._replace(outputs=outputs_like(call, Replicate()))]
    mask = call.place("attn_mask")
    for d in range(query.ndim - 2):
        inputs = []
        for i, spec in enumerate(call.specs):
            if i == mask:
                inputs.append(shard_of(spec.shape, (*query.shape[:-1], 0), d) if spec.ndim >= query.ndim - d else Replicate())
            else:
                inputs.append(Shard(d) if spec.ndim > d and spec.shape[d] == query.shape[d] else Replicate())
        if all(p.is_shard() for i, p in enumerate(inputs) if i != mask):
            found.append(Strategy(outputs_like(call, Shard(d)), tuple(inputs)))
    return found


@register(
    "linalg_svd", "_linalg_svd", "linalg_qr", "linalg_eigh", "_linalg_eigh", "linalg_inv_ex", "linalg_inv", "linalg_cholesky_ex", "linalg_solve_ex",
    "_linalg_det", "_linalg_slogdet", "linalg_lu_factor_ex", "linalg_matrix_exp", "_linalg_solve_ex", "linalg_eig", "cholesky", "linalg_cholesky",
)
def of_matrices(call):
    """Decompositions of batches of matrices: along batch dimensions only."""
    spec = call.specs[0]
    found = [everywhere(call)._replace(outputs=outputs_like(call, Replicate()))]
    if len(call.specs) == 1:
        found += [Strategy(outputs_like(call, Shard(d)), (Shard(d),)) for d in range(spec.ndim - 2)]
    return found
