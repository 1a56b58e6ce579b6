"""What every sparsifier of weights does: attaches masks, lets a derived class update them, and makes them permanent."""

import abc
import copy
from collections import defaultdict

import cresset
from cresset import nn
from cresset.nn.utils import parametrize
from cresset.nn.utils.parametrize import type_before_parametrizations

from .utils import FakeSparsity, get_arg_info_from_tensor_fqn, module_contains_param, module_to_fqn, swap_module

__all__ = ["BaseSparsifier"]

SUPPORTED_MODULES = {nn.Linear}
KEYS_NOT_IN_STATE_DICT = ["module", "module_fqn", "tensor_name"]


class BaseSparsifier(abc.ABC):
    """Masks of the tensors of a model. A derived class says in `update_mask` how a mask is computed.

    `prepare(model, config)` attaches the masks, `step()` updates them, `squash_mask()` multiplies them in. `config` is a list of dictionaries, each with the
    "tensor_fqn" of a tensor and with arguments of `update_mask` that differ from `defaults`; None takes the weights of all Linear layers.
    """

    def __init__(self, defaults=None):
        super().__init__()
        self.defaults = defaults or {}
        self.state = defaultdict(dict)
        self.groups = []
        self.enable_mask_update = True

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self.state, "groups": self.groups}

    def __setstate__(self, state):
        self.__dict__.update(state)

    def __repr__(self):
        lines = []
        for i, group in enumerate(self.groups):
            lines += [f"\tGroup {i}", f"\t    module: {group['module']}"]
            lines += [f"\t    {key}: {group[key]}" for key in sorted(group) if key != "module"] + [""]
        return f"{type(self).__name__} (" + "".join("\n" + line for line in lines[:-1]) + ("\n" if lines else "") + ")"

    def state_dict(self):
        """{"state": {name of a tensor: its mask and what update_mask keeps}, "groups": the configuration}"""
        groups = [{key: value for key, value in group.items() if key not in KEYS_NOT_IN_STATE_DICT} for group in self.groups]
        return {"state": self.state, "groups": groups}

    def load_state_dict(self, state_dict, strict=True):
        """Take masks and configuration of a state_dict; the model is prepared beforehand. With strict, every mask must find its module."""
        groups = [{**group, **get_arg_info_from_tensor_fqn(self.model, group["tensor_fqn"])} for group in copy.copy(state_dict["groups"])]
        for tensor_fqn, state in state_dict["state"].items():
            info = get_arg_info_from_tensor_fqn(self.model, tensor_fqn)
            module, name = info["module"], info["tensor_name"]
            if strict and module is None:
                raise RuntimeError(f"Error loading {tensor_fqn} into the model")
            entry = module.parametrizations[name]
            applied = next((p for p in entry if isinstance(p, FakeSparsity)), None)
            if applied is None:
                applied = FakeSparsity(cresset.ones(getattr(module, name).shape))
                entry.append(applied)
            mask = state.get("mask")
            applied.mask = cresset.ones_like(applied.mask) if mask is None else mask
        self.__setstate__({"state": state_dict["state"], "groups": groups})

    def make_config_from_model(self, model, SUPPORTED_MODULES=SUPPORTED_MODULES):
        """Set `config` to the weights of all modules in `model` that are of these classes exactly."""
        self.config = []
        waiting = [model]
        while waiting:
            for child in waiting.pop().children():
                if type(child) in SUPPORTED_MODULES:
                    self.config.append({"tensor_fqn": module_to_fqn(model, child) + ".weight"})
                else:
                    waiting.append(child)

    def prepare(self, model, config):
        """Attach masks of ones to the tensors that `config` names. The model is changed in place."""
        self.model = model
        self.config = config
        if self.config is None:
            self.make_config_from_model(model)
        for given in self.config:
            if not isinstance(given, dict):
                raise AssertionError("config elements should be dicts not modules i.e.:[{`tensor_fqn`: `foo.bar.weight`}, {`tensor_fqn`: ... }, ...]")
            if not isinstance(given.get("tensor_fqn"), str):
                raise AssertionError("tensor_fqn is a required argument in the sparsity config which replaces previous `module` and [module]`fqn` arguments")
            info = get_arg_info_from_tensor_fqn(model, given["tensor_fqn"])
            for key, value in info.items():
                if key in given and given[key] is not value and given[key] != value:
                    raise AssertionError(f"Given both `{key}` and `tensor_fqn` in the config, it is expected them to agree!")
            self.groups.append({**copy.deepcopy(self.defaults), **given, **info})
        self._prepare()

    def _prepare(self, *args, **kwargs):
        """Register the parametrizations of `groups`."""
        for group in self.groups:
            module, name = group["module"], group["tensor_name"]
            mask = group.get("mask")
            if mask is None:
                mask = cresset.ones_like(getattr(module, name)).detach()
            self.state[group["tensor_fqn"]]["mask"] = mask
            parametrize.register_parametrization(module, name, group.get("parametrization", FakeSparsity)(mask))

    def squash_mask(self, params_to_keep=None, params_to_keep_per_layer=None, *args, **kwargs):
        """Multiply the masks in, and remove them.

        A module whose configuration is to be kept gets it as `sparse_params`: the keys `params_to_keep` of every module's, and
        `params_to_keep_per_layer` {name of a module: keys}.
        """
        for group in self.groups:
            module = group["module"]
            parametrize.remove_parametrizations(module, group["tensor_name"], leave_parametrized=True)
            kept = [*(params_to_keep or ()), *(params_to_keep_per_layer or {}).get(group["module_fqn"], ())]
            if kept:
                module.sparse_params = {key: group[key] for key in kept}

    def convert(self, module, mapping=None, inplace=False, parameterization=FakeSparsity):
        """Let `from_dense` of the classes in `mapping` take the place of the modules below that have a `parameterization`."""
        if mapping is None:
            raise NotImplementedError("Need to auto generate mapping ")
        if not inplace:
            module = copy.deepcopy(module)
        for name, child in list(module.named_children()):
            if module_contains_param(child, parameterization) and type_before_parametrizations(child) in mapping:
                module._modules[name] = swap_module(child, mapping)
            else:
                self.convert(child, mapping=mapping, inplace=True, parameterization=parameterization)
        return module

    def step(self, use_path=True):
        """Update all masks."""
        if not self.enable_mask_update:
            return
        with cresset.no_grad():
            for group in self.groups:
                self.update_mask(**group)

    @abc.abstractmethod
    def update_mask(self, module, tensor_name, **kwargs):
        """Compute the mask of `module.parametrizations[tensor_name][0]` anew, in place; kwargs are the rest of the configuration."""
