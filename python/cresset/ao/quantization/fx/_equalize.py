"""Equalization of inputs and weights: each channel of a layer's input is multiplied by a number and the weights for it are divided by it, so that both have
ranges of the same width, and lose less by being quantized. The layer before takes the numbers into its own weights; where there is none, the graph multiplies.

`prepare_fx(_equalization_config=…)` puts observers of channels behind those of values, and `convert_fx` takes them out again.
"""

import warnings
from collections import namedtuple
from functools import reduce

import cresset
from cresset import nn
from cresset.ao.nn import intrinsic
from cresset.fx import GraphModule, Node
from cresset.nn import functional as F

from ..observer import MinMaxObserver, PerChannelMinMaxObserver, _with_args
from .utils import create_getattr_from_value, get_new_attr_name_with_prefix, is_observer_node

__all__ = ["EqualizationQConfig", "calculate_equalization_scale", "default_equalization_qconfig", "get_equalization_qconfig_dict", "observe"]

_LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
_FUSED = (intrinsic.LinearReLU, intrinsic.ConvReLU1d, intrinsic.ConvReLU2d, intrinsic.ConvReLU3d)
_FUNCTIONS = (F.linear, F.conv1d, F.conv2d, F.conv3d)
_BY_CHANNEL = {cresset.per_tensor_affine: cresset.per_channel_affine, cresset.per_tensor_symmetric: cresset.per_channel_symmetric}


class _EqualizationObserver(nn.Module):
    """The ranges of the channels, which are the second dimension."""

    def __init__(self, dtype, qscheme, quant_min, quant_max, factory_kwargs):
        super().__init__()
        self.dtype, self.qscheme, self.equalization_scale = dtype, qscheme, cresset.tensor(1)
        seen = PerChannelMinMaxObserver(
            ch_axis=1, dtype=dtype, qscheme=_BY_CHANNEL.get(qscheme, qscheme), quant_min=quant_min, quant_max=quant_max, factory_kwargs=factory_kwargs
        )
        setattr(self, self._NAME, seen)

    def _seen(self):
        return getattr(self, self._NAME)

    def forward(self, x):
        if not 2 <= x.ndim <= 5:
            raise ValueError(f"{type(self).__name__.lstrip('_')} only supports Linear and Conv layers")
        return self._seen()(x)

    def set_equalization_scale(self, equalization_scale):
        """The numbers of the channels, unless it is one number for all: then nothing is equalized."""
        if equalization_scale.nelement() == 1 and equalization_scale == cresset.tensor(1):
            return
        self.equalization_scale = equalization_scale

    def _minmax(self):
        return self._seen().min_val, self._seen().max_val

    with_args = classmethod(_with_args)


class _InputEqualizationObserver(_EqualizationObserver):
    """The ranges of the channels of a layer's input."""

    _NAME = "input_obs"

    def __init__(self, dtype=cresset.quint8, qscheme=cresset.per_tensor_affine, quant_min=None, quant_max=None, factory_kwargs=None):
        if qscheme not in _BY_CHANNEL:
            raise TypeError("Input qscheme must be per-tensor")
        super().__init__(dtype, qscheme, quant_min, quant_max, factory_kwargs)

    def get_input_minmax(self):
        """(smallest, largest value) of each channel."""
        return self._minmax()

    def calculate_scaled_minmax(self):
        """(smallest, largest value) of the input when it is equalized; (None, None) where it is not."""
        if self.equalization_scale.nelement() == 1 and self.equalization_scale == cresset.tensor(1):
            warnings.warn("Must call calculate_equalization_scale before calling calculate_scaled_minmax. Will not scale the next quantization observer.", stacklevel=2)
            return None, None
        low, high = (v * self.equalization_scale.reshape(v.shape) for v in self._minmax())
        return low.min(), high.max()


class _WeightEqualizationObserver(_EqualizationObserver):
    """The ranges of the weights for each channel of a layer's input."""

    _NAME = "weight_col_obs"

    def __init__(self, dtype=cresset.qint8, qscheme=cresset.per_tensor_affine, quant_min=None, quant_max=None, factory_kwargs=None):
        super().__init__(dtype, qscheme, quant_min, quant_max, factory_kwargs)

    def get_weight_col_minmax(self):
        """(smallest, largest weight) of each channel."""
        return self._minmax()


