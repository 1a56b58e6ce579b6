"""Quantization of modules: observers go in (prepare), quantized layers take the place of float ones (convert)."""

import copy
import inspect
import itertools
import warnings

import cresset
from cresset import nn
from cresset.ao.nn import quantizable as nnqa
from cresset.ao.nn import quantized as nnq
from cresset.ao.nn.intrinsic import _FusedModule
from cresset.nn.utils.parametrize import type_before_parametrizations

from .observer import _is_activation_post_process
from .qconfig import (
    _activation_is_memoryless, _add_module_to_qconfig_obs_ctr, _assert_valid_qconfig, default_dynamic_qconfig, float16_dynamic_qconfig,
    float_qparams_weight_only_qconfig, float_qparams_weight_only_qconfig_4bit,
)  # fmt: skip
from .quantization_mappings import (
    _get_special_act_post_process, _has_special_act_post_process, get_default_dynamic_quant_module_mappings, get_default_qat_module_mappings,
    get_default_qconfig_propagation_list, get_default_static_quant_module_mappings, get_default_static_quant_reference_module_mappings, no_observer_set,
)  # fmt: skip
from .stubs import DeQuantStub, QuantWrapper
from .utils import get_qparam_dict, has_no_children_ignoring_parametrizations

__all__ = [
    "get_default_custom_config_dict", "propagate_qconfig_", "add_quant_dequant", "prepare", "quantize", "quantize_dynamic", "prepare_qat", "quantize_qat",
    "convert", "swap_module",
]  # fmt: skip

is_activation_post_process = _is_activation_post_process
_DEFAULT_CUSTOM_CONFIG_DICT = {
    "float_to_observed_custom_module_class": {nn.LSTM: nnqa.LSTM, nn.MultiheadAttention: nnqa.MultiheadAttention},
    "observed_to_quantized_custom_module_class": {nnqa.LSTM: nnq.LSTM, nnqa.MultiheadAttention: nnq.MultiheadAttention},
}


def get_default_custom_config_dict():
    """Which layers are quantized by classes of their own: LSTM and MultiheadAttention."""
    return _DEFAULT_CUSTOM_CONFIG_DICT


def _propagate_qconfig_helper(module, qconfig_dict, qconfig_parent=None, prefix="", prepare_custom_config_dict=None):
    found = qconfig_dict.get(type_before_parametrizations(module), qconfig_parent)
    found = getattr(module, "qconfig", qconfig_dict.get(prefix, found))
    _assert_valid_qconfig(found, module)
    module.qconfig = _add_module_to_qconfig_obs_ctr(found, module)
    custom = prepare_custom_config_dict or {}
    for name, child in module.named_children():
        full = f"{prefix}.{name}" if prefix else name
        if name in custom.get("non_traceable_module_name", []) or type(child) in custom.get("non_traceable_module_class", []):
            continue
        _propagate_qconfig_helper(child, qconfig_dict, module.qconfig, full, prepare_custom_config_dict)


def propagate_qconfig_(module, qconfig_dict=None, prepare_custom_config_dict=None):
    """Write `qconfig` on all modules below: that which they have, that of their name or class in the dictionary, else their parent's."""
    _propagate_qconfig_helper(module, qconfig_dict or {}, prepare_custom_config_dict=prepare_custom_config_dict or {})


def _observer_forward_hook(self, input, output):
    return self.activation_post_process(output)


def _observer_forward_pre_hook(self, input):
    return self.activation_post_process(input[0])


def _register_activation_post_process_hook(module, pre_hook=False):
    if not hasattr(module, "activation_post_process"):
        raise AssertionError("Expect activation_post_process attribute already attached to the module")
    if pre_hook:
        module.register_forward_pre_hook(_observer_forward_pre_hook, prepend=True)
    else:
        module.register_forward_hook(_observer_forward_hook, prepend=True)


def _get_unique_devices_(module):
    return {p.device for p in module.parameters() if p.device.type != "meta"} | {b.device for b in module.buffers() if b.device.type != "meta"}


def _wanted(module):
    return getattr(module, "qconfig", None) is not None


def _watch(module, device, special=None):
    """Give the module an observer of its output, by its qconfig."""
    if _wanted(module) and not isinstance(module, DeQuantStub):
        module.add_module("activation_post_process", _new_observer(module.qconfig, device, special))
        _register_activation_post_process_hook(module, pre_hook=_activation_is_memoryless(module.qconfig))


def _new_observer(qconfig, device, special=None):
    made = qconfig.activation() if special is None else special()
    return made if device is None else made.to(device)


