"""Sums, extremes, softmax and products of nested tensors."""

import cresset
from cresset.nn import functional as F

from .ops import _check_same, _refuse_pair, _wrap, components, from_padded, handles, is_nested, name_of, packed, pointwise
from .nested_tensor import padded

__all__ = []


def _lowest(dtype):
    return -float("inf") if dtype.is_floating_point else False if dtype is cresset.bool else cresset.iinfo(dtype).min


def _highest(dtype):
    return float("inf") if dtype.is_floating_point else True if dtype is cresset.bool else cresset.iinfo(dtype).max


# What may stand behind a component without changing the result.
_NEUTRAL = {
    "sum": lambda dtype: 0, "nansum": lambda dtype: 0, "prod": lambda dtype: 1, "any": lambda dtype: 0, "all": lambda dtype: 1, "count_nonzero": lambda dtype: 0,
    "amax": _lowest, "max": _lowest, "argmax": _lowest, "amin": _highest, "min": _highest, "argmin": _highest, "logsumexp": _lowest,
}  # fmt: skip
_TAKES_ONE = frozenset(["max", "min", "argmax", "argmin", "prod", "median", "mode"])
_WITHOUT_HOLES = frozenset(["count_nonzero", "nansum", "std", "var", "nanmean"])  # PyTorch has none of them for nested tensors


@handles("sum", "nansum", "prod", "any", "all", "count_nonzero", "amax", "max", "argmax", "amin", "min", "argmin", "logsumexp", "mean", "var", "std", "norm", "nanmean")
def _reduce(func, nt, *args, **kwargs):
    name = name_of(func)
    kwargs = dict(kwargs)
    if name in ("max", "min") and any(isinstance(x, cresset.Tensor) for x in (*args, *kwargs.values())):
        return pointwise(func, (nt, *args), kwargs)
    if name == "norm":
        kwargs.update(zip(("p", "dim", "keepdim"), args, strict=False))
    elif name in ("var", "std") and args and isinstance(args[0], bool):
        kwargs["correction"] = int(args[0])
        kwargs.update(zip(("dim", "keepdim"), args[1:], strict=False))
    else:
        kwargs.update(zip(("dim", "keepdim"), args, strict=False))
    dim, keepdim = kwargs.pop("dim", None), kwargs.pop("keepdim", False)
    if dim is None or dim == ():
        return func(nt._packed, **kwargs)  # what lies between the components counts, as in PyTorch
    dims = sorted({_wrap(nt, d) for d in ([dim] if isinstance(dim, int) else dim)})
    ragged = nt._ragged_idx
    keep = {"keepdim": keepdim} if name != "count_nonzero" else {}
    if ragged in dims and nt._rows.lengths is not None:
        raise (NotImplementedError if name in _WITHOUT_HOLES else RuntimeError)(f"{name}(): reducing across the ragged dimension is not supported for non-contiguous nested tensors with holes")
    if 0 in dims:
        if ragged not in dims:
            raise RuntimeError(f"{name}(): reducing along the batch dimension but not the ragged dimension is not supported for nested tensors")
        result = func(nt._packed, dim=[d - 1 for d in dims if d], **keep, **kwargs)
        return result.unsqueeze(0) if keepdim else result
    if ragged in dims:
        if len(dims) > 1:
            raise RuntimeError(f"{name}(): reducing along a ragged and non-batch dimension is not supported for nested tensors")
        return _along_rows(func, name, nt, keep, kwargs)
    inner = [d - 1 for d in dims]
    inner = inner[0] if isinstance(dim, int) or name in _TAKES_ONE else inner
    result = func(nt._packed, dim=inner, **keep, **kwargs)
    shifted = ragged - (0 if keepdim else sum(d < ragged for d in dims))
    if isinstance(result, tuple):
        return type(result)(nt._like(r, shifted) for r in result)
    return nt._like(result, shifted)


def _along_rows(func, name, nt, keep, kwargs):
    ragged = nt._ragged_idx
    if name == "mean":
        counts = cresset.tensor(nt._rows.counts, device=nt._packed.device).view(-1, *[1] * (nt._packed.dim() - (not keep["keepdim"])))
        dtype = kwargs.get("dtype") or nt._packed.dtype
        if not (dtype.is_floating_point or dtype.is_complex):
            func(nt._packed)  # which says what is wrong
        return padded(nt, 0).sum(ragged, **keep, **kwargs) / counts.to(dtype)
    if name in _NEUTRAL:
        return func(padded(nt, _NEUTRAL[name](nt._packed.dtype)), dim=ragged, **keep, **kwargs)
    return cresset.stack([func(c, dim=ragged - 1, **keep, **kwargs) for c in components(nt)])


