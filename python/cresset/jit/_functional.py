"""nn.functional in the subset of Python that scripts are made of: what is compiled where a script calls a function of that name.

The functions of nn.functional that are operators need no entry; the others ask for overriding arguments first, and are repeated here
without that. Equality is tested function by function.
"""

import math
from typing import List, Optional, Tuple

import cresset
from cresset import Tensor, _C
from cresset._C import _nn

number = _C.NumberType.get()


class Ints1:
    """List[int] for which one int may be given."""

    _broadcasts = (1, _C.IntType.get())


class Ints2:
    """List[int] for which one int may be given, to be repeated."""

    _broadcasts = (2, _C.IntType.get())


class Ints3:
    """List[int] for which one int may be given, to be repeated."""

    _broadcasts = (3, _C.IntType.get())


class Floats1:
    """List[float] for which one float may be given."""

    _broadcasts = (1, _C.FloatType.get())



# Activations ----------------------------------------------------------------------------------------------------------


def threshold(input: Tensor, threshold: number, value: number, inplace: bool = False) -> Tensor:
    return cresset.threshold_(input, threshold, value) if inplace else cresset.threshold(input, threshold, value)


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    return cresset.relu_(input) if inplace else cresset.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    return _nn.relu6_(input) if inplace else _nn.relu6(input)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return _nn.glu(input, dim)


def hardtanh(input: Tensor, min_val: number = -1.0, max_val: number = 1.0, inplace: bool = False) -> Tensor:
    if float(min_val) > float(max_val):
        raise ValueError("min_val cannot be greater than max_val")
    return _nn.hardtanh_(input, min_val, max_val) if inplace else _nn.hardtanh(input, min_val, max_val)


