"""Observers are put into a graph, where a backend takes quantized values and a QConfig asks for them."""

import copy
import dataclasses

import cresset
from cresset.fx import GraphModule, Node
from cresset.nn.utils.parametrize import type_before_parametrizations

from ..backend_config import ObservationType
from ..backend_config.utils import get_module_to_qat_module
from ..observer import ReuseInputObserver
from ..qconfig_mapping import QConfigMapping
from ..quant_type import QuantType
from ..quantize import convert as _swap_modules
from ..quantize import propagate_qconfig_
from ._equalize import observe
from .custom_config import PrepareCustomConfig
from .fuse import backend_of, set_module
from .graph_module import ObservedGraphModule, ObservedStandaloneGraphModule, _get_observed_graph_module_attr
from .match_utils import Match, find_matches
from .qconfig_mapping_utils import _generate_node_name_to_qconfig, _update_qconfig_for_fusion, _update_qconfig_for_qat, mapping_of
from .utils import (
    NON_QUANTIZABLE_WEIGHT_OPS, ObservedGraphModuleAttrs, all_node_args_have_no_tensors, get_new_attr_name_with_prefix,
    get_non_observable_arg_indexes_and_types, is_observer_node, nodes_in, satisfies,
)  # fmt: skip

__all__ = ["prepare"]

_WATCHED = (
    cresset.quint8, cresset.qint8, cresset.qint32, cresset.float16, cresset.uint8, cresset.int8, cresset.int16, cresset.int32, cresset.float8_e5m2,
    cresset.float8_e4m3fn,
)  # fmt: skip


@dataclasses.dataclass
class Kind:
    """What a constructor of observers makes: its dtype, and whether values are quantized as they come."""

    constructor: object
    dtype: object
    is_dynamic: bool
    reuses: bool

    @classmethod
    def of(cls, constructor):
        """By making one."""
        made = constructor()
        return cls(constructor, made.dtype, bool(getattr(made, "is_dynamic", False)), isinstance(made, ReuseInputObserver))

    @property
    def watched(self):
        """Is there something to insert for this dtype?"""
        return self.dtype in _WATCHED


def _has_bounds(dtypes):
    given = (dtypes.input_dtype_with_constraints, dtypes.output_dtype_with_constraints, dtypes.weight_dtype_with_constraints)
    return any(value is not None for one in given for name, value in vars(one).items() if name != "dtype")


