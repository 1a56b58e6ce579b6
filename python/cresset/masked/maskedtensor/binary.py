"""Elementwise operators of two tensors: both have the same mask, or one is plain."""

import cresset

from . import core

BINARY_NAMES = [
    "add", "atan2", "arctan2", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift", "div", "divide",
    "floor_divide", "fmod", "logaddexp", "logaddexp2", "mul", "multiply", "nextafter", "remainder", "sub", "subtract", "true_divide", "eq", "ne",
    "le", "ge", "greater", "greater_equal", "gt", "less_equal", "lt", "less", "maximum", "minimum", "fmax", "fmin", "not_equal",
]  # fmt: skip
INPLACE_BINARY_NAMES = [n + "_" for n in BINARY_NAMES if n not in ("logaddexp", "logaddexp2", "maximum", "minimum", "fmax", "fmin")]

NATIVE_BINARY_FNS = [getattr(cresset.ops.aten, n) for n in BINARY_NAMES]
NATIVE_INPLACE_BINARY_FNS = [getattr(cresset.ops.aten, n) for n in INPLACE_BINARY_NAMES]


def _operands(a, b):
    """(data or number, data or number, like, mask): what the operator is applied to, and whose indices and mask the result has."""
    if not core._masks_match(a, b):
        raise ValueError("Input masks must match. If you need support for this, please open an issue on Github.")
    masked = a if core.is_masked_tensor(a) else b
    if not core.is_masked_tensor(masked):
        raise TypeError("MaskedTensor binary ops expect a MaskedTensor among their first two arguments")

    def plain(x):
        if core.is_masked_tensor(x):
            return core.values(x._data)
        if isinstance(x, cresset.Tensor) and x.dim() and x.layout is not masked.layout:
            raise TypeError(f"a plain operand of a MaskedTensor must have its layout, {masked.layout}; given: {x.layout}")
        if isinstance(x, cresset.Tensor) and x.layout is not cresset.strided:
            return core.values(x.sparse_mask(masked._mask))
        return x

    return plain(a), plain(b), masked._data, masked._mask


def apply(op, a, b, *args, **kwargs):
    """`op` of the data. ValueError for masks that differ and for out=."""
    if kwargs.get("out") is not None:
        raise ValueError("MaskedTensor binary ops take no out=")
    x, y, like, mask = _operands(a, b)
    result = core.with_values(like, op(x, y, *args, **kwargs))
    return core.make(result, mask if mask.shape == result.shape else mask.expand(result.shape))


def apply_(op, a, b, *args, **kwargs):
    """`op` of the data in place. ValueError for masks that differ, TypeError where the first operand has none."""
    if not core.is_masked_tensor(a):
        raise TypeError("the elements that a mask leaves out cannot be written into a plain tensor")
    x, y, _, _ = _operands(a, b)
    op(x, y, *args, **kwargs)
    return a