def elu(input: Tensor, alpha: number = 1.0, inplace: bool = False) -> Tensor:
    return _nn.elu_(input, alpha) if inplace else _nn.elu(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    return cresset.selu_(input) if inplace else cresset.selu(input)


def celu(input: Tensor, alpha: number = 1.0, inplace: bool = False) -> Tensor:
    return cresset.celu_(input, alpha) if inplace else cresset.celu(input, alpha)


def leaky_relu(input: Tensor, negative_slope: number = 0.01, inplace: bool = False) -> Tensor:
    return _nn.leaky_relu_(input, negative_slope) if inplace else _nn.leaky_relu(input, negative_slope)


def rrelu(input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False) -> Tensor:
    if lower > upper:
        raise RuntimeError(f"rrelu: lower must not be greater than upper; got {lower} and {upper}")
    if not training:
        slope = (lower + upper) / 2
        return _nn.leaky_relu_(input, slope) if inplace else _nn.leaky_relu(input, slope)
    below = input <= 0
    slopes = cresset.empty([int(below.sum())], dtype=cresset.float64, device=input.device).uniform_(lower, upper)
    factor = cresset.ones_like(input).masked_scatter(below, slopes.to(input.dtype))
    return input.mul_(factor) if inplace else input * factor


def tanhshrink(input: Tensor) -> Tensor:
    return input - input.tanh()


def softsign(input: Tensor) -> Tensor:
    return input / (input.abs() + 1)


def _softmax_dim(ndim: int) -> int:
    return 0 if ndim == 0 or ndim == 1 or ndim == 3 else 1


def softmin(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    return cresset.softmax(-input, _softmax_dim(input.dim()) if dim is None else dim, dtype)


def softmax(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    return cresset.softmax(input, _softmax_dim(input.dim()) if dim is None else dim, dtype)


def log_softmax(input: Tensor, dim: Optional[int] = None, _stacklevel: int = 3, dtype: Optional[int] = None) -> Tensor:
    return cresset.log_softmax(input, _softmax_dim(input.dim()) if dim is None else dim, dtype)


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    noise = -cresset.empty_like(logits, memory_format=cresset.contiguous_format).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.max(dim, keepdim=True)[1]
    one_hot = cresset.zeros_like(logits, memory_format=cresset.contiguous_format).scatter_(dim, index, 1.0)
    return one_hot - soft.detach() + soft


def tanh(input: Tensor) -> Tensor:
    return input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    return input.sigmoid()


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    return _nn.hardsigmoid_(input) if inplace else _nn.hardsigmoid(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    return _nn.silu_(input) if inplace else _nn.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    return _nn.mish_(input) if inplace else _nn.mish(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    return _nn.hardswish_(input) if inplace else _nn.hardswish(input)


# Dropout --------------------------------------------------------------------------------------------------------------


def _check_probability(p: float):
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    _check_probability(p)
    return cresset.dropout_(input, p, training) if inplace else cresset.dropout(input, p, training)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    _check_probability(p)
    result = cresset.alpha_dropout(input, p, training)
    return input.copy_(result) if inplace else result


def _feature_dropout(input: Tensor, p: float, training: bool, inplace: bool, batched: bool) -> Tensor:
    _check_probability(p)
    result = cresset.feature_dropout(input if batched else input.unsqueeze(0), p, training)
    if not batched:
        result = result.squeeze(0)
    return input.copy_(result) if inplace else result


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if input.dim() != 2 and input.dim() != 3:
        raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a {input.dim()}D input.")
    return _feature_dropout(input, p, training, inplace, input.dim() == 3)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return _feature_dropout(input, p, training, inplace, True)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    return _feature_dropout(input, p, training, inplace, input.dim() != 4)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    _check_probability(p)
    if p == 0.0 or not training or input.numel() == 0:
        return input
    if p == 1.0:
        return input.mul_(0) if inplace else input * 0
    if input.dim() < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    shape = [input.size(0), input.size(1)]
    for _ in range(input.dim() - 2):
        shape.append(1)
    kept = cresset.empty(shape, dtype=input.dtype, device=input.device).bernoulli_(1 - p)
    alpha = 1.7580993408473766
    scale = 1.0 / math.sqrt((alpha * alpha * p + 1) * (1 - p))
    shift = (kept - 1).mul_(alpha * scale).add_(alpha * scale * p)
    kept.mul_(scale)
    return input.mul_(kept).add_(shift) if inplace else input * kept + shift


# Normalisation --------------------------------------------------------------------------------------------------------


def _more_than_one(size: List[int], first: int, what: str):
    count = first
    for i in range(len(size) - 2):
        count *= size[i + 2]
    if count == 1:
        raise ValueError(f"Expected more than 1 {what} when training, got input size {size}")


def batch_norm(
    input: Tensor, running_mean: Optional[Tensor], running_var: Optional[Tensor], weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-05,
) -> Tensor:  # fmt: skip
    if training:
        _more_than_one(input.size(), input.size(0), "value per channel")
    return cresset.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, False)


def instance_norm(
    input: Tensor, running_mean: Optional[Tensor] = None, running_var: Optional[Tensor] = None, weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-05,
) -> Tensor:  # fmt: skip
    if use_input_stats:
        _more_than_one(input.size(), 1, "spatial element")
    return cresset.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False)


def layer_norm(
    input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, eps: float = 1e-05
) -> Tensor:
    return cresset.layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None, eps: Optional[float] = None) -> Tensor:
    return cresset.rms_norm(input, normalized_shape, weight, eps)


def group_norm(input: Tensor, num_groups: int, weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, eps: float = 1e-05) -> Tensor:
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    size = input.size()
    _more_than_one(size, size[0] * size[1] // num_groups, "value per channel")
    return cresset.group_norm(input, num_groups, weight, bias, eps, False)


def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: number = 1.0) -> Tensor:
    ndim = input.dim()
    if ndim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {ndim} dimensions)")
    if input.numel() == 0:
        return input
    squares = input.mul(input).unsqueeze(1)
    before, after = size // 2, (size - 1) // 2
    if ndim == 3:
        squares = _nn.pad(squares, [0, 0, before, after])
        mean = _nn.avg_pool2d(squares, [size, 1], [1]).squeeze(1)
    else:
        shape = input.size()
        squares = squares.view([shape[0], 1, shape[1], shape[2], -1])
        squares = _nn.pad(squares, [0, 0, 0, 0, before, after])
        mean = _nn.avg_pool3d(squares, [size, 1, 1], [1]).squeeze(1).view(shape)
    return input / mean.mul(alpha).add(k).pow(beta)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Optional[Tensor] = None) -> Tensor:
    denominator = input.norm(p, [dim], True).clamp_min(eps).expand_as(input)
    if out is None:
        return input / denominator
    return cresset.div(input, denominator, out=out)


