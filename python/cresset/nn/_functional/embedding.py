"""Rows of a table by index, one by one or reduced over bags."""

import warnings
from typing import Optional

import cresset
from cresset import Tensor
from cresset._overridable import overridable
from cresset._scripting import is_scripting

__all__ = ["embedding", "embedding_bag"]


def _bag_mode(mode: str) -> int:
    """The number of a mode of embedding_bag."""
    if mode == "sum":
        return 0
    if mode == "mean":
        return 1
    if mode == "max":
        return 2
    raise ValueError("mode has to be one of sum, mean or max")


@overridable
def embedding(
    input: Tensor, weight: Tensor, padding_idx: Optional[int] = None, max_norm: Optional[float] = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    """Rows of `weight` (V, D) at the integer indices `input` (*): (*, D). The row `padding_idx` gets no gradient.

    With `max_norm` the rows looked up are first scaled down, in place, to that norm.
    """
    if padding_idx is None:
        padding_idx = -1
    else:
        rows = weight.size(0)
        if not -rows <= padding_idx < rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        if padding_idx < 0:
            padding_idx += rows
    if max_norm is not None:
        input = input.contiguous()
        cresset.embedding_renorm_(weight.detach(), input, max_norm, norm_type)  # detached and not under no_grad, which traces lose
    if sparse and not is_scripting() and cresset.is_grad_enabled() and weight.requires_grad:
        return cresset.sparse.rows_of(weight, input, padding_idx, scale_grad_by_freq)
    return cresset.embedding(weight, input, padding_idx, scale_grad_by_freq, sparse)


@overridable
def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Optional[Tensor] = None, max_norm: Optional[float] = None, norm_type: float = 2,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Optional[Tensor] = None,
    include_last_offset: bool = False, padding_idx: Optional[int] = None,
) -> Tensor:  # fmt: skip
    """Rows of `weight` (V, D) reduced over bags of indices: (bags, D).

    `input` is (bags, n), or (n,) with the bags beginning at `offsets` (bags,), one more entry with `include_last_offset`.
    `mode` is "sum" (with optional `per_sample_weights`), "mean" or "max"; indices equal to `padding_idx` do not count.
    ValueError for arguments that do not fit together.
    """
    if weight.dtype == cresset.long and input.is_floating_point():
        warnings.warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is deprecated, and should "
            "now be `embedding_bag(input, weight, ...)`.",
            stacklevel=2,
        )
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
                "found offsets of type <class 'cresset.Tensor'>"
            )
        bags, length = input.size(0), input.size(1)
        include_last_offset = False  # whatever the argument says: the bags are the rows
        if length > 0:
            offsets = cresset.arange(0, input.numel(), length, dtype=input.dtype, device=input.device)
        else:
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
    code = _bag_mode(mode)
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    if max_norm is not None:
        cresset.embedding_renorm_(weight.detach(), input.contiguous(), max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode='{mode}'). Please open a feature request on GitHub."
        )
    return cresset.embedding_bag(
        weight, input, offsets, scale_grad_by_freq, code, sparse, per_sample_weights, include_last_offset, padding_idx
    )[0]