def calculate_equalization_scale(input_obs, weight_obs):
    """The numbers of the channels: what makes the range of the input times the number as wide as that of the weights by it. One number, 1, and a warning
    where weights and input have not the same channels, or nothing was seen."""
    (low, high), (least, most) = input_obs.get_input_minmax(), weight_obs.get_weight_col_minmax()
    if not low.numel() or not least.numel():
        warnings.warn("Must run observer before calling calculate_equalization_scale. Returning default equalization scale cresset.tensor(1).", stacklevel=2)
        return cresset.tensor(1)
    if low.shape != least.shape:
        raise_count = f"Input and Weight must have the same number of channels; got {low.numel()} and {least.numel()}. They are not equalized."
        warnings.warn(raise_count, stacklevel=2)
        return cresset.tensor(1)
    scale = ((most - least) / (high - low)).sqrt()
    scale[scale == 0] = 1
    return scale.nan_to_num(nan=1, posinf=1, neginf=1)


class EqualizationQConfig(namedtuple("EqualizationQConfig", ["input_activation", "weight"])):
    """Constructors of the observers of a layer's input and of its weights."""

    __slots__ = ()

    def __new__(cls, input_activation=nn.Identity, weight=nn.Identity):
        if isinstance(input_activation, nn.Module) or isinstance(weight, nn.Module):
            raise ValueError("EqualizationQConfig received observer instance, please pass observer class instead. Use MyObserver.with_args(x=1) to override arguments.")
        return super().__new__(cls, input_activation, weight)


input_equalization_observer = _InputEqualizationObserver.with_args(dtype=cresset.quint8, qscheme=cresset.per_tensor_symmetric)
weight_equalization_observer = _WeightEqualizationObserver.with_args(dtype=cresset.qint8, qscheme=cresset.per_channel_symmetric)
default_equalization_qconfig = EqualizationQConfig(input_activation=input_equalization_observer, weight=weight_equalization_observer)


def get_equalization_qconfig_dict(layer_sqnr_dict, num_layers_to_equalize):
    """The _equalization_config for the layers that lose most, from {name of a module: ratio of signal and noise}."""
    worst = sorted(layer_sqnr_dict.items(), key=lambda item: item[1])[:num_layers_to_equalize]
    return {"module_name": [(name, default_equalization_qconfig) for name, _ in worst]}


# --- graphs


def _is_layer(node, modules):
    if node.op == "call_module":
        return type(modules[node.target]) in (*_LAYERS, *_FUSED)
    return node.op == "call_function" and node.target in _FUNCTIONS


def _is_relu(node, modules):
    return node.op == "call_module" and type(modules[node.target]) is nn.ReLU or node.op == "call_function" and node.target in (F.relu, cresset.relu)


def _weight_of(node):
    return node.args[1] if len(node.args) > 1 else node.kwargs.get("weight")


def observe(model, graph, modules, qconfigs):
    """Observers of channels behind those of the inputs (and weights, of functions) of the layers that `qconfigs` names; gives the names of these layers."""
    found = []
    for node in list(graph.nodes):
        qconfig = qconfigs.get(node.name)
        if qconfig is None or not _is_layer(node, modules) or not is_observer_node(node.args[0], modules):
            continue
        if len(node.args[0].users) > 1:
            warnings.warn(f"Cannot equalize {node} because it is part of a branch.", stacklevel=2)
            continue
        behind = [(node.args[0], qconfig.input_activation)]
        if node.op == "call_function":
            if not is_observer_node(_weight_of(node), modules):
                continue
            behind.append((_weight_of(node), qconfig.weight))
        for observer, constructor in behind:
            name = get_new_attr_name_with_prefix(observer.target + "_equalization_process_")(model)
            setattr(model, name, constructor())
            modules[name] = getattr(model, name)
            with graph.inserting_after(observer):
                node.replace_input_with(observer, graph.call_module(name, (observer,)))
        found.append(node.name)
    return found