# Embeddings -----------------------------------------------------------------------------------------------------------


def embedding(
    input: Tensor, weight: Tensor, padding_idx: Optional[int] = None, max_norm: Optional[float] = None, norm_type: float = 2.0,
    scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    rows = weight.size(0)
    padding = -1
    if padding_idx is not None:
        if padding_idx < -rows or padding_idx >= rows:
            raise AssertionError(f"Padding_idx must be within num_embeddings; got {padding_idx} for {rows} rows")
        padding = padding_idx + rows if padding_idx < 0 else padding_idx
    if max_norm is not None:
        input = input.contiguous()
        with cresset.no_grad():
            cresset.embedding_renorm_(weight, input, max_norm, norm_type)
    return cresset.embedding(weight, input, padding, scale_grad_by_freq, sparse)


def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Optional[Tensor] = None, max_norm: Optional[float] = None, norm_type: float = 2,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, per_sample_weights: Optional[Tensor] = None,
    include_last_offset: bool = False, padding_idx: Optional[int] = None,
) -> Tensor:  # fmt: skip
    if weight.dtype == cresset.long and input.is_floating_point():
        input, weight = weight, input
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError("embedding_bag: per_sample_weights must have the same shape as the input")
    starts = cresset.zeros([0], dtype=cresset.long)
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError("if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences.")
        bags, length = input.size(0), input.size(1)
        if length > 0:
            starts = cresset.arange(0, bags * length, length, dtype=input.dtype, device=input.device)
        else:
            starts = cresset.zeros([bags], dtype=input.dtype, device=input.device)
        input = input.reshape([-1])
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape([-1])
    elif input.dim() == 1:
        if offsets is None:
            raise ValueError("offsets has to be a 1D Tensor but got None")
        if offsets.dim() != 1:
            raise ValueError("offsets has to be a 1D Tensor")
        starts = offsets
    else:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    code = 0
    if mode == "mean":
        code = 1
    elif mode == "max":
        code = 2
        if scale_grad_by_freq or sparse:
            raise ValueError("max mode does not support scaling the gradient by the frequency or sparse weights")
    elif mode != "sum":
        raise ValueError("mode has to be one of sum, mean or max")
    if max_norm is not None:
        with cresset.no_grad():
            cresset.embedding_renorm_(weight, input.contiguous(), max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(f"embedding_bag: per_sample_weights is only supported for mode='sum' (got mode='{mode}').")
    return cresset.embedding_bag(
        weight, input, starts, scale_grad_by_freq, code, sparse, per_sample_weights, include_last_offset, padding_idx
    )[0]


# Pooling --------------------------------------------------------------------------------------------------------------


def max_pool1d(
    input: Tensor, kernel_size: Ints1, stride: Optional[Ints1] = None, padding: Ints1 = 0, dilation: Ints1 = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:  # fmt: skip
    return cresset.max_pool1d(input, kernel_size, kernel_size if stride is None else stride, padding, dilation, ceil_mode)


def max_pool2d(
    input: Tensor, kernel_size: Ints2, stride: Optional[Ints2] = None, padding: Ints2 = 0, dilation: Ints2 = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:  # fmt: skip
    return cresset.max_pool2d(input, kernel_size, kernel_size if stride is None else stride, padding, dilation, ceil_mode)


def max_pool3d(
    input: Tensor, kernel_size: Ints3, stride: Optional[Ints3] = None, padding: Ints3 = 0, dilation: Ints3 = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:  # fmt: skip
    return cresset.max_pool3d(input, kernel_size, kernel_size if stride is None else stride, padding, dilation, ceil_mode)


def max_pool1d_with_indices(
    input: Tensor, kernel_size: Ints1, stride: Optional[Ints1] = None, padding: Ints1 = 0, dilation: Ints1 = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    return cresset.max_pool1d_with_indices(input, kernel_size, kernel_size if stride is None else stride, padding, dilation, ceil_mode)


def max_pool2d_with_indices(
    input: Tensor, kernel_size: Ints2, stride: Optional[Ints2] = None, padding: Ints2 = 0, dilation: Ints2 = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    return _nn.max_pool2d_with_indices(input, kernel_size, kernel_size if stride is None else stride, padding, dilation, ceil_mode)


def max_pool3d_with_indices(
    input: Tensor, kernel_size: Ints3, stride: Optional[Ints3] = None, padding: Ints3 = 0, dilation: Ints3 = 1, ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    return _nn.max_pool3d_with_indices(input, kernel_size, kernel_size if stride is None else stride, padding, dilation, ceil_mode)


def adaptive_max_pool1d_with_indices(input: Tensor, output_size: Ints1, return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    return cresset.adaptive_max_pool1d(input, output_size)


def adaptive_max_pool2d_with_indices(input: Tensor, output_size: Ints2, return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    return _nn.adaptive_max_pool2d(input, output_size)


def adaptive_max_pool3d_with_indices(input: Tensor, output_size: Ints3, return_indices: bool = False) -> Tuple[Tensor, Tensor]:
    return _nn.adaptive_max_pool3d(input, output_size)


def adaptive_max_pool1d(input: Tensor, output_size: Ints1, return_indices: bool = False) -> Tensor:
    return cresset.adaptive_max_pool1d(input, output_size)[0]


def adaptive_max_pool2d(input: Tensor, output_size: Ints2, return_indices: bool = False) -> Tensor:
    return _nn.adaptive_max_pool2d(input, output_size)[0]


def adaptive_max_pool3d(input: Tensor, output_size: Ints3, return_indices: bool = False) -> Tensor:
    return _nn.adaptive_max_pool3d(input, output_size)[0]


def adaptive_avg_pool2d(input: Tensor, output_size: Ints2) -> Tensor:
    return _nn.adaptive_avg_pool2d(input, output_size)


def adaptive_avg_pool3d(input: Tensor, output_size: Ints3) -> Tensor:
    return _nn.adaptive_avg_pool3d(input, output_size)


def _lp(pooled_mean: Tensor, norm_type: float, window: int) -> Tensor:
    return (pooled_mean.sign() * pooled_mean.abs().relu() * window).pow(1.0 / norm_type)


def lp_pool1d(input: Tensor, norm_type: float, kernel_size: Ints1, stride: Optional[Ints1] = None, ceil_mode: bool = False) -> Tensor:
    step = kernel_size if stride is None else stride
    return _lp(cresset.avg_pool1d(input.pow(norm_type), kernel_size, step, [0], ceil_mode), norm_type, kernel_size[0])


def lp_pool2d(input: Tensor, norm_type: float, kernel_size: Ints2, stride: Optional[Ints2] = None, ceil_mode: bool = False) -> Tensor:
    step = kernel_size if stride is None else stride
    return _lp(_nn.avg_pool2d(input.pow(norm_type), kernel_size, step, [0], ceil_mode), norm_type, kernel_size[0] * kernel_size[1])


def lp_pool3d(input: Tensor, norm_type: float, kernel_size: Ints3, stride: Optional[Ints3] = None, ceil_mode: bool = False) -> Tensor:
    step = kernel_size if stride is None else stride
    window = kernel_size[0] * kernel_size[1] * kernel_size[2]
    return _lp(_nn.avg_pool3d(input.pow(norm_type), kernel_size, step, [0], ceil_mode), norm_type, window)


def _unpool_size(input: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], output_size: Optional[List[int]]) -> List[int]:
    n = len(kernel_size)
    if input.dim() != n + 1 and input.dim() != n + 2:
        raise RuntimeError(f"max_unpool{n}d: input of {n + 1} or {n + 2} dimensions was required; got {input.dim()}.")
    smallest: List[int] = []
    for i in range(n):
        smallest.append((input.size(i - n) - 1) * stride[i] + kernel_size[i] - 2 * padding[i])
    if output_size is None:
        return smallest
    wanted = output_size[2:] if len(output_size) == n + 2 else output_size
    if len(wanted) != n:
        raise ValueError(f"output_size should be a sequence containing {n} or {n + 2} elements, but it has a length of '{len(wanted)}'")
    for d in range(n):
        low, high = smallest[d] - stride[d], smallest[d] + stride[d]
        if wanted[d] <= low or wanted[d] >= high:
            raise ValueError(f'invalid output_size "{wanted}" (dim {d} must be between {low} and {high})')
    return wanted


def max_unpool1d(
    input: Tensor, indices: Tensor, kernel_size: Ints1, stride: Optional[Ints1] = None, padding: Ints1 = 0,
    output_size: Optional[List[int]] = None,
) -> Tensor:  # fmt: skip
    size = _unpool_size(input, kernel_size, kernel_size if stride is None else stride, padding, output_size)
    return _nn.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [size[0], 1]).squeeze(-1)


def max_unpool2d(
    input: Tensor, indices: Tensor, kernel_size: Ints2, stride: Optional[Ints2] = None, padding: Ints2 = 0,
    output_size: Optional[List[int]] = None,
) -> Tensor:  # fmt: skip
    return _nn.max_unpool2d(input, indices, _unpool_size(input, kernel_size, kernel_size if stride is None else stride, padding, output_size))


def max_unpool3d(
    input: Tensor, indices: Tensor, kernel_size: Ints3, stride: Optional[Ints3] = None, padding: Ints3 = 0,
    output_size: Optional[List[int]] = None,
) -> Tensor:  # fmt: skip
    step = kernel_size if stride is None else stride
    return _nn.max_unpool3d(input, indices, _unpool_size(input, kernel_size, step, padding, output_size), step, padding)


def _fractional_size(input: Tensor, n: int, output_size: Optional[List[int]], output_ratio: Optional[List[float]]) -> List[int]:
    if output_size is not None:
        return output_size
    if output_ratio is None:
        raise ValueError(f"fractional_max_pool{n}d requires specifying either an output_size or an output_ratio")
    size: List[int] = []
    for i in range(n):
        size.append(int(input.size(i - n) * output_ratio[i]))
    return size


def _fractional_samples(input: Tensor, n: int, samples: Optional[Tensor]) -> Tensor:
    if samples is not None:
        return samples
    batch = 1 if input.dim() == n + 1 else input.size(0)
    return cresset.rand([batch, input.size(-n - 1), n], dtype=input.dtype, device=input.device)


def fractional_max_pool2d_with_indices(
    input: Tensor, kernel_size: Ints2, output_size: Optional[Ints2] = None, output_ratio: Optional[Floats1] = None,
    return_indices: bool = False, _random_samples: Optional[Tensor] = None,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    size = _fractional_size(input, 2, output_size, output_ratio)
    return _nn.fractional_max_pool2d(input, kernel_size, size, _fractional_samples(input, 2, _random_samples))


def fractional_max_pool3d_with_indices(
    input: Tensor, kernel_size: Ints3, output_size: Optional[Ints3] = None, output_ratio: Optional[Floats1] = None,
    return_indices: bool = False, _random_samples: Optional[Tensor] = None,
) -> Tuple[Tensor, Tensor]:  # fmt: skip
    size = _fractional_size(input, 3, output_size, output_ratio)
    return _nn.fractional_max_pool3d(input, kernel_size, size, _fractional_samples(input, 3, _random_samples))


def fractional_max_pool2d(
    input: Tensor, kernel_size: Ints2, output_size: Optional[Ints2] = None, output_ratio: Optional[Floats1] = None,
    return_indices: bool = False, _random_samples: Optional[Tensor] = None,
) -> Tensor:  # fmt: skip
    return fractional_max_pool2d_with_indices(input, kernel_size, output_size, output_ratio, return_indices, _random_samples)[0]


def fractional_max_pool3d(
    input: Tensor, kernel_size: Ints3, output_size: Optional[Ints3] = None, output_ratio: Optional[Floats1] = None,
    return_indices: bool = False, _random_samples: Optional[Tensor] = None,
) -> Tensor:  # fmt: skip
    return fractional_max_pool3d_with_indices(input, kernel_size, output_size, output_ratio, return_indices, _random_samples)[0]
