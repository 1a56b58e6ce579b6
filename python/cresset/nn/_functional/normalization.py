"""Normalisation functions."""

from typing import List, Optional

import cresset
from cresset import Tensor
from cresset._C import _nn
from cresset._overridable import overridable

from ._common import number

__all__ = [
    "batch_norm", "instance_norm", "layer_norm", "rms_norm", "group_norm", "local_response_norm", "normalize",
]  # fmt: skip


def _more_than_one(size: List[int], first: int, what: str = "value per channel"):
    count = first
    for n in size[2:]:
        count *= n
    if count == 1:
        raise ValueError(f"Expected more than 1 {what} when training, got input size {size}")


def _verify_batch_size(size: List[int]):
    """ValueError unless a batch of this size (N, C, ...) has more than one value for each channel."""
    _more_than_one(size, size[0])


def _verify_spatial_size(size: List[int]):
    """ValueError unless a sample of this size (N, C, ...) has more than one value for each channel."""
    _more_than_one(size, 1, "spatial element")


@overridable
def batch_norm(
    input: Tensor, running_mean: Optional[Tensor], running_var: Optional[Tensor], weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-05,
) -> Tensor:  # fmt: skip
    """Normalise each channel of (N, C, ...) over all other dimensions; in training the running statistics are updated."""
    if training:
        _verify_batch_size(input.size())
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return cresset.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, True)


@overridable
def instance_norm(
    input: Tensor, running_mean: Optional[Tensor] = None, running_var: Optional[Tensor] = None, weight: Optional[Tensor] = None,
    bias: Optional[Tensor] = None, use_input_stats: bool = True, momentum: float = 0.1, eps: float = 1e-05,
) -> Tensor:  # fmt: skip
    """Normalise each channel of each sample of (N, C, ...)."""
    if use_input_stats:
        _verify_spatial_size(input.size())
    return cresset.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, True)


@overridable
def layer_norm(
    input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, eps: float = 1e-05
) -> Tensor:
    """Normalise over the last dimensions, whose sizes are `normalized_shape`."""
    return cresset.layer_norm(input, normalized_shape, weight, bias, eps)


@overridable
def rms_norm(input: Tensor, normalized_shape: List[int], weight: Optional[Tensor] = None, eps: Optional[float] = None) -> Tensor:
    """Divide by the root mean square over the last dimensions; `eps` None is the dtype's epsilon."""
    return cresset.rms_norm(input, normalized_shape, weight, eps)


@overridable
def group_norm(input: Tensor, num_groups: int, weight: Optional[Tensor] = None, bias: Optional[Tensor] = None, eps: float = 1e-05) -> Tensor:
    """Normalise each of `num_groups` groups of channels of each sample of (N, C, ...)."""
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    size = input.size()
    rows = size[0] * size[1] // num_groups
    _more_than_one([rows, num_groups] + list(size[2:]), rows)
    return cresset.group_norm(input, num_groups, weight, bias, eps, True)


@overridable
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: number = 1.0) -> Tensor:
    """Divide by (k + alpha mean of the squares of `size` neighbouring channels) ** beta."""
    ndim = input.dim()
    if ndim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {ndim} dimensions)")
    if input.numel() == 0:
        return input
    # A window over the channels is a pooling window over an added leading dimension.
    squares = input.mul(input)
    before, after = size // 2, (size - 1) // 2
    if ndim == 3:
        squares = _nn.pad(squares.unsqueeze(1), (0, 0, before, after))
        mean = _nn.avg_pool2d(squares, (size, 1), stride=1).squeeze(1)
    else:
        shape = input.size()
        squares = squares.view(shape[0], 1, shape[1], shape[2], -1)
        squares = _nn.pad(squares, (0, 0, 0, 0, before, after))
        mean = _nn.avg_pool3d(squares, (size, 1, 1), stride=1).squeeze(1).view(shape)
    return input / mean.mul(alpha).add(k).pow(beta)


@overridable
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Optional[Tensor] = None) -> Tensor:
    """`input` divided by max(its p-norm along `dim`, eps)."""
    denominator = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / denominator if out is None else cresset.div(input, denominator, out=out)