class _Equalized:
    """One layer with observers of channels."""

    def __init__(self, model, modules, watched, qconfig):
        self.model, self.modules, self.watched = model, modules, watched
        (self.layer,) = watched.users
        self.observer = watched.args[0]
        self.channels = modules[watched.target]
        if self.layer.op == "call_module":
            self.weights = qconfig.weight()
            self.weights(_layer_of(modules[self.layer.target]).weight)
        else:
            self.weights = modules[_weight_of(self.layer).target]
        self.scale = calculate_equalization_scale(self.channels, self.weights)
        for seen in (self.channels, self.weights):
            seen.set_equalization_scale(self.scale)

    @property
    def counts(self):
        """Is there a number for each channel?"""
        return self.channels.equalization_scale is self.scale

    def before(self):
        """The layer whose result is this one's input and nothing else's, or None."""
        node = self.observer.args[0]
        for _ in range(2):
            if len(node.users) != 1:
                return None
            if _is_layer(node, self.modules):
                return node
            if not _is_relu(node, self.modules):
                return None
            node = node.args[0]
        return None

    def apply(self, graph):
        """The input times the numbers (1, where the channels are not known), the weights by them, and the ranges that observers have seen."""
        before = self.before()
        if before is not None:
            if not self.counts:
                return
            _multiply_rows(self.model, self.modules, before, self.scale)
        else:
            source = self.observer.args[0]
            with graph.inserting_before(self.observer):
                shape = [1] * self._rank()
                shape[1] = self.scale.numel()
                scale = create_getattr_from_value(self.model, graph, f"{source.name}_equalization_scale", self.scale.reshape(shape))
                made = graph.call_function(cresset.mul, (source, scale))
            self.observer.replace_input_with(source, made)
        if not self.counts:
            return
        low, high = self.channels.calculate_scaled_minmax()
        self.modules[self.observer.target] = _with_range(self.model, self.observer.target, self.modules[self.observer.target], low, high)
        _change_weight(self.model, self.modules, self.layer, lambda w: w / self.scale.reshape([1, -1] + [1] * (w.dim() - 2)))

    def _rank(self):
        if self.layer.op == "call_module":
            return _layer_of(self.modules[self.layer.target]).weight.dim()
        return 2 + _FUNCTIONS.index(self.layer.target)

    def remove(self, graph):
        """Take the observers out of the graph."""
        for node in [self.watched] if self.layer.op == "call_module" else [self.watched, _weight_of(self.layer)]:
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)


def _layer_of(module):
    return module[0] if isinstance(module, _FUSED) else module


def _with_range(model, path, observer, low, high):
    """An observer that has seen this range."""
    if type(observer) is not MinMaxObserver:  # one of histograms or averages: how the values lie within the range is not known
        given = {name: getattr(observer, name) for name in ("dtype", "qscheme", "reduce_range", "quant_min", "quant_max", "eps") if hasattr(observer, name)}
        given["eps"] = float(given.get("eps", 2**-23))
        if not getattr(observer, "has_customized_qrange", False):
            given["quant_min"] = given["quant_max"] = None
        observer = MinMaxObserver(**given)
        setattr(model, path, observer)
    observer.min_val, observer.max_val = low, high
    return observer


def _held(model, node):
    """(module, name) of what a get_attr node gives."""
    *path, name = node.target.split(".")
    return reduce(getattr, path, model), name


def _source(node):
    """The get_attr node behind observers; None where a value is computed."""
    while isinstance(node, Node) and node.op == "call_module":
        node = node.args[0]
    return node if isinstance(node, Node) and node.op == "get_attr" else None


def _replace(holder, name, change):
    value = getattr(holder, name)
    setattr(holder, name, nn.Parameter(change(value.detach()), value.requires_grad) if isinstance(value, nn.Parameter) else change(value))


def _change_weight(model, modules, node, change):
    if node.op == "call_module":
        _replace(_layer_of(modules[node.target]), "weight", change)
        return
    weight, watcher = _source(_weight_of(node)), _weight_of(node)
    _replace(*_held(model, weight), change)
    while isinstance(watcher, Node) and watcher.op == "call_module":  # what was seen of it is not true any more
        if is_observer_node(watcher, modules):
            modules[watcher.target].reset_min_max_vals()
        watcher = watcher.args[0]


def _multiply_rows(model, modules, node, scale):
    """The result of a layer times the numbers, by its weights and bias."""
    _change_weight(model, modules, node, lambda w: w * scale.reshape([-1] + [1] * (w.dim() - 1)))
    if node.op == "call_module":
        if _layer_of(modules[node.target]).bias is not None:
            _replace(_layer_of(modules[node.target]), "bias", lambda b: b * scale)
    else:
        bias = _source(node.args[2] if len(node.args) > 2 else node.kwargs.get("bias"))
        if bias is not None:
            _replace(*_held(model, bias), lambda b: b * scale)


def is_equalization_observer(observer):
    """Is it an observer of channels?"""
    return isinstance(observer, _EqualizationObserver)


def _convert_equalization_ref(model):
    """The graph module equalized, without its observers of channels: it computes what it computed before."""
    modules, graph = dict(model.named_modules(remove_duplicate=False)), model.graph
    attributes = model.meta.get("_observed_graph_module_attrs")
    qconfigs = attributes.equalization_node_name_to_qconfig if attributes is not None else {}
    watched = [n for n in graph.nodes if n.op == "call_module" and isinstance(modules[n.target], _InputEqualizationObserver)]
    layers = [_Equalized(model, modules, node, qconfigs[next(iter(node.users)).name]) for node in watched]
    for layer in layers:
        layer.remove(graph)
    for layer in layers:
        layer.apply(graph)
    graph.lint()
    return _remade(model, graph)


def _remade(model, graph):
    made = GraphModule(model, graph)
    made.meta = model.meta
    made.delete_all_unused_submodules()
    return made
