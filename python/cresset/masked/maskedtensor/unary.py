"""Elementwise operators of one tensor: the data goes through the operator, the mask stays."""

import cresset

from . import core

UNARY_NAMES = [
    "abs", "absolute", "acos", "arccos", "acosh", "arccosh", "angle", "asin", "arcsin", "asinh", "arcsinh", "atan", "arctan", "atanh", "arctanh",
    "bitwise_not", "ceil", "clamp", "clip", "conj_physical", "cos", "cosh", "deg2rad", "digamma", "erf", "erfc", "erfinv", "exp", "exp2", "expm1",
    "fix", "floor", "frac", "lgamma", "log", "log10", "log1p", "log2", "logit", "i0", "isnan", "nan_to_num", "neg", "negative", "positive", "pow",
    "rad2deg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sgn", "signbit", "sin", "sinc", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
]  # fmt: skip
INPLACE_UNARY_NAMES = [n + "_" for n in UNARY_NAMES if n not in ("angle", "isnan", "positive", "signbit")]

NATIVE_UNARY_FNS = [getattr(cresset.ops.aten, n) for n in UNARY_NAMES]
NATIVE_INPLACE_UNARY_FNS = [getattr(cresset.ops.aten, n) for n in INPLACE_UNARY_NAMES]


def apply(op, masked, *args, **kwargs):
    """`op` of the data. TypeError for further tensors, ValueError for out=."""
    if any(isinstance(x, cresset.Tensor) for x in (*args, *kwargs.values()) if x is not kwargs.get("out")):
        raise TypeError("MaskedTensor unary ops do not support additional Tensor arguments")
    if kwargs.get("out") is not None:
        raise ValueError("MaskedTensor unary ops take no out=")
    if not core.is_masked_tensor(masked):
        raise TypeError("MaskedTensor unary ops expect a MaskedTensor as their first argument")
    result = op(core.values(masked._data), *args, **kwargs)
    return core.make(core.with_values(masked._data, result), masked._mask)


def apply_(op, masked, *args, **kwargs):
    """`op` of the data in place. TypeError for further tensors."""
    if any(isinstance(x, cresset.Tensor) for x in (*args, *kwargs.values())):
        raise TypeError("MaskedTensor unary ops do not support additional Tensor arguments")
    op(core.values(masked._data), *args, **kwargs)
    return masked
