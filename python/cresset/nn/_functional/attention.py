"""Multi-head attention as one function."""

import math
import warnings
from typing import Optional, Tuple

import cresset
from cresset import Tensor
from cresset._overridable import overridable

__all__ = ["multi_head_attention_forward"]

# Functions of nn.functional are called by that name: programs put their own in their place.


def _none_or_dtype(input: Optional[Tensor]) -> Optional[cresset.dtype]:
    """The dtype of a tensor; None for None. RuntimeError for others."""
    if input is None:
        return None
    if isinstance(input, Tensor):
        return input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _canonical_mask(
    mask: Optional[Tensor], mask_name: str, other_type: Optional[cresset.dtype], other_name: str, target_type: cresset.dtype, check_other: bool = True
) -> Optional[Tensor]:
    """A bool or float mask as a float one (-inf where it was True). A warning where the mask beside it is of another dtype, with check_other."""
    if mask is None:
        return None
    if mask.dtype != cresset.bool and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both instead.", stacklevel=4)
    if mask.is_floating_point():
        return mask
    return cresset.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))


def _check_masks(
    query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Optional[Tensor], attn_mask: Optional[Tensor], num_heads: int
) -> bool:
    """Whether the input is batched; AssertionError when ranks or mask shapes do not fit together."""
    if query.dim() not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor"
        )
    batched = query.dim() == 3
    n = query.dim()
    if key.dim() != n or value.dim() != n:
        raise AssertionError(
            f"For {'batched' if batched else 'unbatched'} ({n}-D) `query`, expected `key` and `value` to be {n}-D but found "
            f"{key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != n - 1:
        raise AssertionError(
            f"For {'batched' if batched else 'unbatched'} ({n}-D) `query`, expected `key_padding_mask` to be `None` or {n - 1}-D but "
            f"found {key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"For {'batched' if batched else 'unbatched'} ({n}-D) `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
                f"{attn_mask.dim()}-D tensor instead"
            )
        if not batched and attn_mask.dim() == 3:
            expected = (num_heads, query.shape[0], key.shape[0])
            if list(attn_mask.shape) != [expected[0], expected[1], expected[2]]:
                raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}")
    return batched


def _check_static(given: Optional[Tensor], name: str, heads: int, head: int):
    """AssertionError unless keys or values that were projected already are (heads of all examples, S, head)."""
    if given is not None:
        if given.size(0) != heads:
            raise AssertionError(f"expecting {name}.size(0) of {heads}, but got {given.size(0)}")
        if given.size(2) != head:
            raise AssertionError(f"expecting {name}.size(2) of {head}, but got {given.size(2)}")


def _split_bias(bias: Optional[Tensor], width: int) -> Tuple[Optional[Tensor], Optional[Tensor]]:
    if bias is None:
        return None, None
    first, second = bias.split([width, width * 2])
    return first, second


def _mha_shape_check(
    query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Optional[Tensor], attn_mask: Optional[Tensor], num_heads: int
) -> bool:
    """Is the query of multi-head attention a batch? AssertionError where the dimensions of the others do not fit it."""
    if query.dim() not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor")
    batched = query.dim() == 3
    what, rank = ("batched (3-D)", 3) if batched else ("unbatched (2-D)", 2)
    if key.dim() != rank or value.dim() != rank:
        raise AssertionError(
            f"For {what} `query`, expected `key` and `value` to be {rank}-D but found {key.dim()}-D and {value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != rank - 1:
        raise AssertionError(f"For {what} `query`, expected `key_padding_mask` to be `None` or {rank - 1}-D but found {key_padding_mask.dim()}-D tensor instead")
    if attn_mask is None:
        return batched
    if attn_mask.dim() not in (2, 3):
        raise AssertionError(f"For {what} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask.dim()}-D tensor instead")
    if not batched and attn_mask.dim() == 3:
        expected = (num_heads, query.shape[0], key.shape[0])
        if attn_mask.shape != expected:
            raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}")
    return batched


def _in_projection_packed(
    q: Tensor, k: Tensor, v: Tensor, w: Tensor, b: Optional[Tensor] = None
) -> Tuple[Tensor, Tensor, Tensor]:
    """The three projections by one stacked weight (3E, E); one product when the inputs are one tensor."""
    width = q.size(-1)
    if k is v:
        if q is k:
            out = cresset.nn.functional.linear(q, w, b)
            # (..., 3E) -> three contiguous (..., E)
            out = out.unflatten(-1, [3, width]).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
            return out[0], out[1], out[2]
        w_q, w_kv = w.split([width, width * 2])
        b_q, b_kv = _split_bias(b, width)
        projected = cresset.nn.functional.linear(q, w_q, b_q)
        out = cresset.nn.functional.linear(k, w_kv, b_kv)
        out = out.unflatten(-1, [2, width]).unsqueeze(0).transpose(0, -2).squeeze(-2).contiguous()
        return projected, out[0], out[1]
    w_q, w_k, w_v = w.chunk(3)
    return _project_apart(q, k, v, w_q, w_k, w_v, b)


def _project_apart(
    query: Tensor, key: Tensor, value: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, bias: Optional[Tensor]
) -> Tuple[Tensor, Tensor, Tensor]:
    if bias is None:
        return cresset.nn.functional.linear(query, w_q), cresset.nn.functional.linear(key, w_k), cresset.nn.functional.linear(value, w_v)
    b_q, b_k, b_v = bias.chunk(3)
    return cresset.nn.functional.linear(query, w_q, b_q), cresset.nn.functional.linear(key, w_k, b_k), cresset.nn.functional.linear(value, w_v, b_v)


def _in_projection(
    q: Tensor, k: Tensor, v: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor, b_q: Optional[Tensor] = None, b_k: Optional[Tensor] = None,
    b_v: Optional[Tensor] = None,
) -> Tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Each input by its own weight and bias, to the width of the query; AssertionError where a shape does not fit."""
    width = q.size(-1)
    for what, x, weight, bias in (("query", q, w_q, b_q), ("key", k, w_k, b_k), ("value", v, w_v, b_v)):
        if weight.shape != (width, x.size(-1)):
            raise AssertionError(f"expecting {what} weights shape of {(width, x.size(-1))}, but got {weight.shape}")
        if bias is not None and bias.shape != (width,):
            raise AssertionError(f"expecting {what} bias shape of {(width,)}, but got {bias.shape}")
    return cresset.nn.functional.linear(q, w_q, b_q), cresset.nn.functional.linear(k, w_k, b_k), cresset.nn.functional.linear(v, w_v, b_v)


def _float_masks(
    key_padding_mask: Optional[Tensor], attn_mask: Optional[Tensor], is_causal: bool, need_weights: bool, dtype: cresset.dtype
) -> Tuple[Optional[Tensor], Optional[Tensor], bool]:
    """Both masks as float ones, and whether the kernel shall apply causality itself."""
    key_padding_mask = _canonical_mask(key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", dtype)
    if is_causal and attn_mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method `generate_square_subsequent_mask` to "
            "create this mask."
        )
    if is_causal and key_padding_mask is None and not need_weights:
        return key_padding_mask, None, True
    attn_mask = _canonical_mask(attn_mask, "attn_mask", None, "", dtype, check_other=False)
    return key_padding_mask, attn_mask, is_causal and key_padding_mask is None  # two masks are merged


def _three_dims(attn_mask: Tensor, heads: int, length: int, source: int) -> Tensor:
    """(1 or heads of all examples, L, S); RuntimeError for other sizes."""
    if attn_mask.dim() == 2:
        if list(attn_mask.shape) != [length, source]:
            raise RuntimeError(f"The shape of the 2D attn_mask is {attn_mask.shape}, but should be {(length, source)}.")
        return attn_mask.unsqueeze(0)
    if list(attn_mask.shape) != [heads, length, source]:
        raise RuntimeError(f"The shape of the 3D attn_mask is {attn_mask.shape}, but should be {(heads, length, source)}.")
    return attn_mask


def _check_key_padding_mask(key_padding_mask: Tensor, src_len: int, bsz: int):
    """AssertionError unless the mask is (bsz, src_len)."""
    if key_padding_mask.size(0) != bsz:
        raise AssertionError(f"Expected key_padded_mask.shape[0] to be {bsz}, but got {key_padding_mask.size(0)}")
    if key_padding_mask.size(1) != src_len:
        raise AssertionError(f"Expected key_padded_mask.shape[1] to be {src_len}, but got {key_padding_mask.size(1)}")


def _padding(key_padding_mask: Tensor, batch: int, num_heads: int, source: int) -> Tensor:
    """The mask (N, S) as one of attention, (N heads, 1, S)."""
    _check_key_padding_mask(key_padding_mask, source, batch)
    return key_padding_mask.view(batch, 1, 1, source).expand(-1, num_heads, -1, -1).reshape(batch * num_heads, 1, source)


def _check_sources(key: Tensor, value: Tensor, apart: bool):
    if apart:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}")
    elif key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")


def _check_biases(bias_k: Optional[Tensor], bias_v: Optional[Tensor], static_k: Optional[Tensor], static_v: Optional[Tensor]):
    """AssertionError unless both biases or none are given, and none beside keys or values that were projected already."""
    if bias_k is not None and bias_v is not None:
        if static_k is not None:
            raise AssertionError("bias cannot be added to static key.")
        if static_v is not None:
            raise AssertionError("bias cannot be added to static value.")
    else:
        if bias_k is not None:
            raise AssertionError("bias_k is set but bias_v is None")
        if bias_v is not None:
            raise AssertionError("bias_v is set but bias_k is None")


def _attend(q: Tensor, k: Tensor, v: Tensor, attn_mask: Optional[Tensor], dropout_p: float) -> Tuple[Tensor, Tensor]:
    """Results (L, N heads, head) and weights (N heads, L, S)."""
    scaled = q * math.sqrt(1.0 / float(q.size(2)))
    transposed = k.transpose(-2, -1)
    scores = cresset.bmm(scaled, transposed) if attn_mask is None else cresset.baddbmm(attn_mask, scaled, transposed)
    weights = cresset.nn.functional.softmax(scores, -1)
    if dropout_p > 0.0:
        weights = cresset.nn.functional.dropout(weights, dropout_p, True)
    return cresset.bmm(weights, v).transpose(0, 1), weights


def _attend_fused(
    q: Tensor, k: Tensor, v: Tensor, attn_mask: Optional[Tensor], dropout_p: float, is_causal: bool, batch: int, heads: int
) -> Tensor:
    """Results (L, N, heads, head) by the kernel that keeps no weights."""
    length, source, head = q.size(1), k.size(1), q.size(2)
    if attn_mask is not None:
        if attn_mask.size(0) == 1 and attn_mask.dim() == 3:
            attn_mask = attn_mask.unsqueeze(0)
        else:
            attn_mask = attn_mask.view(batch, heads, attn_mask.size(1), source)  # one row where padding alone is masked
    out = cresset.nn.functional.scaled_dot_product_attention(
        q.view(batch, heads, length, head), k.view(batch, heads, source, head), v.view(batch, heads, source, head),
        attn_mask, dropout_p, is_causal,
    )  # fmt: skip
    return out.permute(2, 0, 1, 3)


@overridable
def multi_head_attention_forward(
    query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Optional[Tensor],
    in_proj_bias: Optional[Tensor], bias_k: Optional[Tensor], bias_v: Optional[Tensor], add_zero_attn: bool, dropout_p: float,
    out_proj_weight: Tensor, out_proj_bias: Optional[Tensor], training: bool = True, key_padding_mask: Optional[Tensor] = None,
    need_weights: bool = True, attn_mask: Optional[Tensor] = None, use_separate_proj_weight: bool = False,
    q_proj_weight: Optional[Tensor] = None, k_proj_weight: Optional[Tensor] = None, v_proj_weight: Optional[Tensor] = None,
    static_k: Optional[Tensor] = None, static_v: Optional[Tensor] = None, average_attn_weights: bool = True, is_causal: bool = False,
) -> Tuple[Tensor, Optional[Tensor]]:  # fmt: skip
    """Attention with projections: `query` (L, N, E), `key` and `value` (S, N, E), without N when unbatched.

    Returns (output (L, N, E), weights (N, L, S), averaged over the heads unless `average_attn_weights=False`, or None).
    Masks are bool (True is left out) or float (added to the scores).
    """
    batched = _check_masks(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = _unsqueezed(query, key, value)
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask.unsqueeze(0)

    length, batch, width = query.size(0), query.size(1), query.size(2)
    source = key.size(0)
    key_padding_mask, attn_mask, is_causal = _float_masks(key_padding_mask, attn_mask, is_causal, need_weights, query.dtype)
    if width != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}")
    # A trace keeps the size a tensor.
    head = width.div(num_heads, rounding_mode="trunc") if isinstance(width, Tensor) else width // num_heads
    if head * num_heads != width:
        raise AssertionError(f"embed_dim {width} not divisible by num_heads {num_heads}")
    _check_sources(key, value, use_separate_proj_weight)
    if use_separate_proj_weight:
        assert q_proj_weight is not None, "use_separate_proj_weight is True but q_proj_weight is None"
        assert k_proj_weight is not None, "use_separate_proj_weight is True but k_proj_weight is None"
        assert v_proj_weight is not None, "use_separate_proj_weight is True but v_proj_weight is None"
        q, k, v = _project_apart(query, key, value, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias)
    else:
        assert in_proj_weight is not None, "use_separate_proj_weight is False but in_proj_weight is None"
        q, k, v = _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias)

    if attn_mask is not None:
        attn_mask = _three_dims(attn_mask, batch * num_heads, length, source)
    _check_biases(bias_k, bias_v, static_k, static_v)
    if bias_k is not None and bias_v is not None:
        k = cresset.cat([k, bias_k.repeat(1, batch, 1)])
        v = cresset.cat([v, bias_v.repeat(1, batch, 1)])
        attn_mask, key_padding_mask = _one_more(attn_mask), _one_more(key_padding_mask)
    _check_static(static_k, "static_k", batch * num_heads, head)
    _check_static(static_v, "static_v", batch * num_heads, head)

    # (L, N, E) -> (N heads, L, head)
    q = q.view(length, batch * num_heads, head).transpose(0, 1)
    k = k.view(k.shape[0], batch * num_heads, head).transpose(0, 1) if static_k is None else static_k
    v = v.view(v.shape[0], batch * num_heads, head).transpose(0, 1) if static_v is None else static_v
    if add_zero_attn:
        zeros = cresset.zeros([batch * num_heads, 1, head], dtype=k.dtype, device=k.device)
        k, v = cresset.cat([k, zeros], 1), cresset.cat([v, zeros], 1)
        attn_mask, key_padding_mask = _one_more(attn_mask), _one_more(key_padding_mask)
    source = k.size(1)

    if key_padding_mask is not None:
        padding = _padding(key_padding_mask, batch, num_heads, source)
        attn_mask = padding if attn_mask is None else attn_mask + padding
    if not training:
        dropout_p = 0.0
    if need_weights:
        out, weights = _attend(q, k, v, attn_mask, dropout_p)
        out = cresset.nn.functional.linear(out.reshape(length * batch, width), out_proj_weight, out_proj_bias).view(length, batch, out_proj_weight.size(0))
        weights = weights.view(batch, num_heads, length, source)
        if average_attn_weights:
            weights = weights.mean(1)
        return (out, weights) if batched else (out.squeeze(1), weights.squeeze(0))
    out = _attend_fused(q, k, v, attn_mask, dropout_p, is_causal, batch, num_heads)
    out = cresset.nn.functional.linear(out.reshape(batch * length, width), out_proj_weight, out_proj_bias).view(length, batch, out_proj_weight.size(0))
    return (out if batched else out.squeeze(1)), None


def _unsqueezed(query: Tensor, key: Tensor, value: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    # Keeps identity, which decides how the projection is computed.
    q = query.unsqueeze(1)
    k = q if key is query else key.unsqueeze(1)
    v = k if value is key else value.unsqueeze(1)
    return q, k, v


def _one_more(mask: Optional[Tensor]) -> Optional[Tensor]:
    """A mask with one more visible source position."""
    return None if mask is None else cresset.nn.functional.pad(mask, [0, 1])
