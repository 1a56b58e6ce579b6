"""Initial values: every function fills the tensor in place, without recording gradients, and returns it."""

import math
import warnings

import cresset
from cresset._overridable import overridable as _asked

__all__ = [
    "calculate_gain", "uniform_", "normal_", "trunc_normal_", "constant_", "ones_", "zeros_", "eye_", "dirac_", "xavier_uniform_",
    "xavier_normal_", "kaiming_uniform_", "kaiming_normal_", "orthogonal_", "sparse_", "uniform", "normal", "constant", "eye",
    "dirac", "xavier_uniform", "xavier_normal", "kaiming_uniform", "kaiming_normal", "orthogonal", "sparse",
]  # fmt: skip


def _overridable(function):
    """overridable; who overrides is told of the tensor by keyword too."""
    function._by_keyword = True
    return _asked(function)


_LINEAR = frozenset(["linear", "sigmoid"] + [f"conv{t}{n}d" for t in ("", "_transpose") for n in (1, 2, 3)])


def calculate_gain(nonlinearity, param=None):
    """The recommended gain for a nonlinearity; `param` is leaky_relu's slope. ValueError for an unknown name."""
    if nonlinearity in _LINEAR:
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif isinstance(param, (int, float)) and not isinstance(param, bool):
            slope = param
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    if nonlinearity == "selu":
        return 3.0 / 4
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


@_overridable
def uniform_(tensor: "cresset.Tensor", a: float = 0.0, b: float = 1.0, generator: "cresset.Generator | None" = None) -> "cresset.Tensor":
    """Fill from the uniform distribution on [a, b)."""
    with cresset.no_grad():
        return tensor.uniform_(a, b, generator=generator)


@_overridable
def normal_(tensor: "cresset.Tensor", mean: float = 0.0, std: float = 1.0, generator: "cresset.Generator | None" = None) -> "cresset.Tensor":
    """Fill from the normal distribution."""
    with cresset.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Fill from the normal distribution cut to [a, b]."""
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be incorrect.",
            stacklevel=2,
        )

    def cdf(x):
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    low, high = (a - mean) / std, (b - mean) / std
    peak = max(low, min(high, 0.0))  # where the density is highest within the bounds
    if std > 0:  # farther out nothing is ever drawn
        a, b = (max(a, mean - 1000 * std), min(b, mean + 1000 * std)) if math.isfinite(a) and math.isfinite(b) else (a, b)
    if tensor.is_meta:
        return tensor
    with cresset.no_grad():
        # Draws outside are drawn again: from the normal distribution where that hits often enough, otherwise uniformly, by the density.
        # The first are drawn where the tensor lies: the order of its memory decides which element gets which number.
        values, drawn, outside = None, tensor, None
        while outside is None or outside.any():
            if cdf(high) - cdf(low) >= 0.3:
                drawn.normal_(mean, std, generator=generator)
                hit = (drawn >= a) & (drawn <= b)
            else:
                drawn.uniform_(a, b, generator=generator)
                chance = ((peak * peak - ((drawn - mean) / std) ** 2) / 2).exp_()
                hit = ~(cresset.empty_like(drawn).uniform_(generator=generator) > chance)  # without a number for the chance as well
            outside = cresset.ones_like(hit) if outside is None else outside
            values = drawn if values is None else cresset.where(outside & hit, drawn, values)
            outside = outside & ~hit
            drawn = cresset.empty_like(tensor)
        return tensor.copy_(values)


@_overridable
def constant_(tensor: "cresset.Tensor", val: float) -> "cresset.Tensor":
    """Fill with `val`."""
    with cresset.no_grad():
        return tensor.fill_(val)


def ones_(tensor: "cresset.Tensor") -> "cresset.Tensor":
    """Fill with 1."""
    return _no_grad_fill_(tensor, 1.0)


def zeros_(tensor: "cresset.Tensor") -> "cresset.Tensor":
    """Fill with 0."""
    with cresset.no_grad():
        return tensor.zero_()


def eye_(tensor):
    """Make a 2-dimensional tensor the identity matrix."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with cresset.no_grad():
        cresset.eye(*tensor.shape, out=tensor, requires_grad=tensor.requires_grad)
    return tensor


