"""The kinds of graph modules that passes of quantization make; each keeps attributes of the module that was traced."""

import copy

import cresset
from cresset.fx import GraphModule

__all__ = ["FusedGraphModule", "ObservedGraphModule", "ObservedStandaloneGraphModule", "QuantizedGraphModule"]


class FusedGraphModule(GraphModule):
    """A graph whose patterns are fused."""

    _always_kept = frozenset()

    def __init__(self, root, graph, preserved_attr_names):
        self.preserved_attr_names = preserved_attr_names
        kept = {name: getattr(root, name) for name in [*preserved_attr_names, *self._always_kept] if hasattr(root, name)}
        super().__init__(root, graph)
        self.preserved_attr_names = preserved_attr_names
        for name, value in kept.items():
            setattr(self, name, value)

    def __deepcopy__(self, memo):
        holder = cresset.nn.Module()
        holder.__dict__ = copy.deepcopy(self.__dict__, memo)
        made = type(self).__mro__[1](holder, copy.deepcopy(self.graph), copy.deepcopy(self.preserved_attr_names))
        made.meta = holder.__dict__.get("meta", {})
        memo[id(self)] = made
        return made


class ObservedGraphModule(FusedGraphModule):
    """A graph with observers, and in its meta what conversion needs to know."""

    def __init__(self, root, graph, preserved_attr_names):
        super().__init__(root, graph, preserved_attr_names)
        if "_observed_graph_module_attrs" in getattr(root, "meta", {}):
            self.meta["_observed_graph_module_attrs"] = root.meta["_observed_graph_module_attrs"]


class ObservedStandaloneGraphModule(ObservedGraphModule):
    """A graph with observers, which is one node of another."""


class QuantizedGraphModule(FusedGraphModule):
    """A graph whose layers compute with whole numbers. Packed weights of functions are in its state."""

    def _packed_names(self):
        return [name for name, value in self.__dict__.items() if "_packed_weight_" in name and isinstance(value, cresset.ScriptObject)]

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        for name in self._packed_names():
            destination[prefix + name] = getattr(self, name)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        for name in self._packed_names():
            if prefix + name in state_dict:
                setattr(self, name, state_dict.pop(prefix + name))
            elif strict:
                missing_keys.append(prefix + name)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)


def _is_observed_module(module):
    return hasattr(module, "meta") and "_observed_graph_module_attrs" in module.meta


def _is_observed_standalone_module(module):
    return _is_observed_module(module) and module.meta["_observed_graph_module_attrs"].is_observed_standalone_module


def _get_observed_graph_module_attr(model, attr_name):
    if hasattr(model, "meta") and "_observed_graph_module_attrs" in model.meta:
        return getattr(model.meta["_observed_graph_module_attrs"], attr_name)
    return None