@handles("softmax", "log_softmax", "_softmax", "_log_softmax")
def _softmax(func, nt, dim=None, *args, **kwargs):
    name = name_of(func).strip("_")
    if dim is None:
        raise RuntimeError(f"{name}: a dimension was required.")
    at = _wrap(nt, dim)
    if at == 0:
        raise RuntimeError(f"{name}(): not supported when reducing across the batch dimension for NestedTensor")
    if at != nt._ragged_idx:
        return nt._like(func(nt._packed, at - 1, *args, **kwargs))
    if nt._ragged_idx > 1:
        raise RuntimeError(f"{name}(): not supported when reducing along the ragged dimension for ragged_idx > 1 for NestedTensor")
    if nt._rows.lengths is not None:
        raise RuntimeError(f"{name}(): not supported where lengths is not None if reducing across the ragged dimension for NestedTensor")
    return from_padded(func(padded(nt, -float("inf")), at, *args, **kwargs), nt)


# Products -----------------------------------------------------------------------------------------------------------------


@handles("linear")
def _linear(func, input, weight, bias=None):
    if not is_nested(input) or is_nested(weight):
        raise RuntimeError("linear(): only the input may be a nested tensor")
    if input._rows.lengths is not None:
        raise ValueError("linear(): expected input to be a contiguous jagged layout NestedTensor")
    if input._ragged_idx == input._packed.dim():
        raise RuntimeError("linear(): not supported for NestedTensor whose last dimension is ragged")
    return input._like(F.linear(input._packed, weight, bias))


@handles("matmul", "bmm", "mm", "__matmul__", "__rmatmul__")
def _matmul(func, a, b=None, *, other=None, mat2=None):
    b = next(x for x in (b, other, mat2) if x is not None)
    if name_of(func) == "__rmatmul__":
        a, b = b, a

    def refuse():
        shapes = [tuple(x._shape()) if is_nested(x) else x.shape for x in (a, b)]
        raise RuntimeError(f"matmul(): not supported between inputs of shapes {shapes[0]} and {cresset.Size(shapes[1]) if not is_nested(b) else b._shape()}")

    if is_nested(a) and is_nested(b):
        # The ragged dimension is summed over in both: a dense result.
        contracted = a._ragged_idx == a._packed.dim() and b._ragged_idx == b._packed.dim() - 1
        if a._rows is b._rows and contracted:
            return padded(a, 0) @ padded(b, 0)
        # Or each component is multiplied with its own, which leaves one of them ragged only in front.
        refuse()
    if is_nested(a):
        if a._ragged_idx == a._packed.dim():
            refuse()
        if b.dim() <= 2:
            return a._like(a._packed @ b, a._ragged_idx)
        if b.shape[0] not in (1, len(a._rows.counts)) or b.dim() != a._packed.dim() + 1:
            refuse()
        if a._rows.lengths is not None:
            raise RuntimeError("matmul(): to_padded_tensor(): not supported for nested tensors with holes")
        return from_padded(padded(a, 0) @ b, a)
    if b._ragged_idx != b._packed.dim() or a.dim() == 1:
        refuse()
    if a.dim() > 2 and (a.shape[0] not in (1, len(b._rows.counts)) or a.dim() != b._packed.dim() + 1):
        refuse()
    return from_padded(a @ padded(b, 0), b)


# Layers -------------------------------------------------------------------------------------------------------------------


@handles("layer_norm", "rms_norm")
def _norm(func, input, normalized_shape, *args, **kwargs):
    name = name_of(func)
    if name == "layer_norm":
        if input._packed.dim() < 2:
            raise RuntimeError("layer_norm(): not supported for NestedTensor objects with 2 or fewer dimensions")
        if len(normalized_shape) > input._packed.dim():
            raise RuntimeError("layer_norm(): not supported when normalizing over the batch dimension for NestedTensor")
        if tuple(normalized_shape) == tuple(input._shape()[input._ragged_idx :]):
            return _over_rows(func, input, *args, **kwargs)
    if input._ragged_idx > input._packed.dim() - len(normalized_shape):
        raise RuntimeError(
            f"Given normalized_shape={list(normalized_shape)}, expected input with shape [*, {', '.join(map(str, normalized_shape))}], but got input of size{list(input._shape())}"
        )
    if input._rows.lengths is None:
        return input._like(func(input._packed, normalized_shape, *args, **kwargs))
    # Weights have no gradient from what lies between the components.
    dim, row = input._ragged_idx - 1, input._rows.index()[2]
    result = func(input._packed.index_select(dim, row), normalized_shape, *args, **kwargs)
    return input._like(input._packed.new_zeros(input._packed.shape).index_copy(dim, row, result))


