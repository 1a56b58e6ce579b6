"""Normalisation functions."""

import cresset

from ._common import handle, overrides, overrides1

__all__ = [
    "batch_norm", "instance_norm", "layer_norm", "rms_norm", "group_norm", "local_response_norm", "normalize",
]  # fmt: skip


def _more_than_one(size, what="value per channel"):
    count = size[0] if what == "value per channel" else 1
    for n in size[2:]:
        count *= n
    if count == 1:
        raise ValueError(f"Expected more than 1 {what} when training, got input size {size}")


def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-05):
    """Normalise each channel of (N, C, ...) over all other dimensions; in training the running statistics are updated."""
    if overrides((input, running_mean, running_var, weight, bias)):
        return handle(
            batch_norm, (input, running_mean, running_var, weight, bias), input, running_mean, running_var,
            weight=weight, bias=bias, training=training, momentum=momentum, eps=eps,
        )  # fmt: skip
    if training:
        _more_than_one(input.size())
    return cresset.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, False)


def instance_norm(
    input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-05
):
    """Normalise each channel of each sample of (N, C, ...)."""
    if overrides((input, running_mean, running_var, weight, bias)):
        return handle(
            instance_norm, (input, running_mean, running_var, weight, bias), input, running_mean=running_mean,
            running_var=running_var, weight=weight, bias=bias, use_input_stats=use_input_stats, momentum=momentum, eps=eps,
        )  # fmt: skip
    if use_input_stats:
        _more_than_one(input.size(), "spatial element")
    return cresset.instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, False)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05):
    """Normalise over the last dimensions, whose sizes are `normalized_shape`."""
    if overrides((input, weight, bias)):
        return handle(layer_norm, (input, weight, bias), input, normalized_shape, weight=weight, bias=bias, eps=eps)
    return cresset.layer_norm(input, normalized_shape, weight, bias, eps)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """Divide by the root mean square over the last dimensions; `eps` None is the dtype's epsilon."""
    if overrides((input, weight)):
        return handle(rms_norm, (input, weight), input, normalized_shape, weight=weight, eps=eps)
    return cresset.rms_norm(input, normalized_shape, weight, eps)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-05):
    """Normalise each of `num_groups` groups of channels of each sample of (N, C, ...)."""
    if overrides((input, weight, bias)):
        return handle(group_norm, (input, weight, bias), input, num_groups, weight=weight, bias=bias, eps=eps)
    if input.dim() < 2:
        raise RuntimeError(f"Expected at least 2 dimensions for input tensor but received {input.dim()}")
    size = input.size()
    if size[0] * size[1] == num_groups and all(n == 1 for n in size[2:]):
        _more_than_one([size[0] * size[1] // num_groups, num_groups, *size[2:]])
    return cresset.group_norm(input, num_groups, weight, bias, eps, False)


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """Divide by (k + alpha mean of the squares of `size` neighbouring channels) ** beta."""
    if overrides1(input):
        return handle(local_response_norm, (input,), input, size, alpha=alpha, beta=beta, k=k)
    ndim = input.dim()
    if ndim < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {ndim} dimensions)")
    if input.numel() == 0:
        return input
    # A window over the channels is a pooling window over an added leading dimension.
    squares = input.mul(input).unsqueeze(1)
    before, after = size // 2, (size - 1) // 2
    if ndim == 3:
        squares = cresset._C._nn.pad(squares, (0, 0, before, after))
        mean = cresset._C._nn.avg_pool2d(squares, (size, 1), stride=1).squeeze(1)
    else:
        shape = input.size()
        squares = squares.view(shape[0], 1, shape[1], shape[2], -1)
        squares = cresset._C._nn.pad(squares, (0, 0, 0, 0, before, after))
        mean = cresset._C._nn.avg_pool3d(squares, (size, 1, 1), stride=1).squeeze(1).view(shape)
    return input / mean.mul(alpha).add(k).pow(beta)


def normalize(input, p=2.0, dim=1, eps=1e-12, out=None):
    """`input` divided by max(its p-norm along `dim`, eps)."""
    if overrides((input, out)):
        return handle(normalize, (input, out), input, p=p, dim=dim, eps=eps, out=out)
    denominator = input.norm(p, dim, keepdim=True).clamp_min(eps).expand_as(input)
    return input / denominator if out is None else cresset.div(input, denominator, out=out)
