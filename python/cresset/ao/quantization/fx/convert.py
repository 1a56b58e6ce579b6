"""A graph with observers becomes one that quantizes and dequantizes, with reference modules; then, unless that is what is wanted, one of whole numbers."""

import copy

import cresset
from cresset.ao.nn.intrinsic import _FusedModule
from cresset.fx import GraphModule, Node
from cresset.nn.utils.parametrize import type_before_parametrizations

from ..backend_config.utils import get_pattern_to_input_type_to_index, get_qat_module_classes, get_root_module_to_quantized_reference_module
from ..qconfig import qconfig_equals
from ..qconfig_mapping import _QCONFIG_STYLE_ORDER
from ..quant_type import QuantType
from ..quantize import _remove_qconfig
from ..utils import get_qparam_dict, get_quant_type, is_per_channel
from ._equalize import _convert_equalization_ref
from ._lower_to_native_backend import lower_to_native_backend
from .custom_config import ConvertCustomConfig
from .fuse import backend_of, set_module
from .graph_module import QuantizedGraphModule, _get_observed_graph_module_attr, _is_observed_module, _is_observed_standalone_module
from .prepare import _WATCHED
from .qconfig_mapping_utils import _generate_node_name_to_qconfig, _update_qconfig_for_fusion, _update_qconfig_for_qat, mapping_of
from .utils import create_getattr_from_value, is_observer_node, nodes_in

__all__ = ["convert"]


