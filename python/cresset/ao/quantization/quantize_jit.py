"""Quantization of scripts and traces: observers in the graph of forward, which learn ranges on some batches; then operators of `quantized` in their places.

The graph of forward is inlined: submodules keep their weights, the observers of those, and methods of their own, which stay as they are.
"""


import cresset
from cresset.jit._recursive import wrap_cpp_module

from ._script_conversion import insert_quantize, lower
from ._script_fusion import fuse_conv_bn
from ._script_graph import name_convolutions
from ._script_observers import insert_observers
from .qconfig import QConfig
from .quant_type import QuantType

__all__ = [
    "script_qconfig", "script_qconfig_dict", "fuse_conv_bn_jit", "prepare_jit", "prepare_dynamic_jit", "convert_jit", "convert_dynamic_jit", "quantize_jit",
    "quantize_dynamic_jit",
]  # fmt: skip


def _check_is_script_module(model):
    if not isinstance(model, cresset.jit.ScriptModule):
        raise ValueError("input must be a script module, got: " + str(type(model)))


def _check_forward_method(model):
    if not model._c._has_method("forward"):
        raise ValueError("input script module does not have forward method")


def script_qconfig(qconfig):
    """The QConfig with scripts of its observers in the place of what makes them."""
    return QConfig(activation=cresset.jit.script(qconfig.activation())._c, weight=cresset.jit.script(qconfig.weight())._c)


def script_qconfig_dict(qconfig_dict):
    """script_qconfig of each QConfig; None stays."""
    return {name: script_qconfig(qconfig) if qconfig else None for name, qconfig in qconfig_dict.items()}


def _own(model, inplace):
    """The module to change: the model, or a copy with classes of its own."""
    _check_is_script_module(model)
    _check_forward_method(model)
    made = wrap_cpp_module(model._c.clone())
    if inplace:
        model._reconstruct(made._c)
        return model
    return made


def fuse_conv_bn_jit(model, inplace=False):
    """The module, in whose forward norms of running statistics are part of the convolutions before them."""
    made = _own(model, inplace)
    fuse_conv_bn(made)
    return made


def _refreshed(model):
    """Python's side of a module whose submodules may be others."""
    for module in list(model.modules()):
        if isinstance(module, cresset.jit.ScriptModule):
            module._reconstruct(module._c)
    return model


def _prepare_jit(model, qconfig_dict, inplace=False, quant_type=QuantType.STATIC):
    _check_is_script_module(model)
    _check_forward_method(model)
    if not all(isinstance(name, str) for name in qconfig_dict):
        raise ValueError("qconfig_dict should only contain names(str) as keys.")
    made = _own(model, inplace)
    for module in made.modules():
        if isinstance(module, cresset.jit.ScriptModule) and module._c._has_method("forward"):
            name_convolutions(module._c._get_method("forward").graph)
    insert_observers(made, script_qconfig_dict(qconfig_dict), quant_type == QuantType.DYNAMIC)
    return _refreshed(made)


def prepare_jit(model, qconfig_dict, inplace=False):
    """The module with observers. `qconfig_dict`: {path of a module, "" for all: QConfig or None}."""
    return _prepare_jit(model, qconfig_dict, inplace, QuantType.STATIC)


def prepare_dynamic_jit(model, qconfig_dict, inplace=False):
    """The module with observers of the weights of linear layers, whose inputs are quantized as they come."""
    return _prepare_jit(model, qconfig_dict, inplace, QuantType.DYNAMIC)


def _convert_jit(model, inplace=False, debug=False, quant_type=QuantType.STATIC, preserved_attrs=None):
    made = _own(model, inplace).eval()
    flat = insert_quantize(made, quant_type == QuantType.DYNAMIC)
    if debug:
        return _refreshed(made)
    lower(flat)
    frozen = wrap_cpp_module(cresset._C._freeze_module(made._c, list(preserved_attrs or ())))
    if inplace:
        model._reconstruct(frozen._c)
        return model
    return frozen


def convert_jit(model, inplace=False, debug=False, preserved_attrs=None):
    """The quantized form of a module with observers, frozen; with `debug` what stands between quantize and dequantize stays as it is."""
    return _convert_jit(model, inplace, debug, QuantType.STATIC, preserved_attrs)


def convert_dynamic_jit(model, inplace=False, debug=False, preserved_attrs=None):
    """convert_jit of what prepare_dynamic_jit gave."""
    return _convert_jit(model, inplace, debug, QuantType.DYNAMIC, preserved_attrs)


def _quantize_jit(model, qconfig_dict, run_fn=None, run_args=None, inplace=False, debug=False, quant_type=QuantType.STATIC):
    made = _prepare_jit(model, qconfig_dict, inplace, quant_type)
    if quant_type != QuantType.DYNAMIC:
        if not run_fn:
            raise AssertionError("Must provide calibration function for post training static quantization")
        if not run_args:
            raise AssertionError("Must provide calibration dataset for post training static quantization")
        run_fn(made, *run_args)
    return _convert_jit(made, True, debug, quant_type)


def quantize_jit(model, qconfig_dict, run_fn, run_args, inplace=False, debug=False):
    """prepare_jit, `run_fn(model, *run_args)` and convert_jit."""
    return _quantize_jit(model, qconfig_dict, run_fn, run_args, inplace, debug, QuantType.STATIC)


def quantize_dynamic_jit(model, qconfig_dict, inplace=False, debug=False):
    """prepare_dynamic_jit and convert_dynamic_jit."""
    return _quantize_jit(model, qconfig_dict, inplace=inplace, debug=debug, quant_type=QuantType.DYNAMIC)
