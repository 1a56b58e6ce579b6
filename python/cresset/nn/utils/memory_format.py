"""Weights of convolutions in another memory format."""

import cresset

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module, kinds, memory_format):
    if isinstance(module, kinds):
        module.weight.data = module.weight.detach().clone(memory_format=memory_format)
    for child in module.children():
        _convert(child, kinds, memory_format)
    return module


def convert_conv2d_weight_memory_format(module, memory_format):
    """Put the weights of all Conv2d and ConvTranspose2d in `module` into `memory_format`, in place."""
    return _convert(module, (cresset.nn.Conv2d, cresset.nn.ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module, memory_format):
    """Put the weights of all Conv3d and ConvTranspose3d in `module` into `memory_format`, in place."""
    return _convert(module, (cresset.nn.Conv3d, cresset.nn.ConvTranspose3d), memory_format)
