"""What every sparsifier of data does: holds tensors by name, and their masks."""

import abc
import copy
import warnings
from collections import defaultdict

import cresset
from cresset import nn
from cresset.nn.utils import parametrize

from ...sparsifier.base_sparsifier import BaseSparsifier
from ...sparsifier.utils import FakeSparsity

__all__ = ["BaseDataSparsifier"]

EMBEDDING_TYPES = {nn.Embedding, nn.EmbeddingBag}
SUPPORTED_TYPES = {cresset.Tensor, nn.Parameter, *EMBEDDING_TYPES}


class _Container(nn.Module):
    """Holds the data, as buffers, with masks as their parametrizations."""


class BaseDataSparsifier(BaseSparsifier):
    """Masks of tensors, parameters and weights of embeddings. A derived class says in `update_mask(name, data, **config)` how a mask is computed.

    `data_list` has pairs (name, data); the other arguments are defaults of the configuration. The data keep their memory.
    """

    def __init__(self, data_list=None, **defaults):
        super().__init__(defaults=defaults)
        self._container = _Container()
        self.data_groups = defaultdict(dict)
        for name, data in data_list or ():
            self.add_data(name, data, **self.defaults)

    def prepare(self, model, config):
        """NotImplementedError: data come by `add_data`."""
        raise NotImplementedError("this function is undefined for this class")

    def _extract_weight(self, data):
        """The tensor to be masked; None for what is not supported."""
        if type(data) in EMBEDDING_TYPES:
            return data.weight
        return data if type(data) in SUPPORTED_TYPES else None

    def add_data(self, name, data, reuse_mask=True, **config):
        """Add data, or replace those of that name; with reuse_mask the mask stays, for data of the same shape. Returns the masked tensor."""
        if type(data) not in SUPPORTED_TYPES:
            raise AssertionError(f"specified data type:{type(data)} not supported at the moment")
        group = {**copy.deepcopy(self.defaults), **config}
        weight = self._extract_weight(data)
        mask = group.get("mask")
        if mask is None:
            mask = cresset.ones_like(weight).detach()
        if name in self.state:
            warnings.warn("Replacing existing data of the same name. - Did you mean a different name?", stacklevel=2)
            group = {**copy.deepcopy(self.data_groups[name]), **config}
            if reuse_mask:
                if weight.shape != self.get_data(name, return_original=False).shape:
                    raise AssertionError("to retain the old mask, the shape of the new data must be the same as the previous one")
                mask = self.get_mask(name)
            self._delete_data(name)
        self._container.register_buffer(name, weight)
        parametrize.register_parametrization(self._container, name, group.get("parametrization", FakeSparsity)(mask))
        self.state[name]["mask"] = mask
        self.data_groups[name] = group
        return getattr(self._container, name)

    def get_data(self, name, return_original=True):
        """The tensor itself, or what the mask leaves of it."""
        if name not in self.data_groups:
            raise ValueError("data with specified name does not exist")
        if not return_original:
            return getattr(self._container, name)
        if not parametrize.is_parametrized(self._container, name):
            raise ValueError("mask squashed - original mask value does not exist")
        return self._container.parametrizations[name].original

    def get_mask(self, name):
        """The mask of that name."""
        if name not in self.state:
            raise ValueError("data with specified name does not exist")
        return self.state[name]["mask"]

    def _convert_mask(self, states, sparse_coo=True):
        """A copy whose masks are sparse tensors, or strided ones."""
        changed = defaultdict(dict)
        for name, state in copy.deepcopy(states).items():
            if state.get("mask") is not None:
                state["mask"] = state["mask"].to_sparse_coo() if sparse_coo else state["mask"].to_dense()
            changed[name] = state
        return changed

    def state_dict(self):
        """{"state": masks, as sparse tensors; "data_groups": the configuration; "_container": the data}"""
        return {"state": self._convert_mask(self.state), "data_groups": self.data_groups, "_container": self._container.state_dict()}

    def _load_container_from_state(self, states, data_groups, container_state_dict):
        for name, state in states.items():
            if name not in data_groups:
                raise RuntimeError(f"Error loading {name}")
            original = f"parametrizations.{name}.original"
            if name not in container_state_dict and original not in container_state_dict:
                raise RuntimeError(f"Error loading {name}")
            masked = name not in container_state_dict
            data = container_state_dict[original if masked else name]
            self._container.register_buffer(name, data)
            if masked:
                mask = state.get("mask")
                mask = cresset.ones_like(data) if mask is None else mask
                parametrize.register_parametrization(self._container, name, data_groups[name].get("parametrization", FakeSparsity)(mask))

    def load_state_dict(self, state_dict, strict=True):
        """Become what state_dict saw; without strict the data that are here already stay."""
        states = copy.deepcopy(state_dict["state"])
        groups = copy.deepcopy(state_dict["data_groups"])
        states = self._convert_mask(states, sparse_coo=False)
        if strict:
            self._container = _Container()
        self._load_container_from_state(states, groups, state_dict["_container"])
        if not strict:
            states.update(self.state)
            groups.update(self.data_groups)
        self.__setstate__({"state": states, "data_groups": groups})

    def __setstate__(self, state):
        if "_container" in state:  # of copy and pickle
            state = dict(state)
            tensors = state.pop("_container")
            state["state"] = self._convert_mask(state["state"], sparse_coo=False)
            self._container = _Container()
            self._load_container_from_state(state["state"], state["data_groups"], tensors)
        self.__dict__.update(state)

    def __getstate__(self):
        return {"defaults": self.defaults, "state": self._convert_mask(self.state), "data_groups": self.data_groups, "_container": self._container.state_dict()}

    def __repr__(self):
        lines = []
        for name, group in self.data_groups.items():
            lines += ["\tData Group", f"\t    name: {name}"] + [f"\t    {key}: {group[key]}" for key in sorted(group)] + [""]
        return f"{type(self).__name__} (" + "".join("\n" + line for line in lines[:-1]) + ("\n" if lines else "") + ")"

    def squash_mask(self, *args, leave_parametrized=True, names=None, **kwargs):
        """Multiply the masks of `names` (a string, a list; None: all) in, or without leave_parametrized only remove them."""
        names = list(self.data_groups) if names is None else [names] if isinstance(names, str) else names
        for name in names:
            parametrize.remove_parametrizations(self._container, name, leave_parametrized=leave_parametrized)

    def step(self):
        """Update all masks."""
        if not self.enable_mask_update:
            return
        with cresset.no_grad():
            for name, group in self.data_groups.items():
                self.update_mask(name, self.get_data(name), **group)

    def _delete_data(self, name):
        """Forget data."""
        self.squash_mask(leave_parametrized=False, names=[name])
        delattr(self._container, name)
        self.state.pop(name)
        self.data_groups.pop(name)

    @abc.abstractmethod
    def update_mask(self, name, data, **kwargs):
        """Compute the mask of `data` anew, in place (`get_mask(name)`); kwargs are the configuration."""