def _add_observer_(module, qconfig_propagation_list=None, non_leaf_module_list=None, device=None, custom_module_class_mapping=None):
    """Give observers to the leaves whose class is on the list, and to what is quantized as a whole."""
    if qconfig_propagation_list is None:
        qconfig_propagation_list = get_default_qconfig_propagation_list()
    custom = custom_module_class_mapping or {}
    if device is None:
        devices = _get_unique_devices_(module)
        if len(devices) > 1:
            raise AssertionError(f"_add_observer_ only works with cpu or single-device CUDA modules, but got devices {devices}")
        device = next(iter(devices), None)
    for name, child in module.named_children():
        kind = type_before_parametrizations(child)
        if kind is nn.Dropout:
            continue
        if issubclass(kind, (nnq.FloatFunctional, nnq.QFunctional)):
            if _wanted(child):
                child.activation_post_process = _new_observer(child.qconfig, device)
        elif isinstance(child, _FusedModule) or (non_leaf_module_list is not None and kind in non_leaf_module_list):
            _watch(child, device)
        elif _has_special_act_post_process(child):
            _watch(child, device, _get_special_act_post_process(child))
        elif _wanted(child) and kind in custom:
            observed = custom[kind].from_float(child)
            setattr(module, name, observed)
            if not issubclass(custom[kind], tuple(no_observer_set())):
                _watch(observed, device)
        else:
            _add_observer_(child, qconfig_propagation_list, non_leaf_module_list, device, custom_module_class_mapping)
    leaf = has_no_children_ignoring_parametrizations(module) and not isinstance(module, nn.Sequential)
    if leaf and type_before_parametrizations(module) in qconfig_propagation_list:
        _watch(module, device)
    if hasattr(module, "weight_fake_quant") and not isinstance(module, nn.Sequential) and type_before_parametrizations(module) in qconfig_propagation_list:
        if not hasattr(module, "activation_post_process"):
            _watch(module, device)


def add_quant_dequant(module):
    """Put leaves that have a qconfig between a QuantStub and a DeQuantStub; the module itself, or the wrapper of a leaf."""
    if has_no_children_ignoring_parametrizations(module) and getattr(module, "qconfig", None):
        return QuantWrapper(module)
    for name, child in module.named_children():
        module._modules[name] = add_quant_dequant(child)
    return module


def prepare(model, inplace=False, allow_list=None, observer_non_leaf_module_list=None, prepare_custom_config_dict=None):
    """A copy of the model (or with `inplace` the model) whose layers with a `qconfig` have observers."""
    custom = get_default_custom_config_dict() if prepare_custom_config_dict is None else prepare_custom_config_dict
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model, qconfig_dict=None)
    if not any(getattr(m, "qconfig", None) for m in model.modules()):
        warnings.warn(
            "None of the submodule got qconfig applied. Make sure you passed correct configuration through `qconfig_dict` or by assigning the `.qconfig` "
            "attribute directly on submodules", stacklevel=2,
        )  # fmt: skip
    _add_observer_(
        model, get_default_qconfig_propagation_list() if allow_list is None else allow_list, observer_non_leaf_module_list,
        custom_module_class_mapping=custom.get("float_to_observed_custom_module_class", {}),
    )  # fmt: skip
    return model


def _remove_activation_post_process(module):
    if hasattr(module, "activation_post_process") and _is_activation_post_process(module.activation_post_process):
        delattr(module, "activation_post_process")
    for hooks, ours in ((module._forward_pre_hooks, _observer_forward_pre_hook), (module._forward_hooks, _observer_forward_hook)):
        for handle in [handle for handle, hook in hooks.items() if hook is ours]:
            hooks.pop(handle)


def _remove_qconfig(module):
    for child in module.children():
        _remove_qconfig(child)
    if hasattr(module, "qconfig"):
        del module.qconfig
    _remove_activation_post_process(module)


def quantize(model, run_fn, run_args, mapping=None, inplace=False):
    """A copy of the model, quantized by what observers see while run_fn(model, *run_args) runs."""
    mapping = get_default_static_quant_module_mappings() if mapping is None else mapping
    model = model if inplace else copy.deepcopy(model)
    model.eval()
    prepare(model, inplace=True)
    run_fn(model, *run_args)
    convert(model, mapping, inplace=True)
    return model


_BY_DTYPE = {  # dtype: (qconfig, the layers that get it)
    cresset.qint8: (default_dynamic_qconfig, (nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.RNNCell, nn.GRUCell)),
    cresset.float16: (float16_dynamic_qconfig, (nn.Linear, nn.LSTM, nn.GRU, nn.LSTMCell, nn.RNNCell, nn.GRUCell)),
    cresset.quint8: (float_qparams_weight_only_qconfig, (nn.EmbeddingBag, nn.Embedding)),
    cresset.quint4x2: (float_qparams_weight_only_qconfig_4bit, (nn.EmbeddingBag,)),
}  # fmt: skip


