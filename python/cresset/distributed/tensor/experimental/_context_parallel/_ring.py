"""Attention in rings: Liu et al., "Ring Attention with Blockwise Transformers" (2023).

Each rank keeps its queries, keys and values of the other ranks pass by, and results of the blocks are joined by their log-sum-exp. In backward keys and
values pass once more, and their gradients travel with them until they are at home.
"""

import cresset
from cresset.distributed import _functional_collectives as collectives

from ._options import _CausalBehavior, _cp_options, _is_causal_behavior, _RotateMethod

__all__ = []


class _Passing:
    """Tensors of one shape that go from rank to rank: after i calls of next() those of rank (own - i) modulo the number of ranks are here."""

    def __init__(self, tensors, group, gathered):
        self.shapes, self.sizes = [t.shape for t in tensors], [t.numel() for t in tensors]
        self.group, self.rank, self.size = group, group.rank(), group.size()
        packed = cresset.cat([t.flatten() for t in tensors])
        self.step, self.all, self.coming = 0, None, packed
        if gathered:
            self.all = collectives.all_gather_tensor(packed, 0, group)
        else:
            self.send(packed)

    def send(self, packed):
        self.coming = collectives.permute_tensor(packed, [(r + 1) % self.size for r in range(self.size)], self.group)

    def next(self):
        self.step += 1
        if self.all is not None:
            self.coming = self.all.chunk(self.size)[(self.rank - self.step) % self.size]
        packed = cresset.ops._c10d_functional.wait_tensor(self.coming) if self.all is None else self.coming
        if self.all is None and self.step < self.size - 1:
            self.send(packed)
        return [part.view(shape) for part, shape in zip(packed.split(self.sizes), self.shapes)]


def _blocks(key, value, group):
    """(number of the step, keys, values) of all ranks, beginning with its own."""
    yield 0, key, value
    if group.size() > 1:
        passing = _Passing([key, value], group, _cp_options.rotate_method == _RotateMethod.ALL_GATHER)
        for step in range(1, group.size()):
            yield step, *passing.next()


def _block(rank, size, step, is_causal):
    """What of a step's block is computed: (which half of the queries or None for all, which half of the keys, is it causal), or None for nothing."""
    behavior = _is_causal_behavior(rank, size, step, is_causal)
    if behavior == _CausalBehavior.SKIP:
        return None
    if not (is_causal and _cp_options.enable_load_balance) or step == 0:
        return None, None, behavior.value
    # Ranks have an early and a late part: of an earlier rank's keys all queries see the early ones, of a later rank's keys the late queries see all.
    return (None, 0, False) if step <= rank else (1, None, False)


def _half(tensor, which, dim):
    """One half of a dimension, or all of it."""
    return tensor if which is None else tensor.chunk(2, dim)[which]


def _wide(dtype):
    """The type in which blocks are joined."""
    return cresset.float32 if _cp_options.convert_to_f32 and dtype in (cresset.float16, cresset.bfloat16) else dtype


class _Joined:
    """Results of blocks, joined by their log-sum-exp."""

    def __init__(self):
        self.out = self.lse = None

    def add(self, out, lse, half):
        out = out.to(_wide(out.dtype))
        lse = lse.to(out.dtype)
        if self.out is None:
            self.out, self.lse = out.clone(), lse.clone()
            return
        there, weight = _half(self.out, half, -2), _half(self.lse, half, -1)
        both = cresset.logaddexp(weight, lse)
        there.mul_((weight - both).exp().unsqueeze(-1)).add_(out * (lse - both).exp().unsqueeze(-1))
        weight.copy_(both)


class _RingAttention(cresset.autograd.Function):
    @staticmethod
    def forward(ctx, query, key, value, group, is_causal, scale):
        rank, size, joined = group.rank(), group.size(), _Joined()
        for step, k, v in _blocks(key, value, group):
            plan = _block(rank, size, step, is_causal)
            if plan is None:
                continue
            queries, keys, causal = plan
            out, lse = cresset.ops.aten._scaled_dot_product_flash_attention_for_cpu(
                _half(query, queries, -2), _half(k, keys, -2), _half(v, keys, -2), 0.0, causal, scale=scale,
            )  # fmt: skip
            joined.add(out, lse, queries)
        out = joined.out.to(query.dtype)
        ctx.save_for_backward(query, key, value, out, joined.lse)
        ctx.group, ctx.is_causal, ctx.scale = group, is_causal, scale
        return out

    @staticmethod
    def backward(ctx, grad):
        query, key, value, out, lse = ctx.saved_tensors
        group = ctx.group
        rank, size = group.rank(), group.size()
        wide = _wide(query.dtype)
        grad_query = cresset.zeros_like(query, dtype=wide)
        grad_key, grad_value = cresset.zeros_like(key, dtype=wide), cresset.zeros_like(value, dtype=wide)
        for step, k, v in _blocks(key, value, group):
            if step:
                grad_key, grad_value = _Passing([grad_key, grad_value], group, False).next()
            plan = _block(rank, size, step, ctx.is_causal)
            if plan is None:
                continue
            queries, keys, causal = plan
            parts = cresset.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
                *(_half(t, queries, -2) for t in (grad, query)), *(_half(t, keys, -2) for t in (k, v)), _half(out, queries, -2),
                _half(lse, queries, -1), 0.0, causal, scale=ctx.scale,
            )  # fmt: skip
            for whole, half, part in zip((grad_query, grad_key, grad_value), (queries, keys, keys), parts):
                _half(whole, half, -2).add_(part)
        if size > 1:
            grad_key, grad_value = _Passing([grad_key, grad_value], group, False).next()
        return grad_query.to(query.dtype), grad_key.to(key.dtype), grad_value.to(value.dtype), None, None, None


def ring_attention(group, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    """scaled_dot_product_attention of (…, heads, length, size) tensors whose lengths are cut among the ranks of a group.

    NotImplementedError for masks and dropout.
    """
    if attn_mask is not None or dropout_p:
        what = "attn_mask" if attn_mask is not None else "dropout_p"
        raise NotImplementedError(f"scaled_dot_product_attention: {what} is not possible for sequences that are cut among ranks (context_parallel).")
    if enable_gqa and key.shape[-3] != query.shape[-3]:
        key, value = (t.repeat_interleave(query.shape[-3] // t.shape[-3], -3) for t in (key, value))
    return _RingAttention.apply(query, key, value, group, is_causal, scale)
