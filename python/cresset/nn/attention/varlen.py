"""Attention between sequences of different lengths that lie behind each other in one tensor, without padding.

Formulas: scaled dot-product attention of each sequence by itself (docs of torch.nn.attention.varlen). Where PyTorch 2.13 has this only as a kernel
of CUDA devices, here it is a composition of operators, so it runs on every device and has all derivatives.
"""

import math
from typing import NamedTuple

import cresset
from cresset import Tensor

__all__ = ["varlen_attn", "varlen_attn_out", "AuxRequest"]


class AuxRequest(NamedTuple):
    """Which results varlen_attn gives besides the output: `lse`, the logarithm of the sums of exponentials of the scores."""

    lse: bool = False


def _check(query, key, cu_seq_k, window_size, enable_gqa, seqused_k, block_table):
    if len(window_size) != 2:
        raise ValueError(f"window_size must have length 2, got {len(window_size)}")
    heads, kv_heads = query.size(1), key.size(-2)
    if not enable_gqa and heads != kv_heads:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={kv_heads}. Try setting enable_gqa=True for GQA."
        )
    if heads % kv_heads:
        raise ValueError(f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={kv_heads}.")
    if block_table is not None and seqused_k is None:
        raise ValueError("varlen_attn: block_table requires seqused_k, the number of valid tokens of each sequence.")
    if block_table is None and cu_seq_k is None:
        raise ValueError("varlen_attn: cu_seq_k can be None only with a block_table.")


def _spans(positions, name, total):
    """(begin, end) of each sequence."""
    cuts = positions.tolist()
    if len(cuts) < 2 or cuts[0] or cuts[-1] > total or any(b < a for a, b in zip(cuts, cuts[1:])):
        raise ValueError(f"varlen_attn: {name} must rise from 0 to at most {total}, the number of tokens; given: {cuts}")
    return list(zip(cuts, cuts[1:]))


def _keys_of(key, value, cu_seq_k, seqused_k, block_table):
    """Keys and values (T, H, D) of each sequence."""
    used = None if seqused_k is None else seqused_k.tolist()
    if block_table is None:
        for i, (begin, end) in enumerate(_spans(cu_seq_k, "cu_seq_k", key.size(0))):
            end = end if used is None else min(end, begin + used[i])
            yield key[begin:end], value[begin:end]
        return
    for pages, count in zip(block_table, used):
        pages = pages[: -(-count // key.size(1))].long()
        yield key[pages].flatten(0, 1)[:count], value[pages].flatten(0, 1)[:count]


def _allowed(rows, columns, window_size, device):
    """Which keys a query sees: both are aligned at their ends. None where all do."""
    left, right = window_size
    if left < 0 and right < 0:
        return None
    distance = cresset.arange(columns, device=device) - (cresset.arange(rows, device=device) + columns - rows).unsqueeze(1)
    allowed = cresset.ones_like(distance, dtype=cresset.bool)
    if left >= 0:
        allowed &= distance >= -left
    if right >= 0:
        allowed &= distance <= right
    return allowed


def _attend(query, key, value, scale, window_size, with_lse):
    """One sequence: query (L, H, D), key and value (S, H_kv, D) -> output (L, H, D), lse (H, L) or None. A query without keys gives zeros and -inf."""
    rows, heads, _ = query.shape
    if not key.size(0):
        # The products keep the result in the graph; their sums over no elements are zero.
        nothing = query.new_zeros(rows, heads, value.size(-1)) + 0 * value.sum() + 0 * key.sum()
        return nothing, query.new_full((heads, rows), -math.inf, dtype=cresset.float32) if with_lse else None
    query, key, value = (t.transpose(0, 1) for t in (query, key, value))
    repeats = heads // key.size(0)
    if repeats > 1:
        key, value = key.repeat_interleave(repeats, 0), value.repeat_interleave(repeats, 0)
    allowed = _allowed(rows, key.size(1), window_size, query.device)
    # scaled_dot_product_attention has zeros where a row of the mask allows nothing.
    out = cresset.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=allowed, scale=scale).transpose(0, 1)
    if not with_lse:
        return out, None
    scores = (query.float() @ key.float().mT) * (scale if scale is not None else query.size(-1) ** -0.5)
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -math.inf)
    return out, scores.logsumexp(-1)


def varlen_attn(
    query: Tensor, key: Tensor, value: Tensor, cu_seq_q: Tensor, cu_seq_k: Tensor | None, max_q: int, max_k: int, *, return_aux: AuxRequest | None = None,
    scale: float | None = None, window_size: tuple[int, int] = (-1, -1), enable_gqa: bool = False, seqused_k: Tensor | None = None,
    block_table: Tensor | None = None, num_splits: int | None = None,
) -> Tensor | tuple[Tensor, Tensor]:  # fmt: skip
    """Attention of N sequences: query (T_q, H, D), key and value (T_k, H_kv, D), of floats; sequence i is rows cu_seq[i] to cu_seq[i + 1] of them.

    cu_seq_q and cu_seq_k are (N + 1), of integers. `max_q`, `max_k` and `num_splits` guide kernels of PyTorch and change nothing here.
    `window_size` (left, right) is how many keys before and after its own place a query sees, -1 for all; (-1, 0) is causal attention. Sequences of
    other lengths are aligned at their ends. With `enable_gqa`, groups of H / H_kv heads of queries share keys and values. `scale` is D ** -0.5 by default.
    `seqused_k` (N) takes only the first keys of each sequence. With `block_table` (N, pages), key and value are pools of pages (pages, page size, H_kv,
    D), and row i has the pages of sequence i. Neither has gradients: RuntimeError.

    Gives (T_q, H, D); with `AuxRequest(lse=True)` also the logarithms of the sums of exponentials, (H, T_q), as PyTorch's operator gives them. A query that sees
    no key gives zeros (and -inf). ValueError for numbers of heads that do not fit, windows, positions.
    """
    _check(query, key, cu_seq_k, window_size, enable_gqa, seqused_k, block_table)
    differentiable = cresset.is_grad_enabled() and any(t.requires_grad for t in (query, key, value))
    for name, given in (("seqused_k", seqused_k), ("block_table", block_table)):
        if given is not None and differentiable:
            raise RuntimeError(f"{name} is an inference-only parameter.")
    with_lse = return_aux is not None and return_aux.lse
    if query.is_meta:
        out = cresset.empty_like(query)
        return (out, query.new_empty(query.size(1), query.size(0), dtype=cresset.float32)) if with_lse else out
    queries = _spans(cu_seq_q, "cu_seq_q", query.size(0))
    keys = list(_keys_of(key, value, cu_seq_k, seqused_k, block_table))
    if len(queries) != len(keys):
        raise ValueError(f"varlen_attn: as many sequences of keys as of queries were required; {len(queries)} and {len(keys)} were given.")
    parts = [_attend(query[begin:end], k, v, scale, window_size, with_lse) for (begin, end), (k, v) in zip(queries, keys)]
    behind = query.size(0) - queries[-1][1]  # tokens behind the last sequence belong to none
    out = cresset.nn.functional.pad(cresset.cat([out for out, _ in parts]), (0, 0, 0, 0, 0, behind))
    if not with_lse:
        return out
    return out, cresset.nn.functional.pad(cresset.cat([lse for _, lse in parts], 1), (0, behind), value=-math.inf)


def varlen_attn_out(out: Tensor, query: Tensor, key: Tensor, value: Tensor, *args, **kwargs) -> Tensor | tuple[Tensor, Tensor]:
    """varlen_attn, whose arguments follow, written into `out` (T_q, H, D). It has no gradients: RuntimeError for tensors that require them."""
    if cresset.is_grad_enabled() and any(t.requires_grad for t in (out, query, key, value)):
        raise RuntimeError("varlen_attn_out: functions with out=... have no automatic differentiation, but one of the arguments requires grad.")
    result = varlen_attn(query, key, value, *args, **kwargs)
    first = result[0] if isinstance(result, tuple) else result
    if out.shape != first.shape or out.dtype != first.dtype:
        raise ValueError(f"varlen_attn_out: out must be {first.dtype} {list(first.shape)}; given: {out.dtype} {list(out.shape)}")
    out.copy_(first)
    return (out, *result[1:]) if isinstance(result, tuple) else out
