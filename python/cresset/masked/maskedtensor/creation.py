"""The two ways to make a MaskedTensor."""

from . import core


def masked_tensor(data, mask, requires_grad=False):
    """A new leaf with copies of `data` and `mask`, as `tensor()` makes one: no gradient reaches `data`. Errors are those of MaskedTensor."""
    return core.MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data, mask):
    """`data` under `mask`, differentiably: the gradient of the result, a MaskedTensor, reaches `data`. Errors are those of MaskedTensor."""
    core.check(data, mask)
    return core.AsMasked.apply(data, mask)


__all__ = ["as_masked_tensor", "masked_tensor"]