class _Conversion:
    """The reference form of one graph with observers."""

    def __init__(self, model, config, custom, qconfigs):
        self.model, self.graph, self.config, self.custom, self.qconfigs = model, model.graph, config, custom, qconfigs
        self.modules = dict(model.named_modules(remove_duplicate=False))
        self.scopes = _get_observed_graph_module_attr(model, "node_name_to_scope")
        self.observed = _get_observed_graph_module_attr(model, "observed_node_names")
        self.prepared = _get_observed_graph_module_attr(model, "prepare_custom_config")
        self.references, self.trained = get_root_module_to_quantized_reference_module(config), get_qat_module_classes(config)

    # Weights.
    def run_weight_observers(self):
        """What watches weights of functions has seen them."""
        positions = get_pattern_to_input_type_to_index(self.config)
        for node in self.graph.nodes:
            index = positions.get(node.target, {}).get("weight") if node.op == "call_function" else None
            if index is None:
                continue
            value = node.args[index] if index < len(node.args) else node.kwargs.get("weight")
            if is_observer_node(value, self.modules) and value.args[0].op == "get_attr":
                weight = self.model
                for part in value.args[0].target.split("."):
                    weight = getattr(weight, part)
                self.modules[value.target](weight)

    def convert_weighted(self, node):
        """A layer with a weight becomes its reference, or what was trained a float one."""
        module = self.modules[node.target]
        kind, qconfig = type_before_parametrizations(module), getattr(module, "qconfig", None)
        in_training = kind in self.trained
        inner = module[0] if isinstance(module, _FusedModule) and not in_training else module
        if not in_training and type_before_parametrizations(inner) not in self.references:
            return
        if qconfig is None or node.name not in self.observed or qconfig.weight is None:
            if in_training:
                self._put(node.target, module.to_float())
            return
        made, watcher = (module.to_float(), module.weight_fake_quant) if in_training else (module, qconfig.weight())
        inner = made[0] if isinstance(made, _FusedModule) else made
        reference = self.references.get(type_before_parametrizations(inner))
        if reference is None:
            return
        made_of = reference.from_float(inner, self._facts(inner, watcher, qconfig))
        made_of.train(inner.training)
        if inner is made:
            made_of._float_source = (inner, qconfig) if not hasattr(inner, "weight") else None
            self._put(node.target, made_of)
        else:
            made[0] = made_of
            self._put(node.target, made)

    def _facts(self, module, watcher, qconfig):
        if hasattr(module, "weight") and not isinstance(module, cresset.nn.RNNBase):
            watcher = watcher.to(module.weight.device)
            watcher(module.weight)
            return get_qparam_dict(watcher)
        facts = {}
        for name, weight in module.named_parameters():
            if name.startswith("weight"):
                watcher = qconfig.weight().to(weight.device)
                if watcher.dtype is cresset.qint8:
                    watcher(weight)
                facts[name] = get_qparam_dict(watcher)
        return facts

    def _put(self, path, module):
        set_module(self.model, path, module)
        self.modules[path] = module

    # Observers.
    def _place(self, observer):
        """(path of the module that a name is for, what is said of it)"""
        source = observer.args[0]
        if self.qconfigs.get(source.name) is not None:
            return self._scope(source), ""
        users = [user for user in observer.users if user.op != "output"]
        return (self._scope(users[0]) if users else ""), "_input"

    def _scope(self, node):
        return self.scopes.get(node.name, ("", None))[0]

    def replace_observer(self, node):
        """quantize and dequantize in the place of an observer, or nothing."""
        watcher, source = self.modules[node.target], node.args[0]
        around = [*node.all_input_nodes, *node.users]
        dynamic = bool(getattr(watcher, "is_dynamic", False))
        if watcher.dtype not in _WATCHED or all(self._unquantized(n) for n in around):
            node.replace_all_uses_with(source)
            self.graph.erase_node(node)
            return
        place, said = self._place(node)
        with self.graph.inserting_before(node):
            if watcher.dtype == cresset.float16 and not dynamic:
                quantized = self.graph.call_method("to", (source, cresset.float16))
            elif dynamic:
                quantized = self.graph.call_function(cresset.quantize_per_tensor_dynamic, (source, watcher.dtype, getattr(watcher, "reduce_range", False) or _reduced()))
            else:
                quantized = self._quantize(source, watcher, place + said)
            real = self.graph.call_method("dequantize", (quantized,))
        node.replace_all_uses_with(real)
        self.graph.erase_node(node)

    def _quantize(self, source, watcher, prefix):
        scale, zero = watcher.calculate_qparams()
        channels = is_per_channel(watcher.qscheme)
        if not channels:
            scale, zero = float(scale), int(zero)
        made = [create_getattr_from_value(self.model, self.graph, f"{prefix}_{name}_", value) for name, value in (("scale", scale), ("zero_point", zero))]
        if channels:
            return self.graph.call_function(cresset.quantize_per_channel, (source, *made, int(watcher.ch_axis), watcher.dtype))
        return self.graph.call_function(cresset.quantize_per_tensor, (source, *made, watcher.dtype))

    def _unquantized(self, node):
        return isinstance(node, Node) and node.name in self.qconfigs and self.qconfigs[node.name] is None

    # Inputs, results, and modules with quantized forms of their own.
    def dequantize_inputs(self):
        """What is quantized already is made real."""
        placeholders = [node for node in self.graph.nodes if node.op == "placeholder"]
        for index in self.prepared.input_quantized_indexes:
            if index < len(placeholders):
                self._dequantize_behind(placeholders[index])

    def _dequantize_behind(self, node):
        users = list(node.users)
        with self.graph.inserting_after(node):
            real = self.graph.call_method("dequantize", (node,))
        for user in users:
            user.replace_input_with(node, real)
        return real

    def keep_results(self):
        """Results that stay quantized are not made real."""
        output = next(node for node in self.graph.nodes if node.op == "output")
        indexes, values = self.prepared.output_quantized_indexes, output.args[0]
        if not indexes:
            return
        values = list(values) if isinstance(values, (tuple, list)) else [values]
        for value in nodes_in([values[index] for index in indexes]):
            if value.target == "dequantize":
                output.replace_input_with(value, value.args[0])

    def convert_special(self):
        """Modules of a user's classes become quantized ones: those that were observed take and give quantized values, others are as dynamic layers are."""
        done = {}
        for node in list(self.graph.nodes):
            if node.op != "call_module" or node.target not in self.modules:
                continue
            module = self.modules[node.target]
            kind = done.get(node.target) or self._special_kind(module)
            if kind is None:
                continue
            watchers = [user for user in node.users if is_observer_node(user, self.modules)] if kind is QuantType.STATIC else []
            if watchers and node.target not in done:
                module.activation_post_process = self.modules[watchers[0].target]
            if kind is QuantType.STATIC:
                node.args = tuple(a.args[0] if isinstance(a, Node) and a.target == "dequantize" else a for a in node.args)
            if node.target not in done:  # a module may be called again
                classes = self.custom.observed_to_quantized_mapping[kind]
                self._put(node.target, classes[type_before_parametrizations(module)].from_observed(module))
                done[node.target] = kind
            for watcher in watchers:
                with self.graph.inserting_before(watcher):
                    real = self.graph.call_method("dequantize", (node,))
                watcher.replace_all_uses_with(real)
                self.graph.erase_node(watcher)

    def _special_kind(self, module):
        """How a module of a user's class is quantized, by its QConfig if it has one; None for another module."""
        classes = self.custom.observed_to_quantized_mapping
        if not any(type_before_parametrizations(module) in of_kind for of_kind in classes.values()):
            return None
        qconfig = getattr(module, "qconfig", None)
        kind = QuantType.STATIC if qconfig is None else get_quant_type(qconfig)
        return kind if type_before_parametrizations(module) in classes.get(kind, {}) else None

    def convert_standalone(self, convert_one):
        """Modules with graphs of their own are converted for themselves; what they take and give quantized stays so."""
        for node in list(self.graph.nodes):
            module = self.modules.get(node.target) if node.op == "call_module" else None
            if module is None or not _is_observed_standalone_module(module):
                continue
            takes, gives = (_get_observed_graph_module_attr(module, f"standalone_module_{side}_quantized_idxs") for side in ("input", "output"))
            args = list(node.args)
            for index in takes:
                if isinstance(args[index], Node) and args[index].target == "dequantize":
                    args[index] = args[index].args[0]
            node.args = tuple(args)
            if gives:
                self._dequantize_behind(node)
            self._put(node.target, convert_one(module))

    def run(self, convert_one):
        """The whole conversion; `convert_one` converts a module that has a graph of its own."""
        self.run_weight_observers()
        special = self.custom.observed_to_quantized_mapping.get(QuantType.STATIC, {})
        for node in list(self.graph.nodes):
            if is_observer_node(node, self.modules):
                before = node.args[0]
                if before.op == "call_module" and type_before_parametrizations(self.modules[before.target]) in special:
                    continue
                self.replace_observer(node)
            elif node.op == "call_module" and type_before_parametrizations(self.modules[node.target]) not in special:
                self.convert_weighted(node)
        self.convert_special()
        self.convert_standalone(convert_one)
        self.dequantize_inputs()
        self.keep_results()
        self.graph.eliminate_dead_code()
        return self