def quantize_dynamic(model, qconfig_spec=None, dtype=cresset.qint8, mapping=None, inplace=False):
    """A copy of the model whose Linear and recurrent layers have weights in int8 (`dtype=cresset.qint8`, the default) or float16, or whose embeddings
    have rows of quint8.

    `qconfig_spec`: a set of classes or of names of modules, or a dictionary from them to QConfigs. ValueError for another dtype, RuntimeError with the layers named.
    """
    if not isinstance(qconfig_spec, dict):
        if dtype not in _BY_DTYPE and qconfig_spec is not None:
            raise RuntimeError("Unknown dtype specified for quantize_dynamic: ", str(dtype))
        if dtype not in _BY_DTYPE:
            raise ValueError(f"Don't know how to quantize with default settings for {dtype}. Provide full qconfig please")
        usual, kinds = _BY_DTYPE[dtype]
        qconfig_spec = dict(zip(kinds if qconfig_spec is None else qconfig_spec, itertools.repeat(usual)))
    mapping = get_default_dynamic_quant_module_mappings() if mapping is None else mapping
    model = model if inplace else copy.deepcopy(model)
    model.eval()
    propagate_qconfig_(model, qconfig_spec)
    convert(model, mapping, inplace=True)
    return model


def prepare_qat(model, mapping=None, inplace=False):
    """A copy of the model whose layers with a `qconfig` are trained to be quantized. AssertionError unless it is in training mode."""
    if not model.training:
        raise AssertionError("prepare_qat only works on models in training mode")
    mapping = get_default_qat_module_mappings() if mapping is None else mapping
    model = model if inplace else copy.deepcopy(model)
    propagate_qconfig_(model, qconfig_dict=None)
    convert(model, mapping=mapping, inplace=True, remove_qconfig=False)
    prepare(model, observer_non_leaf_module_list=set(mapping.values()), inplace=True)
    return model


def quantize_qat(model, run_fn, run_args, inplace=False):
    """A copy of the model, trained by run_fn(model, *run_args) to be quantized, and quantized."""
    model = model if inplace else copy.deepcopy(model)
    model.train()
    prepare_qat(model, inplace=True)
    run_fn(model, *run_args)
    convert(model, inplace=True)
    return model


def convert(module, mapping=None, inplace=False, remove_qconfig=True, is_reference=False, convert_custom_config_dict=None, use_precomputed_fake_quant=False):
    """A copy (or with `inplace` the module) whose layers with a `qconfig` are replaced by their quantized forms."""
    module = module if inplace else copy.deepcopy(module)
    _convert(module, mapping, True, is_reference, convert_custom_config_dict, use_precomputed_fake_quant)
    if remove_qconfig:
        _remove_qconfig(module)
    return module


def _convert(module, mapping=None, inplace=False, is_reference=False, convert_custom_config_dict=None, use_precomputed_fake_quant=False):
    if mapping is None:
        mapping = get_default_static_quant_reference_module_mappings() if is_reference else get_default_static_quant_module_mappings()
    custom_config = get_default_custom_config_dict() if convert_custom_config_dict is None else convert_custom_config_dict
    custom = custom_config.get("observed_to_quantized_custom_module_class", {})
    module = module if inplace else copy.deepcopy(module)
    swapped = {}
    for name, child in module.named_children():
        if not isinstance(child, _FusedModule) and type_before_parametrizations(child) not in custom:
            _convert(child, mapping, True, is_reference, convert_custom_config_dict, use_precomputed_fake_quant)
        swapped[name] = swap_module(child, mapping, custom, use_precomputed_fake_quant)
    module._modules.update(swapped)
    return module


def _made_of(mod, quantized, use_precomputed_fake_quant):
    if getattr(quantized, "_IS_REFERENCE", False):
        observer = mod.qconfig.weight()
        observer(mod.weight)
        return quantized.from_float(mod, get_qparam_dict(observer))
    if "use_precomputed_fake_quant" in inspect.signature(quantized.from_float).parameters:
        return quantized.from_float(mod, use_precomputed_fake_quant=use_precomputed_fake_quant)
    return quantized.from_float(mod)


def swap_module(mod, mapping, custom_module_class_mapping=None, use_precomputed_fake_quant=False):
    """The quantized form of a module that has a `qconfig` and a class in the mapping, with its hooks; else the module."""
    kind, custom = type_before_parametrizations(mod), custom_module_class_mapping or {}
    if not _wanted(mod) or (kind not in custom and kind not in mapping):
        return mod
    made = custom[kind].from_observed(mod) if kind in custom else _made_of(mod, mapping[kind], use_precomputed_fake_quant)
    for hook in mod._forward_pre_hooks.values():
        if hook is not _observer_forward_pre_hook or made is mod or hasattr(made, "activation_post_process"):
            made.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        if hook is not _observer_forward_hook:
            made.register_forward_hook(hook)
    devices = _get_unique_devices_(mod)
    if len(devices) > 1:
        raise AssertionError(f"swap_module only works with cpu or single-device CUDA modules, but got devices {devices}")
    return made.to(next(iter(devices))) if devices else made


def _get_observer_dict(mod, target_dict, prefix=""):
    """Add {name: observer} of the module and all below to the dictionary."""
    lead = prefix + "." if prefix else ""
    if hasattr(mod, "activation_post_process"):
        target_dict[lead + "activation_post_process"] = mod.activation_post_process
    for name, child in mod.named_children():
        _get_observer_dict(child, target_dict, lead + name)