def dirac_(tensor, groups=1):
    """Make a convolution weight (3 to 5 dimensions) pass its input channels through, within each of `groups`."""
    ndim = tensor.dim()
    if ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    sizes = tensor.size()
    if sizes[0] % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = sizes[0] // groups
    middle = tuple(n // 2 for n in sizes[2:])
    with cresset.no_grad():
        tensor.zero_()
        for g in range(groups):
            for d in range(min(per_group, sizes[1])):
                tensor[(g * per_group + d, d, *middle)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: "cresset.Tensor"):
    """(inputs, outputs) of one unit of a weight (out, in, ...); ValueError below 2 dimensions."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    fan_in, fan_out = tensor.size(1), tensor.size(0)
    if tensor.dim() > 2:
        for size in tensor.shape[2:]:  # a loop: scripts compile it
            fan_in *= size
            fan_out *= size
    return fan_in, fan_out


def _calculate_correct_fan(tensor, mode):
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def xavier_uniform_(tensor: "cresset.Tensor", gain: float = 1.0, generator: "cresset.Generator | None" = None) -> "cresset.Tensor":
    """Uniform on [-a, a), a = gain sqrt(6 / (fan_in + fan_out))."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    bound = math.sqrt(3.0) * std
    return _no_grad_uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: "cresset.Tensor", gain: float = 1.0, generator: "cresset.Generator | None" = None) -> "cresset.Tensor":
    """Normal with std = gain sqrt(2 / (fan_in + fan_out))."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return _no_grad_normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


def _kaiming(tensor, a, mode, nonlinearity):
    """The standard deviation of the two kaiming functions, or None for a tensor without elements."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    return calculate_gain(nonlinearity, a) / math.sqrt(_calculate_correct_fan(tensor, mode))


@_overridable
def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Uniform on [-b, b), b = gain sqrt(3 / fan); `a` is leaky_relu's slope."""
    std = _kaiming(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return _no_grad_uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Normal with std = gain / sqrt(fan); `a` is leaky_relu's slope."""
    std = _kaiming(tensor, a, mode, nonlinearity)
    return tensor if std is None else _no_grad_normal_(tensor, 0, std, generator)


def orthogonal_(tensor, gain=1, generator=None):
    """A (semi-)orthogonal matrix times `gain`; dimensions after the first are flattened."""
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    cols = tensor.numel() // rows
    flat = tensor.new_empty((rows, cols)).normal_(0, 1, generator=generator)
    if rows < cols:
        flat.t_()
    q, r = cresset.linalg.qr(flat)
    # Makes the distribution uniform over the orthogonal matrices.
    q *= cresset.diag(r, 0).sign()
    if rows < cols:
        q.t_()
    with cresset.no_grad():
        tensor.view_as(q).copy_(q)
        tensor.mul_(gain)
    return tensor


def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Normal, with the fraction `sparsity` of each column set to 0; 2-dimensional tensors only."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, cols = tensor.shape
    zeros = int(math.ceil(sparsity * rows))
    with cresset.no_grad():
        tensor.normal_(0, std, generator=generator)
        for col in range(cols):
            tensor[cresset.randperm(rows)[:zeros], col] = 0
    return tensor


# Names under which libraries have the fills without gradient.
def _no_grad_uniform_(tensor: "cresset.Tensor", a: float, b: float, generator: "cresset.Generator | None" = None) -> "cresset.Tensor":
    """Fill with numbers uniform in [a, b), without a gradient."""
    with cresset.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def _no_grad_normal_(tensor: "cresset.Tensor", mean: float, std: float, generator: "cresset.Generator | None" = None) -> "cresset.Tensor":
    """Fill with normal numbers, without a gradient."""
    with cresset.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def _no_grad_trunc_normal_(tensor, mean, std, a, b, generator=None):
    """Fill with normal numbers inside [a, b], without a gradient."""
    return trunc_normal_(tensor, mean, std, a, b, generator)


def _no_grad_fill_(tensor: "cresset.Tensor", val: float) -> "cresset.Tensor":
    """Fill with `val`, without a gradient."""
    with cresset.no_grad():
        return tensor.fill_(val)


def _no_grad_zero_(tensor):
    """Fill with zeros, without a gradient."""
    return zeros_(tensor)


def _deprecated(function):
    new, old = function.__name__, function.__name__[:-1]

    def wrapper(*args, **kwargs):
        warnings.warn(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.", FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    wrapper.__name__ = wrapper.__qualname__ = old
    wrapper.__doc__ = f"Older name of {new}."
    return wrapper


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)