def _reduced():
    return cresset.backends.quantized.engine in ("fbgemm", "x86")


def _check_mappings(prepared, given):
    """A mapping for conversion has what was prepared, or None for it; AssertionError for others."""
    if not qconfig_equals(prepared.global_qconfig, given.global_qconfig):
        raise AssertionError("Expected global qconfigs to be the same in the prepare and convert quantization configs")
    for style in _QCONFIG_STYLE_ORDER[1:]:
        mine, theirs, said = getattr(given, style), getattr(prepared, style), style.removesuffix("_qconfigs")
        for key, qconfig in theirs.items():
            if key not in mine:
                raise AssertionError(f"Missing key {said} {key} in convert QConfigMapping when it was present in prepare")
            if mine[key] is not None and not qconfig_equals(mine[key], qconfig):
                raise AssertionError(
                    f"Expected convert QConfigMapping to have the same qconfig as prepare for key {said} {key}; prepare: {qconfig}; convert: {mine[key]}"
                )


def _qconfigs_of(model, qconfig_mapping, backend_config):
    found = _get_observed_graph_module_attr(model, "node_name_to_qconfig")
    if not qconfig_mapping:
        return found
    given = copy.deepcopy(mapping_of(qconfig_mapping))
    _check_mappings(_get_observed_graph_module_attr(model, "qconfig_mapping"), given)
    if _get_observed_graph_module_attr(model, "is_qat"):
        _update_qconfig_for_qat(given, backend_config)
    _update_qconfig_for_fusion(model, given)
    modules = dict(model.named_modules(remove_duplicate=False))
    scopes = _get_observed_graph_module_attr(model, "node_name_to_scope")
    now = _generate_node_name_to_qconfig(model, modules, model.graph, given, scopes)
    for name, before in found.items():
        if name in now and now[name] is not None and before is not None and not qconfig_equals(before, now[name]):
            raise AssertionError(f"Expected k {name} to have the same value in prepare and convert QConfigMappings, but {before} was updated to {now[name]}")
    return {name: now.get(name, before) for name, before in found.items()}


def convert(model, is_reference=False, convert_custom_config=None, is_standalone_module=False, _remove_qconfig_flag=True, qconfig_mapping=None,
            backend_config=None, is_decomposed=False, keep_original_weights=False):  # fmt: skip
    """The quantized graph module of one with observers."""
    custom = ConvertCustomConfig.from_dict(convert_custom_config) if isinstance(convert_custom_config, dict) else convert_custom_config or ConvertCustomConfig()
    if not _is_observed_module(model):
        raise AssertionError("incoming model must be produced by prepare_fx")
    if is_decomposed:
        raise NotImplementedError("convert: graphs of quantized_decomposed operators (is_decomposed) are not part of Cresset; convert_to_reference_fx is.")
    if keep_original_weights:
        raise NotImplementedError("convert: the weights of the float model are not kept (keep_original_weights). Keep the model itself.")
    config = backend_of(backend_config)
    qconfigs = _qconfigs_of(model, qconfig_mapping, config)
    scopes = _get_observed_graph_module_attr(model, "node_name_to_scope")
    if _get_observed_graph_module_attr(model, "equalization_node_name_to_qconfig"):
        model = _convert_equalization_ref(model)
    made = _Conversion(model, config, custom, qconfigs).run(
        lambda module: convert(module, is_reference, convert_custom_config, True, _remove_qconfig_flag=_remove_qconfig_flag, backend_config=backend_config)
    )
    result = QuantizedGraphModule(GraphModule(model, made.graph), made.graph, set(custom.preserved_attributes))
    if not is_reference:
        result = lower_to_native_backend(result, qconfigs, scopes)
    if _remove_qconfig_flag:
        _remove_qconfig(result)
    result.delete_all_unused_submodules()
    result.meta.pop("_observed_graph_module_attrs", None)
    return result
