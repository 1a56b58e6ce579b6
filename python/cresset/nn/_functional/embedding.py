"""Rows of a table by index, one by one or reduced over bags."""

import cresset

from ._common import handle, overrides

__all__ = ["embedding", "embedding_bag"]

_BAG_MODES = {"sum": 0, "mean": 1, "max": 2}


def embedding(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False):
    """Rows of `weight` (V, D) at the integer indices `input` (*): (*, D). The row `padding_idx` gets no gradient.

    With `max_norm` the rows looked up are first scaled down, in place, to that norm.
    """
    if overrides((input, weight)):
        return handle(
            embedding, (input, weight), input, weight, padding_idx=padding_idx, max_norm=max_norm, norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq, sparse=sparse,
        )  # fmt: skip
    if padding_idx is None:
        padding_idx = -1
    else:
        rows = weight.size(0)
        if not -rows <= padding_idx < rows:
            raise AssertionError(f"Padding_idx must be within num_embeddings; got {padding_idx} for {rows} rows")
        if padding_idx < 0:
            padding_idx += rows
    if max_norm is not None:
        input = input.contiguous()
        with cresset.no_grad():
            cresset.embedding_renorm_(weight, input, max_norm, norm_type)
    return cresset.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


def embedding_bag(
    input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode="mean", sparse=False,
    per_sample_weights=None, include_last_offset=False, padding_idx=None,
):  # fmt: skip
    """Rows of `weight` (V, D) reduced over bags of indices: (bags, D).

    `input` is (bags, n), or (n,) with the bags beginning at `offsets` (bags,), one more entry with `include_last_offset`.
    `mode` is "sum" (with optional `per_sample_weights`), "mean" or "max"; indices equal to `padding_idx` do not count.
    ValueError for arguments that do not fit together.
    """
    if overrides((input, weight, offsets, per_sample_weights)):
        return handle(
            embedding_bag, (input, weight, offsets, per_sample_weights), input, weight, offsets=offsets, max_norm=max_norm,
            norm_type=norm_type, scale_grad_by_freq=scale_grad_by_freq, mode=mode, sparse=sparse,
            per_sample_weights=per_sample_weights, include_last_offset=include_last_offset, padding_idx=padding_idx,
        )  # fmt: skip
    if weight.dtype == cresset.long and input.is_floating_point():
        input, weight = weight, input  # the order of arguments before 0.4
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the same shape as the "
            f"input ({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences. However, "
                f"found offsets of type {type(offsets)}"
            )
        bags, length = input.shape
        # Without a last offset here whatever the argument says: the bags are the rows.
        offsets = cresset.arange(0, bags * length, length, dtype=input.dtype, device=input.device) if length else None
        if offsets is None:
            offsets = cresset.zeros(bags, dtype=input.dtype, device=input.device)
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if mode not in _BAG_MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if max_norm is not None:
        with cresset.no_grad():
            cresset.embedding_renorm_(weight, input.contiguous(), max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode='{mode}')."
        )
    return cresset.embedding_bag(
        weight, input, offsets, scale_grad_by_freq, _BAG_MODES[mode], sparse, per_sample_weights, include_last_offset, padding_idx
    )[0]
