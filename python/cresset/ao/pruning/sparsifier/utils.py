"""Modules and tensors by their dotted names, and the parametrization that applies a mask."""

from itertools import chain

from cresset import nn
from cresset.nn.utils.parametrize import is_parametrized, type_before_parametrizations

__all__ = ["module_contains_param", "swap_module", "module_to_fqn", "fqn_to_module", "get_arg_info_from_tensor_fqn", "FakeSparsity"]


def module_contains_param(module, parametrization):
    """Has a tensor of `module` a parametrization of that class?"""
    return is_parametrized(module) and any(isinstance(p, parametrization) for entry in module.parametrizations.values() for p in entry)


def swap_module(mod, mapping):
    """`from_dense(mod)` of the class that `mapping` has for mod's, with mod's hooks and on its device; mod itself where it has none."""
    found = mapping.get(type_before_parametrizations(mod))
    if found is None:
        return mod
    new = found.from_dense(mod)
    for hook in mod._forward_pre_hooks.values():
        new.register_forward_pre_hook(hook)
    for hook in mod._forward_hooks.values():
        new.register_forward_hook(hook)
    devices = {t.device for t in chain(mod.parameters(), mod.buffers())}
    if len(devices) > 1:
        raise AssertionError(f"swap_module only works with cpu or single-device CUDA modules, but got devices {devices}")
    for device in devices:
        new.to(device)
    return new


def module_to_fqn(model, module, prefix=""):
    """The dotted name of `module` in `model`: "" for the model itself, None for what is not in it."""
    if module is model:
        return ""
    for name, child in model.named_modules():
        if child is module:
            return prefix + name
    return None


def fqn_to_module(model, path):
    """The module, or the tensor, of that dotted name, or None."""
    for name in path.split(".") if path else ():
        model = getattr(model, name, None)
    return model


def get_arg_info_from_tensor_fqn(model, tensor_fqn):
    """{"module_fqn", "module", "tensor_name", "tensor_fqn"} for the dotted name of a tensor; the module is None where there is none."""
    module_fqn, _, tensor_name = tensor_fqn.rpartition(".")
    return {"module_fqn": module_fqn, "module": fqn_to_module(model, module_fqn), "tensor_name": tensor_name, "tensor_fqn": tensor_fqn}


class FakeSparsity(nn.Module):
    """A parametrization: the tensor times `mask`, whose values may change; state dicts have no mask, those of sparsifiers have."""

    def __init__(self, mask):
        super().__init__()
        self.register_buffer("mask", mask)

    def forward(self, x):
        if self.mask.shape != x.shape:
            raise AssertionError(f"mask shape ({self.mask.shape}) must match x shape ({x.shape})")
        return self.mask * x

    def state_dict(self, *args, **kwargs):
        return {}
