"""Gradients of convolutions by themselves."""

import cresset

from ._functional._common import ntuple

__all__ = [
    "conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight",
]  # fmt: skip


def _gradient(n, which, grad_output, input, weight, stride, padding, dilation, groups):
    mask = [which == "input", which == "weight", False]
    return cresset.ops.aten.convolution_backward(
        grad_output, input, weight, None, ntuple(stride, n), ntuple(padding, n), ntuple(dilation, n), False, (0,) * n, groups, mask
    )[0 if which == "input" else 1]


def _input(n, input_size, weight, grad_output, stride, padding, dilation, groups):
    # Only the shape of the input matters for its own gradient.
    input = grad_output.new_empty(1).expand(input_size)
    return _gradient(n, "input", grad_output, input, weight, stride, padding, dilation, groups)


def _weight(n, input, weight_size, grad_output, stride, padding, dilation, groups):
    weight = grad_output.new_empty(1).expand(weight_size)
    return _gradient(n, "weight", grad_output, input, weight, stride, padding, dilation, groups)


def conv1d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """Gradient of conv1d for an input of size `input_size`."""
    return _input(1, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv1d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """Gradient of conv1d for a weight of size `weight_size`."""
    return _weight(1, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv2d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """Gradient of conv2d for an input of size `input_size`."""
    return _input(2, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv2d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """Gradient of conv2d for a weight of size `weight_size`."""
    return _weight(2, input, weight_size, grad_output, stride, padding, dilation, groups)


def conv3d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """Gradient of conv3d for an input of size `input_size`."""
    return _input(3, input_size, weight, grad_output, stride, padding, dilation, groups)


def conv3d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """Gradient of conv3d for a weight of size `weight_size`."""
    return _weight(3, input, weight_size, grad_output, stride, padding, dilation, groups)