class _Preparation:
    """The observers of one graph."""

    def __init__(self, model, config, qconfigs, custom, is_qat, prepare_standalone=None):
        self.model, self.graph, self.config, self.qconfigs, self.custom, self.is_qat = model, model.graph, config, qconfigs, custom, is_qat
        self.prepare_standalone = prepare_standalone
        self.modules = dict(model.named_modules(remove_duplicate=False))
        self.by_pattern = config._pattern_complex_format_to_config
        self.no_tensors, self.observed, self.count = self._masks(), set(), 0
        self.special, self.standalone = self._special_nodes(), self._standalone_nodes()
        self.matches = find_matches(self.graph, self.modules, self.by_pattern, {**self.special, **self.standalone})
        for match in self.matches.values():
            match.root_getter = self.by_pattern[match.pattern]._root_node_getter

    # Modules with observed forms of their own.
    def _special_nodes(self):
        classes = self.custom.float_to_observed_mapping.get(QuantType.STATIC, {})
        found = {}
        for node in self.graph.nodes:
            if node.op == "call_module" and type_before_parametrizations(self.modules[node.target]) in classes:
                found[node.name] = Match(node, [node], type_before_parametrizations(self.modules[node.target]), node)
        return found

    def _masks(self):
        """{node: True} of what masks are made of: truth values are not observed, as shapes are not."""
        found = {}
        for node in self.graph.nodes:
            if node.op == "call_method" and node.target == "masked_fill":
                stack = [value for value in node.args[1:] if isinstance(value, Node)]
                while stack:
                    mask = stack.pop()
                    found[mask] = True
                    stack += [value for value in mask.all_input_nodes if value not in found]
        return found

    # Modules with graphs of their own.
    def _standalone_nodes(self):
        names, classes = self.custom.standalone_module_names, self.custom.standalone_module_classes
        found = {}
        for node in self.graph.nodes:
            if node.op == "call_module":
                entry = names.get(node.target, classes.get(type_before_parametrizations(self.modules[node.target])))
                if entry is not None:
                    found[node.name] = entry
        return found

    def _one_standalone(self, node):
        """The module is prepared for itself. Inputs that it takes quantized are observed here, results that it gives quantized in it."""
        entry, qconfig, module = self.standalone[node.name], self.qconfigs[node.name], self.modules[node.target]
        if not isinstance(module, ObservedStandaloneGraphModule):  # it may be called again
            mapping = entry.qconfig_mapping if entry.qconfig_mapping is not None else QConfigMapping().set_global(qconfig)
            config = entry.backend_config if entry.backend_config is not None else self.config
            module = self.prepare_standalone(module, mapping, self.is_qat, entry.example_inputs, entry.prepare_custom_config, backend_config=config)
            set_module(self.model, node.target, module)
            self.modules[node.target] = module
        quantized = _get_observed_graph_module_attr(module, "prepare_custom_config").input_quantized_indexes
        kind = Kind.of(qconfig.activation)
        node.args = tuple(self._observed_arg(value, kind) if index in quantized else value for index, value in enumerate(node.args))
        self.observed.add(node.name)

    def _swap_special(self, node):
        module, classes = self.modules[node.target], self.custom.float_to_observed_mapping[QuantType.STATIC]
        if type_before_parametrizations(module) not in classes:
            return  # of a module that is called again
        observed = classes[type_before_parametrizations(module)].from_float(module)
        set_module(self.model, node.target, observed)
        self.modules[node.target] = observed

    # What a backend can do.
    def _weight_and_bias(self, node, config):
        if node.op != "call_function":
            return {}
        found = {}
        for kind, index in config._input_type_to_index.items():
            value = node.args[index] if index < len(node.args) else node.kwargs.get(kind)
            if isinstance(value, Node) and kind in ("weight", "bias"):
                found[value] = kind
        return found

    def _function_config(self, node):
        return self.by_pattern.get(node.target) if node.op == "call_function" else None

    def _roles(self, node, config):
        own = self._function_config(node)
        return self._weight_and_bias(node, own if own is not None else config)

    def _supported(self, match, config, qconfig):
        if qconfig.activation is None or qconfig.weight is None:
            return False
        act, weight = Kind.of(qconfig.activation), Kind.of(qconfig.weight)
        if act.reuses:  # it has no range of its own that could keep to bounds
            return not config.dtype_configs or not all(_has_bounds(dtypes) for dtypes in config.dtype_configs)
        return not config.dtype_configs or any(self._fits(match, config, dtypes, qconfig, act, weight) for dtypes in config.dtype_configs)

    def _fits(self, match, config, dtypes, qconfig, act, weight):
        first, roles = match.root, self._roles(match.root, config)
        takes = any(isinstance(a, Node) and a not in roles for a in first.all_input_nodes)
        if takes and dtypes.input_dtype is not None and not (
            dtypes.input_dtype == act.dtype and bool(dtypes.is_dynamic) == act.is_dynamic and self._takes(qconfig.activation, dtypes)
        ):
            return False
        if "weight" in roles.values() and dtypes.weight_dtype is not None:
            if weight.dtype != dtypes.weight_dtype or not satisfies(qconfig.weight, dtypes.weight_dtype_with_constraints):
                return False
        given = cresset.float32 if act.is_dynamic else act.dtype
        if dtypes.output_dtype is None:
            return True
        return dtypes.output_dtype == given and (act.is_dynamic or satisfies(qconfig.activation, dtypes.output_dtype_with_constraints))

    @staticmethod
    def _takes(constructor, dtypes):
        """An input has a scale of its own where that of the result is fixed."""
        constraints = dtypes.input_dtype_with_constraints
        return constraints.scale_exact_match is not None or satisfies(constructor, constraints)

    # Observers.
    def _new_observer(self, constructor):
        made = constructor()
        device = next((t.device for t in (*self.model.parameters(), *self.model.buffers())), None)
        return made if device is None else made.to(device)

    def _insert(self, value, watcher):
        """A call of the observer behind the node; gives the new node, without changing users."""
        name = get_new_attr_name_with_prefix("activation_post_process_")(self.model)
        setattr(self.model, name, watcher)
        self.modules[name] = watcher
        with self.graph.inserting_after(value):
            return self.graph.create_node("call_module", name, (value,), {})

    def _existing(self, value, kind):
        for user in value.users:
            if is_observer_node(user, self.modules):
                made = self.modules[user.target]
                if made.dtype == kind.dtype and bool(getattr(made, "is_dynamic", False)) == kind.is_dynamic:
                    return user
        return None

    def _observed_arg(self, value, kind):
        """The node that gives the value as the consumer wants it."""
        if isinstance(value, (list, tuple)):
            return type(value)(self._observed_arg(v, kind) for v in value)
        if not isinstance(value, Node) or not kind.watched or kind.reuses or all_node_args_have_no_tensors(value, self.modules, self.no_tensors):
            return value
        if is_observer_node(value, self.modules):
            made = self.modules[value.target]
            if made.dtype == kind.dtype and bool(getattr(made, "is_dynamic", False)) == kind.is_dynamic:
                return value
        found = self._existing(value, kind)
        return found if found is not None else self._insert(value, self._new_observer(kind.constructor))

    def _observe_inputs(self, node, config, qconfig):
        act, weight = Kind.of(qconfig.activation), Kind.of(qconfig.weight)
        roles = self._roles(node, config)
        halves = act.dtype == weight.dtype == cresset.float16 and not act.is_dynamic  # then the bias is one, too

        def observed(value):
            if isinstance(value, Node) and ((roles.get(value) == "bias" and not halves) or (roles.get(value) == "weight" and node.target in NON_QUANTIZABLE_WEIGHT_OPS)):
                return value
            return self._observed_arg(value, weight if isinstance(value, Node) and roles.get(value) == "weight" else act)

        kept = self._not_observed(node)
        args = [value if index in kept else observed(value) for index, value in enumerate(node.args)]
        node.args = tuple(args)
        node.kwargs = {name: observed(value) for name, value in node.kwargs.items()}

    @staticmethod
    def _not_observed(node):
        """Positions of arguments that are sizes and dimensions, whatever they come from."""
        return [index for positions in get_non_observable_arg_indexes_and_types(node).values() for index in positions(node)]

    def _observer_of(self, value):
        while isinstance(value, Node):
            if is_observer_node(value, self.modules):
                return self.modules[value.target]
            if not value.all_input_nodes:
                return None
            value = value.all_input_nodes[0]
        return None

    def _first_tensor(self, node):
        nodes = [a for a in node.all_input_nodes if not all_node_args_have_no_tensors(a, self.modules, self.no_tensors)]
        return nodes[0] if nodes else None

    def _shares(self, match, config):
        counted = config._num_tensor_args_to_observation_type
        if counted:
            count = sum(isinstance(a, Node) and not all_node_args_have_no_tensors(a, self.modules, self.no_tensors) for a in match.root.args)
            return counted.get(count, config.observation_type) is ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT
        return config.observation_type is ObservationType.OUTPUT_SHARE_OBSERVER_WITH_INPUT

    def _share(self, node, after):
        """All inputs and the result of a node get the observer of the first input; a result whose input has none gets none, either."""
        first = self._first_tensor(node)
        watcher = self.modules[first.target] if is_observer_node(first, self.modules) else None
        if watcher is None:
            return
        targets = [a.target for a in node.all_input_nodes if is_observer_node(a, self.modules)]
        for target in [*targets, after.target]:
            if self.modules[target] is not watcher:
                set_module(self.model, target, watcher)
                self.modules[target] = watcher

    def _observe_result(self, match, config, qconfig):
        act, node = Kind.of(qconfig.activation), match.last
        if act.is_dynamic or not act.watched:
            return
        shares = self._shares(match, config)
        first = self._first_tensor(match.root)
        if act.reuses or (shares and not is_observer_node(first, self.modules)):
            watcher = self._observer_of(first) if act.reuses and is_observer_node(first, self.modules) else None
            if watcher is None:
                return
        else:
            watcher = self._new_observer(qconfig.activation)
        made = self._insert(node, watcher)
        for user in [u for u in node.users if u is not made]:
            user.replace_input_with(node, made)
        if shares or act.reuses:
            self._share(match.root, made)

    def run(self):
        """Insert all of them."""
        for node in list(self.graph.nodes):
            if node.op == "placeholder":
                continue
            if node.op == "output":
                self._observe_output(node)
            elif node.name in self.special and self.qconfigs.get(node.name) is not None:
                self._one_special(node)
            elif node.name in self.standalone and self.qconfigs.get(node.name) is not None:
                self._one_standalone(node)
            elif node.name in self.matches:
                self._one(node, self.matches[node.name])
        return self

    def _observe_output(self, node):
        indexes = self.custom.output_quantized_indexes
        if not indexes:
            return
        values = node.args[0] if isinstance(node.args[0], (tuple, list)) else [node.args[0]]
        for value in nodes_in([values[index] for index in indexes]):
            if not is_observer_node(value, self.modules) and not (value.op == "placeholder"):
                qconfig = self.qconfigs.get(value.name)
                if qconfig is not None:
                    value.replace_all_uses_with(made := self._insert(value, self._new_observer(qconfig.activation)))
                    made.args = (value,)

    def _one_special(self, node):
        qconfig = self.qconfigs[node.name]
        self._observe_special_inputs(node, qconfig)
        self._swap_special(node)
        self.observed.add(node.name)
        if Kind.of(qconfig.activation).watched:
            made = self._insert(node, self._new_observer(qconfig.activation))
            for user in [u for u in node.users if u is not made]:
                user.replace_input_with(node, made)

    def _observe_special_inputs(self, node, qconfig):
        kind = Kind.of(qconfig.activation)
        node.args = tuple(self._observed_arg(value, kind) for value in node.args)

    def _one(self, node, match):
        config, qconfig = self.by_pattern[match.pattern], self.qconfigs.get(match.root.name)
        if qconfig is None or config.observation_type is ObservationType.INPUT_OUTPUT_NOT_OBSERVED:
            return
        if all_node_args_have_no_tensors(node, self.modules, self.no_tensors) or not self._supported(match, config, qconfig):
            return
        self.observed.add(node.name)
        if node is match.root:
            self._observe_inputs(node, config, qconfig)
        if node is match.last:
            self._observe_result(match, config, qconfig)

    def quantized_inputs(self):
        """Placeholders that are quantized already have a quantizer's dtype: their consumers do not watch them."""
        for index, node in enumerate([n for n in self.graph.nodes if n.op == "placeholder"]):
            if index in self.custom.input_quantized_indexes:
                for user in [u for u in node.users if is_observer_node(u, self.modules) and self.modules[u.target].dtype in _WATCHED]:
                    user.replace_all_uses_with(node)
                    self.graph.erase_node(user)