def _over_rows(func, input, weight=None, bias=None, eps=1e-5):
    """layer_norm of each component as a whole."""
    if input._rows.lengths is not None:
        raise RuntimeError("layer_norm(): not supported where lengths is not None if operating on the ragged dimension for NestedTensor")
    if input._ragged_idx > 1:
        raise RuntimeError("layer_norm(): not supported when normalizing over the ragged dimension for ragged_idx > 1 for NestedTensor")
    result = cresset.cat([func(c, c.shape, None, None, eps) for c in components(input)])
    result = result if weight is None else result * weight
    return input._like(result if bias is None else result + bias)


@handles("native_layer_norm")
def _native_layer_norm(func, input, normalized_shape, weight, bias, eps):
    if input._ragged_idx > input._packed.dim() - len(normalized_shape):
        return _norm(func, input, normalized_shape)
    result, *statistics = func(input._packed, normalized_shape, weight, bias, eps)
    return (input._like(result), *statistics)


@handles("normalize")
def _normalize(func, input, p=2.0, dim=1, eps=1e-12, out=None):
    return input / input.norm(p, dim, True).clamp(min=eps)


@handles("embedding")
def _embedding(func, input, weight, *args, **kwargs):
    return input._like(func(input._packed, weight, *args, **kwargs))


@handles("embedding_bag")
def _embedding_bag(func, input, weight, offsets=None, *args, **kwargs):
    if offsets is not None:
        raise ValueError("if input is a nested tensor, then offsets has to be None, as it is taken from the input")
    weights = kwargs.get("per_sample_weights")
    if is_nested(weights):
        _check_same(func, weights, input, (input, weights))
        kwargs["per_sample_weights"] = packed(weights)._packed
    flat = packed(input)
    return func(flat._packed, weight, flat._rows.offsets[:-1], *args, **kwargs)


@handles("scaled_dot_product_attention")
def _attention(func, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
    if attn_mask is not None:
        raise RuntimeError("scaled_dot_product_attention: attn_mask is not supported for nested tensors; is_causal is.")
    if all(is_nested(t) and t._packed.dim() == 3 and t._ragged_idx == 1 and t._rows.lengths is None for t in (query, key, value)):
        # (B, *, S, D): sequences of one length, of which each component has some.
        _check_same(func, key, query, (query, key))
        _check_same(func, value, query, (query, value))
        return query._like(func(query._packed, key._packed, value._packed, dropout_p=dropout_p, is_causal=is_causal, scale=scale))
    for t in (query, key, value):
        if is_nested(t) and t._ragged_idx != t._packed.dim() - 1:
            raise RuntimeError("scaled_dot_product_attention: the ragged dimension must be the last but one: (B, heads, *, D). transpose(1, 2) puts it there.")
    if is_nested(key) != is_nested(value) or (is_nested(key) and key._rows is not value._rows and key._rows.counts != value._rows.counts):
        _refuse_pair(func, key, value)
    q, k, v = (padded(t, 0) if is_nested(t) else t for t in (query, key, value))
    mask = None
    if is_nested(key):
        counts = cresset.tensor(key._rows.counts, device=k.device)
        mask = (cresset.arange(k.shape[-2], device=k.device) < counts[:, None]).view(len(counts), *[1] * (k.dim() - 2), -1)
        if is_causal:
            mask = mask & cresset.ones(q.shape[-2], k.shape[-2], dtype=cresset.bool, device=k.device).tril()
    result = func(q, k, v, attn_mask=mask, dropout_p=dropout_p, is_causal=is_causal and mask is None, scale=scale, enable_gqa=enable_gqa)
    return from_padded(result, query) if is_nested(query) else result


@handles("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
def _loss(func, input, target, *args, **kwargs):
    _check_same(func, target, input, (input, target))
    result = func(packed(input)._packed, packed(target)._packed, *args, **kwargs)
    return input._like(result) if result.dim() else result
