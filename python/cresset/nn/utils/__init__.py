"""Helpers for gradients, parameters, sequences and fused layers."""

import importlib as _importlib

from cresset._same_names import prefer_functions as _prefer_functions
from cresset._submodules import submodule

from . import rnn  # noqa: F401
from .clip_grad import clip_grad_norm, clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm
from .convert_parameters import parameters_to_vector, vector_to_parameters
from .fusion import fuse_conv_bn_eval, fuse_conv_bn_weights, fuse_linear_bn_eval, fuse_linear_bn_weights
from .init import skip_init
from .memory_format import convert_conv2d_weight_memory_format, convert_conv3d_weight_memory_format

__all__ = [
    "clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm", "parameters_to_vector",
    "vector_to_parameters", "fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights",
    "skip_init", "convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format", "weight_norm", "remove_weight_norm",
    "spectral_norm", "remove_spectral_norm", "parametrize", "parametrizations", "prune", "stateless",
]  # fmt: skip

# These need cresset.nn, which is still being imported when this module is: they come at first use.
_FUNCTIONS = {
    "weight_norm": "weight_norm", "remove_weight_norm": "weight_norm", "spectral_norm": "spectral_norm",
    "remove_spectral_norm": "spectral_norm",
}  # fmt: skip
_prefer_functions(__name__, "weight_norm", "spectral_norm")
_MODULES = ("parametrize", "parametrizations", "prune", "stateless")


def __getattr__(name):
    if name in _MODULES:
        return _importlib.import_module(f"{__name__}.{name}")
    if name in _FUNCTIONS:
        value = globals()[name] = getattr(_importlib.import_module(f"{__name__}.{_FUNCTIONS[name]}"), name)
        return value
    return submodule(__name__, name)
