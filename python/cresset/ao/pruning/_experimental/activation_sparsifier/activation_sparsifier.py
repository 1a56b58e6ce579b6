"""Zeroes what enters layers, where masks that were computed from the inputs of some batches say so."""

import copy
import warnings
from collections import defaultdict

import cresset

from ...sparsifier.utils import fqn_to_module, module_to_fqn

__all__ = ["ActivationSparsifier"]

_FUNCTIONS = ("aggregate_fn", "reduce_fn", "mask_fn")


class ActivationSparsifier:
    """mask = mask_fn(reduce_fn(aggregate_fn(...aggregate_fn(input, next input)...)), **sparse_config) for every layer of `register_layer`.

    With `features` (indices along `feature_dim`) there is a mask for each of them. The arguments are defaults, which register_layer may change. `step()` computes
    masks and forgets the inputs, `squash_mask()` stops watching and applies masks to inputs from then on.
    """

    def __init__(self, model, aggregate_fn=None, reduce_fn=None, mask_fn=None, features=None, feature_dim=None, **sparse_config):
        self.model = model
        self.defaults = defaultdict(
            None,
            {
                "sparse_config": sparse_config, "aggregate_fn": aggregate_fn, "reduce_fn": reduce_fn, "mask_fn": mask_fn, "features": features,
                "feature_dim": feature_dim,
            },
        )  # fmt: skip
        self.data_groups = defaultdict(dict)
        self.state = defaultdict(dict)

    @staticmethod
    def _safe_rail_checks(args):
        """AssertionError for features without their dimension, and for functions that are none."""
        if args["features"] is not None and args["feature_dim"] is None:
            raise AssertionError("need feature dim to select features")
        for name in _FUNCTIONS:
            if not callable(args[name]):
                raise AssertionError(f"{args[name]} must be callable")

    def _aggregate_hook(self, name):
        """The hook that adds an input to what is known of the layer."""

        def hook(module, inputs):
            group = self.data_groups[name]
            values = _parts(inputs[0], group)
            known = group.get("data")
            aggregate = group["aggregate_fn"]
            if known is None:
                made = [cresset.clone(value) for value in values]
                self.state[name]["mask"] = [cresset.ones_like(value) for value in values]
            else:
                made = [aggregate(a, b) for a, b in zip(known if isinstance(known, list) else [known], values)]
            if group["features"] is None:
                made = made[0]
                if known is None:
                    self.state[name]["mask"] = self.state[name]["mask"][0]
            group["data"] = made

        return hook

    def register_layer(self, layer, aggregate_fn=None, reduce_fn=None, mask_fn=None, features=None, feature_dim=None, **sparse_config):
        """Watch the inputs of `layer`, a module of the model. What is None is taken from the defaults."""
        name = module_to_fqn(self.model, layer)
        if name is None:
            raise AssertionError("layer not found in the model")
        given = {"aggregate_fn": aggregate_fn, "reduce_fn": reduce_fn, "mask_fn": mask_fn, "features": features, "feature_dim": feature_dim}
        if name in self.data_groups:
            warnings.warn("layer already attached to the sparsifier, deregistering the layer and registering with new config", stacklevel=2)
            self.unregister_layer(name)
        group = copy.deepcopy(self.defaults)
        group.update((key, value) for key, value in given.items() if value is not None)
        group["sparse_config"].update(sparse_config)
        self._safe_rail_checks(group)
        group["layer"] = layer
        self.data_groups[name] = group
        group["hook"] = layer.register_forward_pre_hook(self._aggregate_hook(name=name))
        group["hook_state"] = "aggregate"
        self.state[name]["mask"] = None

    def get_mask(self, name=None, layer=None):
        """The mask of a layer, given by its name or itself: a tensor, or with features a list of tensors."""
        if name is None and layer is None:
            raise AssertionError("Need at least name or layer obj to retrieve mask")
        if name is None:
            name = module_to_fqn(self.model, layer)
            if name is None:
                raise AssertionError("layer not found in the specified model")
        if name not in self.state:
            raise ValueError("Error: layer with the given name not found")
        mask = self.state[name].get("mask")
        if mask is None:
            raise ValueError("Error: shape unknown, call layer() routine at least once to infer mask")
        return mask

    def unregister_layer(self, name):
        """Forget a layer."""
        self.data_groups[name]["hook"].remove()
        self.state.pop(name)
        self.data_groups.pop(name)

    def step(self):
        """Compute the masks of all layers from the inputs since the last step."""
        with cresset.no_grad():
            for name, group in self.data_groups.items():
                self.update_mask(name, group["data"], group)
                group.pop("data")

    def update_mask(self, name, data, configs):
        """Compute the mask of a layer from the aggregated `data`."""
        masks = self.get_mask(name)
        reduced = [configs["reduce_fn"](part) for part in (data if configs["features"] is not None else [data])]
        made = [configs["mask_fn"](part, **configs["sparse_config"]) for part in reduced]
        for mask, new in zip(masks if configs["features"] is not None else [masks], made):
            mask.data = new

    def _sparsify_hook(self, name):
        """The hook that multiplies an input by the mask."""
        mask = self.get_mask(name)
        group = self.data_groups[name]
        features, dim = group["features"], group["feature_dim"]

        def hook(module, inputs):
            x = inputs[0]
            if features is None:
                return x * mask
            masked = cresset.cat([part * m for part, m in zip(_parts(x, group), mask)], dim)
            return x.index_copy(dim, cresset.tensor(features, device=x.device), masked)

        return hook

    def squash_mask(self, attach_sparsify_hook=True, **kwargs):
        """Stop watching; with attach_sparsify_hook the masks apply to inputs from now on."""
        for name, group in self.data_groups.items():
            group.pop("hook").remove()
            group["hook_state"] = None
            if attach_sparsify_hook:
                group["hook"] = group["layer"].register_forward_pre_hook(self._sparsify_hook(name))
                group["hook_state"] = "sparsify"

    def _get_serializable_data_groups(self):
        """data_groups without layers and hooks."""
        groups = defaultdict()
        for name, group in self.data_groups.items():
            groups[name] = {key: value for key, value in group.items() if key not in ("hook", "layer")}
        return groups

    def _convert_mask(self, states_dict, sparse_coo=True):
        """A copy whose masks are sparse tensors, or strided ones."""
        states = defaultdict(dict)
        for name, state in states_dict.items():
            states[name] = {**state}
            mask = state.get("mask")
            if mask is not None:
                changed = [(m.to_sparse_coo() if sparse_coo else m.to_dense()) for m in (mask if isinstance(mask, list) else [mask])]
                states[name]["mask"] = changed if isinstance(mask, list) else changed[0]
        return states

    def state_dict(self):
        """{"state": masks, as sparse tensors; "data_groups": the configuration of the layers; "defaults"}"""
        return {"state": self._convert_mask(self.state), "data_groups": self._get_serializable_data_groups(), "defaults": self.defaults}

    def load_state_dict(self, state_dict):
        """Become what state_dict saw: its layers, found by name in this model, are watched or masked as they were."""
        groups = defaultdict(dict)
        for name, group in state_dict["data_groups"].items():
            layer = fqn_to_module(self.model, name)
            if layer is None:
                raise AssertionError(f"layer {name} not found in the model")
            groups[name] = {**group, "layer": layer}
        for group in self.data_groups.values():  # hooks of layers that were watched before
            if "hook" in group:
                group["hook"].remove()
        self.__set_state__({"state": self._convert_mask(state_dict["state"], sparse_coo=False), "data_groups": groups, "defaults": state_dict["defaults"]})

    def __get_state__(self):
        return {"defaults": self.defaults, "state": self.state, "data_groups": self._get_serializable_data_groups()}

    def __set_state__(self, state):
        self.__dict__.update(state)
        for name, group in self.data_groups.items():
            if group["hook_state"] == "aggregate":
                group["hook"] = group["layer"].register_forward_pre_hook(self._aggregate_hook(name))
            elif group["hook_state"] == "sparsify":
                group["hook"] = group["layer"].register_forward_pre_hook(self._sparsify_hook(name))

    def __repr__(self):
        lines = []
        for name, group in self.data_groups.items():
            lines += ["\tData Group", f"\t    name: {name}"]
            lines += [f"\t    {key}: {group[key]}" for key in sorted(group) if key not in (*_FUNCTIONS, "data", "hook")] + [""]
        return f"{type(self).__name__} (" + "".join("\n" + line for line in lines[:-1]) + ("\n" if lines else "") + ")"


def _parts(x, group):
    """[x], or with features x at each of them."""
    if group["features"] is None:
        return [x]
    return [x.index_select(group["feature_dim"], cresset.tensor([feature], device=x.device)) for feature in group["features"]]
