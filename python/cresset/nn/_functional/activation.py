"""Activation functions."""

from typing import Optional

import cresset
from cresset import Tensor
from cresset._C import _nn
from cresset._overridable import overridable

from ._common import number, softmax_dim

__all__ = [
    "threshold", "relu", "relu6", "glu", "hardtanh", "elu", "selu", "celu", "leaky_relu", "rrelu", "tanhshrink", "softsign",
    "softmin", "softmax", "gumbel_softmax", "log_softmax", "tanh", "sigmoid", "hardsigmoid", "silu", "mish", "hardswish",
]  # fmt: skip


@overridable
def threshold(input: Tensor, threshold: number, value: number, inplace: bool = False) -> Tensor:
    """`input` where it is greater than `threshold`, else `value`."""
    return cresset.threshold_(input, threshold, value) if inplace else cresset.threshold(input, threshold, value)


@overridable
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(input, 0), element by element."""
    return cresset.relu_(input) if inplace else cresset.relu(input)


@overridable
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(input, 0), 6)."""
    return _nn.relu6_(input) if inplace else _nn.relu6(input)


@overridable
def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Gated linear unit: the first half along `dim` times the sigmoid of the second half; the size must be even."""
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return _nn.glu(input, dim)


@overridable
def hardtanh(input: Tensor, min_val: number = -1.0, max_val: number = 1.0, inplace: bool = False) -> Tensor:
    """`input` clipped to [min_val, max_val]."""
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _nn.hardtanh_(input, min_val, max_val) if inplace else _nn.hardtanh(input, min_val, max_val)


@overridable
def elu(input: Tensor, alpha: number = 1.0, inplace: bool = False) -> Tensor:
    """max(0, x) + min(0, alpha (exp(x) - 1))."""
    return _nn.elu_(input, alpha) if inplace else _nn.elu(input, alpha)


@overridable
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """scale (max(0, x) + min(0, alpha (exp(x) - 1))) with the two self-normalising constants."""
    return cresset.selu_(input) if inplace else cresset.selu(input)


@overridable
def celu(input: Tensor, alpha: number = 1.0, inplace: bool = False) -> Tensor:
    """max(0, x) + min(0, alpha (exp(x / alpha) - 1))."""
    return cresset.celu_(input, alpha) if inplace else cresset.celu(input, alpha)


@overridable
def leaky_relu(input: Tensor, negative_slope: number = 0.01, inplace: bool = False) -> Tensor:
    """max(0, x) + negative_slope min(0, x)."""
    return _nn.leaky_relu_(input, negative_slope) if inplace else _nn.leaky_relu(input, negative_slope)


@overridable
def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False) -> Tensor:
    """leaky_relu with a slope drawn from [lower, upper] in training, their mean otherwise."""
    return cresset.rrelu_(input, lower, upper, training) if inplace else cresset.rrelu(input, lower, upper, training)


@overridable
def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    return input - input.tanh()


@overridable
def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return input / (input.abs() + 1)


@overridable
def softmin(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[cresset.dtype] = None) -> Tensor:
    """softmax of -input along `dim`."""
    if dim is None:
        dim = softmax_dim("softmin", input.dim(), _stacklevel)
    return cresset.softmax(-input, dim, dtype=dtype)


@overridable
def softmax(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[cresset.dtype] = None) -> Tensor:
    """exp(x) / sum(exp(x)) along `dim`; with `dtype` the input is cast first."""
    if dim is None:
        dim = softmax_dim("softmax", input.dim(), _stacklevel)
    return cresset.softmax(input, dim) if dtype is None else cresset.softmax(input, dim, dtype=dtype)


@overridable
def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample of the Gumbel-softmax distribution; with `hard` one-hot, differentiated as if it were soft."""
    noise = -cresset.empty_like(logits, memory_format=cresset.contiguous_format).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = cresset.zeros_like(logits, memory_format=cresset.contiguous_format).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft


@overridable
def log_softmax(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[cresset.dtype] = None) -> Tensor:
    """log(softmax(x)) along `dim`, computed stably."""
    if dim is None:
        dim = softmax_dim("log_softmax", input.dim(), _stacklevel)
    return cresset.log_softmax(input, dim) if dtype is None else cresset.log_softmax(input, dim, dtype=dtype)


@overridable
def tanh(input: Tensor) -> Tensor:
    """Hyperbolic tangent."""
    return input.tanh()


@overridable
def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x))."""
    return input.sigmoid()


@overridable
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """clip(x / 6 + 1/2, 0, 1)."""
    return _nn.hardsigmoid_(input) if inplace else _nn.hardsigmoid(input)


@overridable
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x sigmoid(x)."""
    return _nn.silu_(input) if inplace else _nn.silu(input)


@overridable
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x tanh(softplus(x))."""
    return _nn.mish_(input) if inplace else _nn.mish(input)


@overridable
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x clip(x + 3, 0, 6) / 6."""
    return _nn.hardswish_(input) if inplace else _nn.hardswish(input)
