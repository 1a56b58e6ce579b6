"""Weights and biases of layers: made, drawn again, and read."""

import math

import cresset
from cresset.nn import init
from cresset.nn.parameter import Parameter


def register_affine(module, shape, affine, bias, device, dtype):
    """Parameters `weight` and `bias` for each element; None where they were not asked for."""

    def made(wanted):
        return Parameter(cresset.empty(shape, device=device, dtype=dtype)) if wanted else None

    module.register_parameter("weight", made(affine))
    module.register_parameter("bias", made(affine and bias))


def reset_affine(module):
    """Weight 1, bias 0."""
    if module.weight is not None:
        init.ones_(module.weight)
    if module.bias is not None:
        init.zeros_(module.bias)


def reset_linear(module):
    """Draw weight and bias from the uniform distribution on ±1/sqrt(fan_in)."""
    init.kaiming_uniform_(module.weight, a=math.sqrt(5))
    if module.bias is not None:
        fan_in, _ = init._calculate_fan_in_and_fan_out(module.weight)
        bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
        init.uniform_(module.bias, -bound, bound)


# Attributes straight from the dictionaries: the detour through __getattr__ costs as much as a small operator. Scripts read the
# attributes that `_script_attributes` names.


def weight_and_bias(module):
    """`module.weight, module.bias`"""
    params = module._parameters
    try:
        return params["weight"], params["bias"]
    except KeyError:  # replaced by a plain attribute or a property
        return module.weight, module.bias


weight_and_bias._script_attributes = ("weight", "bias")


def weight_alone(module):
    """`module.weight`"""
    try:
        return module._parameters["weight"]
    except KeyError:
        return module.weight


weight_alone._script_attributes = ("weight",)


def tensors_of_norm(module):
    """`module.weight, module.bias, module.running_mean, module.running_var`"""
    params, buffers = module._parameters, module._buffers
    try:
        return params["weight"], params["bias"], buffers["running_mean"], buffers["running_var"]
    except KeyError:
        return module.weight, module.bias, module.running_mean, module.running_var


tensors_of_norm._script_attributes = ("weight", "bias", "running_mean", "running_var")
