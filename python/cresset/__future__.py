"""How `nn.Module.to()` and its relatives put converted parameters into a module. Both settings are False at first.

By default the parameter stays the same object and gets the new data; where that is not possible (another kind of device) it is replaced.
"""

__all__ = [
    "set_overwrite_module_params_on_conversion", "get_overwrite_module_params_on_conversion", "set_swap_module_params_on_conversion",
    "get_swap_module_params_on_conversion",
]  # fmt: skip

_overwrite = _swap = False


def set_overwrite_module_params_on_conversion(value):
    """True: conversion assigns new parameters."""
    global _overwrite
    _overwrite = value


def get_overwrite_module_params_on_conversion():
    """The setting of set_overwrite_module_params_on_conversion."""
    return _overwrite


def set_swap_module_params_on_conversion(value):
    """True: conversion swaps parameters with new ones by `utils.swap_tensors`, so that the object stays though the kind of tensor changes."""
    global _swap
    _swap = value


def get_swap_module_params_on_conversion():
    """The setting of set_swap_module_params_on_conversion."""
    return _swap
