"""quantize_dynamic and the steps it is made of."""

import copy

import cresset
from cresset import nn
from cresset.ao.nn.quantized import dynamic

from .qconfig import default_dynamic_qconfig, float16_dynamic_qconfig

__all__ = [
    "DeQuantStub", "QuantStub", "convert", "get_default_dynamic_quant_module_mappings", "propagate_qconfig_", "quantize_dynamic", "swap_module",
]  # fmt: skip

_MAPPING = {
    nn.Linear: dynamic.Linear, nn.LSTM: dynamic.LSTM, nn.GRU: dynamic.GRU, nn.LSTMCell: dynamic.LSTMCell, nn.RNNCell: dynamic.RNNCell,
    nn.GRUCell: dynamic.GRUCell,
}  # fmt: skip


class QuantStub(nn.Module):
    """A place where static quantization would begin: gives its input."""

    def __init__(self, qconfig=None):
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x):
        return x


class DeQuantStub(QuantStub):
    """A place where static quantization would end: gives its input."""


def get_default_dynamic_quant_module_mappings():
    """{float class: class of its quantized form}."""
    return dict(_MAPPING)


def propagate_qconfig_(module, qconfig_dict=None, prepare_custom_config_dict=None):
    """Write `qconfig` on all modules below: that of their name or class in the dictionary, else their parent's."""

    def visit(m, prefix, inherited):
        found = (qconfig_dict or {}).get(prefix, (qconfig_dict or {}).get(type(m), getattr(m, "qconfig", inherited)))
        m.qconfig = found
        for name, child in m.named_children():
            visit(child, f"{prefix}.{name}" if prefix else name, found)

    visit(module, "", (qconfig_dict or {}).get(""))


def swap_module(mod, mapping, custom_module_class_mapping=None, use_precomputed_fake_quant=False):
    """The quantized form of a module that has a `qconfig` and a class in the mapping, with its hooks; else the module."""
    if getattr(mod, "qconfig", None) is None or type(mod) not in mapping:
        return mod
    made = mapping[type(mod)].from_float(mod)
    for hook in mod._forward_pre_hooks.values():
        made.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        made.register_forward_hook(hook)
    return made


def convert(
    module, mapping=None, inplace=False, remove_qconfig=True, is_reference=False, convert_custom_config_dict=None, use_precomputed_fake_quant=False
):  # fmt: skip
    """A copy (or with `inplace` the module) whose modules with a `qconfig` are replaced by their quantized forms."""
    module = module if inplace else copy.deepcopy(module)
    mapping = _MAPPING if mapping is None else mapping

    def visit(parent):
        for name, child in parent.named_children():
            if type(child) not in mapping:
                visit(child)
            parent._modules[name] = swap_module(child, mapping)

    visit(module)
    if type(module) in mapping:
        module = swap_module(module, mapping)
    if remove_qconfig:
        for m in module.modules():
            m.__dict__.pop("qconfig", None)
    return module


def quantize_dynamic(model, qconfig_spec=None, dtype=None, mapping=None, inplace=False):
    """A copy of the model whose Linear and recurrent layers have weights in int8 (`dtype=cresset.qint8`, the default) or float16.

    `qconfig_spec`: a set of classes or of names of modules, or a dictionary from them to QConfigs. ValueError for another dtype.
    """
    dtype = cresset.qint8 if dtype is None else dtype
    if dtype not in (cresset.qint8, cresset.float16):
        raise ValueError(f"Don't know how to quantize with default settings for {dtype}. Provide full qconfig please")
    usual = default_dynamic_qconfig if dtype == cresset.qint8 else float16_dynamic_qconfig
    if qconfig_spec is None:
        qconfig_spec = set(_MAPPING)
    if not isinstance(qconfig_spec, dict):
        qconfig_spec = dict.fromkeys(qconfig_spec, usual)
    model = model if inplace else copy.deepcopy(model)
    model.eval()
    propagate_qconfig_(model, qconfig_spec)
    return convert(model, mapping, inplace=True)