def prepare(model, qconfig_mapping, is_qat, node_name_to_scope, example_inputs, prepare_custom_config=None, _equalization_config=None, backend_config=None,
            is_standalone_module=False, *, prepare_standalone=None):  # fmt: skip
    """The graph module with observers. `prepare_standalone` prepares modules that have graphs of their own."""
    custom = PrepareCustomConfig.from_dict(prepare_custom_config) if isinstance(prepare_custom_config, dict) else prepare_custom_config or PrepareCustomConfig()
    mapping = copy.deepcopy(mapping_of(qconfig_mapping))
    equalization = copy.deepcopy(mapping_of(_equalization_config))
    config = backend_of(backend_config)
    as_given = copy.deepcopy(mapping)
    _update_qconfig_for_fusion(model, mapping)
    _update_qconfig_for_fusion(model, equalization)
    by_name_and_kind = {"": mapping.global_qconfig, **mapping.object_type_qconfigs, **mapping.module_name_qconfigs}
    propagate_qconfig_(model, by_name_and_kind, custom.to_dict())  # also to what is inside of modules with observed forms of their own
    if is_qat:
        _update_qconfig_for_qat(mapping, config)
        _generate_node_name_to_qconfig(model, dict(model.named_modules(remove_duplicate=False)), model.graph, mapping, node_name_to_scope)
        trained = {pattern: kind for pattern, kind in get_module_to_qat_module(config).items() if isinstance(pattern, type)}
        _swap_modules(model, trained, inplace=True, remove_qconfig=False)
    equalized = {}
    if equalization.to_dict() != mapping_of({}).to_dict():  # modules keep the QConfig that is asked for last
        modules = dict(model.named_modules(remove_duplicate=False))
        equalized = _generate_node_name_to_qconfig(model, modules, model.graph, equalization, node_name_to_scope)
    qconfigs = _generate_node_name_to_qconfig(model, dict(model.named_modules(remove_duplicate=False)), model.graph, mapping, node_name_to_scope)
    made = _Preparation(model, config, qconfigs, custom, is_qat, prepare_standalone).run()
    made.quantized_inputs()
    if equalized:
        names = observe(model, model.graph, made.modules, {name: qconfig for name, qconfig in equalized.items() if name in made.observed})
        equalized = {name: equalized[name] for name in names}
    result = GraphModule(model, model.graph)
    kind = ObservedStandaloneGraphModule if is_standalone_module else ObservedGraphModule
    result.meta["_observed_graph_module_attrs"] = ObservedGraphModuleAttrs(
        qconfigs, node_name_to_scope, custom, equalized, as_given, is_qat, made.observed, is_standalone_module,
        *((list(custom.input_quantized_indexes), list(custom.output_quantized_indexes)) if is_standalone_module else ()),
    )  # fmt: skip
    return kind(result, result.graph, set(custom.preserved_attributes))
