"""Activation functions."""

import cresset
from cresset._overridable import overridable
from cresset._C import _nn

from ._common import handle, overrides1, softmax_dim

__all__ = [
    "threshold", "relu", "relu6", "glu", "hardtanh", "elu", "selu", "celu", "leaky_relu", "rrelu", "tanhshrink", "softsign",
    "softmin", "softmax", "gumbel_softmax", "log_softmax", "tanh", "sigmoid", "hardsigmoid", "silu", "mish", "hardswish",
]  # fmt: skip


def threshold(input, threshold, value, inplace=False):
    """`input` where it is greater than `threshold`, else `value`."""
    if overrides1(input):
        return handle(_threshold, (input,), input, threshold, value, inplace=inplace)
    return cresset.threshold_(input, threshold, value) if inplace else cresset.threshold(input, threshold, value)


_threshold = threshold  # inside the function the name is its argument


def relu(input, inplace=False):
    """max(input, 0), element by element."""
    if overrides1(input):
        return handle(relu, (input,), input, inplace=inplace)
    return cresset.relu_(input) if inplace else cresset.relu(input)


def relu6(input, inplace=False):
    """min(max(input, 0), 6)."""
    if overrides1(input):
        return handle(relu6, (input,), input, inplace=inplace)
    return _nn.relu6_(input) if inplace else _nn.relu6(input)


def glu(input, dim=-1):
    """Gated linear unit: the first half along `dim` times the sigmoid of the second half; the size must be even."""
    if overrides1(input):
        return handle(glu, (input,), input, dim=dim)
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return _nn.glu(input, dim)


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """`input` clipped to [min_val, max_val]."""
    if overrides1(input):
        return handle(hardtanh, (input,), input, min_val=min_val, max_val=max_val, inplace=inplace)
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _nn.hardtanh_(input, min_val, max_val) if inplace else _nn.hardtanh(input, min_val, max_val)


def elu(input, alpha=1.0, inplace=False):
    """max(0, x) + min(0, alpha (exp(x) - 1))."""
    if overrides1(input):
        return handle(elu, (input,), input, alpha=alpha, inplace=inplace)
    return _nn.elu_(input, alpha) if inplace else _nn.elu(input, alpha)


def selu(input, inplace=False):
    """scale (max(0, x) + min(0, alpha (exp(x) - 1))) with the two self-normalising constants."""
    if overrides1(input):
        return handle(selu, (input,), input, inplace=inplace)
    return cresset.selu_(input) if inplace else cresset.selu(input)


def celu(input, alpha=1.0, inplace=False):
    """max(0, x) + min(0, alpha (exp(x / alpha) - 1))."""
    if overrides1(input):
        return handle(celu, (input,), input, alpha=alpha, inplace=inplace)
    return cresset.celu_(input, alpha) if inplace else cresset.celu(input, alpha)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """max(0, x) + negative_slope min(0, x)."""
    if overrides1(input):
        return handle(leaky_relu, (input,), input, negative_slope=negative_slope, inplace=inplace)
    return _nn.leaky_relu_(input, negative_slope) if inplace else _nn.leaky_relu(input, negative_slope)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """leaky_relu with a slope drawn from [lower, upper] in training, their mean otherwise."""
    if overrides1(input):
        return handle(rrelu, (input,), input, lower=lower, upper=upper, training=training, inplace=inplace)
    if lower > upper:
        raise RuntimeError(f"rrelu: lower must not be greater than upper; got {lower} and {upper}")
    if not training:
        slope = (lower + upper) / 2
        return _nn.leaky_relu_(input, slope) if inplace else _nn.leaky_relu(input, slope)
    # One number for each element that is not positive, in order.
    with cresset.no_grad():
        below = input <= 0
        slopes = cresset.empty(int(below.sum()), dtype=cresset.float64, device=input.device).uniform_(lower, upper)
        factor = cresset.ones_like(input)
        factor[below] = slopes.to(input.dtype)
    return input.mul_(factor) if inplace else input * factor


def tanhshrink(input):
    """x - tanh(x)."""
    if overrides1(input):
        return handle(tanhshrink, (input,), input)
    return input - input.tanh()


def softsign(input):
    """x / (1 + |x|)."""
    if overrides1(input):
        return handle(softsign, (input,), input)
    return input / (input.abs() + 1)


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """softmax of -input along `dim`."""
    if overrides1(input):
        return handle(softmin, (input,), input, dim=dim, _stacklevel=_stacklevel, dtype=dtype)
    if dim is None:
        dim = softmax_dim("softmin", input.dim(), _stacklevel)
    return cresset.softmax(-input, dim, dtype=dtype)


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """exp(x) / sum(exp(x)) along `dim`; with `dtype` the input is cast first."""
    if overrides1(input):
        return handle(softmax, (input,), input, dim=dim, _stacklevel=_stacklevel, dtype=dtype)
    if dim is None:
        dim = softmax_dim("softmax", input.dim(), _stacklevel)
    return cresset.softmax(input, dim) if dtype is None else cresset.softmax(input, dim, dtype=dtype)


def gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1):
    """A sample of the Gumbel-softmax distribution; with `hard` one-hot, differentiated as if it were soft."""
    if overrides1(logits):
        return handle(gumbel_softmax, (logits,), logits, tau=tau, hard=hard, eps=eps, dim=dim)
    noise = -cresset.empty_like(logits, memory_format=cresset.contiguous_format).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = cresset.zeros_like(logits, memory_format=cresset.contiguous_format).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """log(softmax(x)) along `dim`, computed stably."""
    if overrides1(input):
        return handle(log_softmax, (input,), input, dim=dim, _stacklevel=_stacklevel, dtype=dtype)
    if dim is None:
        dim = softmax_dim("log_softmax", input.dim(), _stacklevel)
    return cresset.log_softmax(input, dim) if dtype is None else cresset.log_softmax(input, dim, dtype=dtype)


@overridable
def tanh(input):
    """Hyperbolic tangent."""
    return input.tanh()


@overridable
def sigmoid(input):
    """1 / (1 + exp(-x))."""
    return input.sigmoid()


def hardsigmoid(input, inplace=False):
    """clip(x / 6 + 1/2, 0, 1)."""
    if overrides1(input):
        return handle(hardsigmoid, (input,), input, inplace=inplace)
    return _nn.hardsigmoid_(input) if inplace else _nn.hardsigmoid(input)


def silu(input, inplace=False):
    """x sigmoid(x)."""
    if overrides1(input):
        return handle(silu, (input,), input, inplace=inplace)
    return _nn.silu_(input) if inplace else _nn.silu(input)


def mish(input, inplace=False):
    """x tanh(softplus(x))."""
    if overrides1(input):
        return handle(mish, (input,), input, inplace=inplace)
    return _nn.mish_(input) if inplace else _nn.mish(input)


def hardswish(input, inplace=False):
    """x clip(x + 3, 0, 6) / 6."""
    if overrides1(input):
        return handle(hardswish, (input,), input, inplace=inplace)
    return _nn.hardswish_(input) if inplace else _nn.hardswish(input)
