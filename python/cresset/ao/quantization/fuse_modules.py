"""Layers that follow each other, by their names, become one."""

import copy

from cresset import nn
from cresset.nn.utils.parametrize import type_before_parametrizations

from .fuser_method_mappings import fuse_conv_bn, fuse_conv_bn_relu, get_fuser_method  # noqa: F401

__all__ = ["fuse_known_modules", "fuse_modules", "fuse_modules_qat"]


def _get_module(model, submodule_key):
    for name in submodule_key.split("."):
        model = getattr(model, name)
    return model


def _set_module(model, submodule_key, module):
    parent, _, name = submodule_key.rpartition(".")
    setattr(_get_module(model, parent) if parent else model, name, module)


def fuse_known_modules(mod_list, is_qat, additional_fuser_method_mapping=None):
    """[the fused layer, nn.Identity, …] in place of the layers; the first one's hooks before and the last one's behind go with it."""
    types = tuple(type_before_parametrizations(m) for m in mod_list)
    method = get_fuser_method(types, additional_fuser_method_mapping)
    if method is None:
        raise NotImplementedError(f"Cannot fuse modules: {types}")
    fused = method(is_qat, *mod_list)
    for hook in mod_list[0]._forward_pre_hooks.values():
        fused.register_forward_pre_hook(hook)
    mod_list[0]._forward_pre_hooks.clear()
    for hook in mod_list[-1]._forward_hooks.values():
        fused.register_forward_hook(hook)
    mod_list[-1]._forward_hooks.clear()
    rest = [nn.Identity() for _ in mod_list[1:]]
    for identity in rest:
        identity.training = mod_list[0].training
    return [fused, *rest]


def _fuse_modules_helper(model, modules_to_fuse, is_qat, fuser_func=fuse_known_modules, fuse_custom_config_dict=None):
    additional = (fuse_custom_config_dict or {}).get("additional_fuser_method_mapping", {})
    fused = fuser_func([_get_module(model, name) for name in modules_to_fuse], is_qat, additional)
    for name, module in zip(modules_to_fuse, fused):
        _set_module(model, name, module)


def _fuse_modules(model, modules_to_fuse, is_qat, inplace=False, fuser_func=fuse_known_modules, fuse_custom_config_dict=None):
    model = model if inplace else copy.deepcopy(model)
    lists = [modules_to_fuse] if all(isinstance(name, str) for name in modules_to_fuse) else modules_to_fuse
    for names in lists:
        _fuse_modules_helper(model, names, is_qat, fuser_func, fuse_custom_config_dict)
    return model


def fuse_modules(model, modules_to_fuse, inplace=False, fuser_func=fuse_known_modules, fuse_custom_config_dict=None):
    """A copy of the model in which the layers of each list of names are one, for inference: a list of names, or of such lists."""
    return _fuse_modules(model, modules_to_fuse, False, inplace, fuser_func, fuse_custom_config_dict)


def fuse_modules_qat(model, modules_to_fuse, inplace=False, fuser_func=fuse_known_modules, fuse_custom_config_dict=None):
    """The same, for training to be quantized: batch norms stay."""
    return _fuse_modules(model, modules_to_fuse, True, inplace, fuser_func, fuse_custom_config_dict)
