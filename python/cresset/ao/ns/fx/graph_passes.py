"""Loggers in graphs, and graphs in which another form of each operation runs beside it."""

import cresset
from cresset import nn
from cresset.ao.quantization.fx.utils import get_new_attr_name_with_prefix
from cresset.ao.quantization.utils import getattr_from_fqn
from cresset.fx import Graph, GraphModule, Node

from .mappings import get_node_type_to_io_type_map
from .ns_types import NSSingleResultValuesType
from .utils import (
    NodeInputOrOutputType, get_arg_indices_of_inputs_to_log, get_node_first_input_and_output_type, get_node_input_qparams, get_normalized_nth_input,
    get_number_of_non_param_args, get_target_type_str, op_type_supports_shadowing, return_first_non_observer_node,
)  # fmt: skip

__all__ = ["add_loggers_to_model", "create_a_shadows_b"]

_INPUT, _OUTPUT = NSSingleResultValuesType.NODE_INPUT.value, NSSingleResultValuesType.NODE_OUTPUT.value


def _maybe_get_fqn(node, gm):
    """The name of the module that a node is called in, or calls; None where the graph module does not know."""
    scopes = getattr(gm, "_node_name_to_scope", None)
    known = getattr(gm, "meta", {}).get("_observed_graph_module_attrs")
    scopes = known.node_name_to_scope if known is not None else scopes
    if scopes is None:
        return None
    node = return_first_non_observer_node(node, gm)
    return scopes[node.name][0] if node.name in scopes else None


class _Copy:
    """A copy of a graph module, into which nodes and modules are put; `made` gives the copies of nodes."""

    def __init__(self, gm):
        graph, self.made = Graph(), {}
        for node in gm.graph.nodes:
            self.made[node] = graph.node_copy(node, lambda n: self.made[n])
            self.made[node].name = node.name
        self.gm, self.graph = GraphModule(gm, graph), graph
        self.graph = self.gm.graph
        by_name = {node.name: node for node in self.graph.nodes}
        self.made = {node: by_name[copy.name] for node, copy in self.made.items()}
        self.original = gm

    def attribute(self, prefix, value):
        """The first free name prefix0, prefix1, …, under which the module has the value from now on."""
        name = get_new_attr_name_with_prefix(prefix)(self.gm)
        setattr(self.gm, name, value)
        return name

    def call_module(self, prefix, module, args, after, kwargs=None, name=None):
        """A call of a module that is new to the graph."""
        target = self.attribute(prefix, module)
        with self.graph.inserting_after(after):
            return self.graph.create_node("call_module", target, args, kwargs or {}, name or target)

    def logger(self, value, suffix, logger_cls, *facts, after=None):
        """A call of a new logger on a node, behind it."""
        return self.call_module(value.name + suffix, logger_cls(*facts), (value,), after or value)

    def done(self):
        """The graph module."""
        self.graph.lint()
        self.gm.recompile()
        return self.gm


def _input_loggers(copy, node, of, logger_cls, suffix, model_name, ref_name, ref_node_name, ref_node_target_type, fqn):
    """Loggers before a node. Those of single inputs are passed through; of inputs in lists each value has one beside."""
    for index in get_arg_indices_of_inputs_to_log(of):
        value = node.args[index] if index < len(node.args) else None
        for within, one in enumerate([value] if isinstance(value, Node) else value if isinstance(value, (list, tuple)) else []):
            if not isinstance(one, Node):
                continue
            facts = (ref_node_name, one.name, model_name, ref_name, get_target_type_str(one, copy.gm), ref_node_target_type, _INPUT, within, index, fqn)
            logger = copy.logger(one, suffix, logger_cls, *facts, after=node.prev)
            if isinstance(value, Node):
                node.replace_input_with(one, logger)


def _output_logger(copy, node, logger_cls, suffix, model_name, ref_name, ref_node_target_type, fqn, after=None):
    """A logger behind a node, or later, which all users take in the node's place."""
    facts = (node.name, node.name, model_name, ref_name, get_target_type_str(node, copy.gm), ref_node_target_type, _OUTPUT, 0, 0, fqn)
    users = list(node.users)
    logger = copy.logger(node, suffix, logger_cls, *facts, after=after)
    for user in users:
        user.replace_input_with(node, logger)
    return logger


def add_loggers_to_model(gm, node_to_instrument_inputs_to_ref_node_name, node_to_instrument_outputs_to_ref_node_name, logger_cls, model_name):
    """A copy of the graph module with loggers: {node: (name of the part, name of the type)} say which inputs and results are kept."""
    copy = _Copy(gm)
    for node in gm.graph.nodes:
        if node in node_to_instrument_inputs_to_ref_node_name:
            ref_name, target = node_to_instrument_inputs_to_ref_node_name[node]
            _input_loggers(copy, copy.made[node], node, logger_cls, "_ns_logger_", model_name, ref_name, node.name, target, _maybe_get_fqn(node, gm))
        if node in node_to_instrument_outputs_to_ref_node_name:
            ref_name, target = node_to_instrument_outputs_to_ref_node_name[node]
            _output_logger(copy, copy.made[node], logger_cls, "_ns_logger_", model_name, ref_name, target, _maybe_get_fqn(node, gm))
    return copy.done()


class _Shadow:
    """Copies of parts of graph A beside the matching parts of a copy of graph B."""

    def __init__(self, gm_a, gm_b, names, logger_cls, should_log_inputs, known):
        self.gm_a, self.gm_b, self.copy, self.known = gm_a, gm_b, _Copy(gm_b), known
        (self.name_a, self.name_b), self.logger_cls, self.should_log_inputs = names, logger_cls, should_log_inputs

    def _skipped(self, b, a, why):
        print(f"skipping shadow loggers for node_b: {get_target_type_str(b, self.gm_b)}, start_node_a: {get_target_type_str(a, self.gm_a)}, {why}")

    def _kinds(self, node, gm):
        return get_node_first_input_and_output_type(node, gm, self.logger_cls, self.known)

    def _cast_kind(self, a, b):
        """How inputs of B become those of A: "same", "dequantize" or "quantize"; None where that is not known."""
        kinds, (in_a, out_a), (in_b, out_b) = NodeInputOrOutputType, self._kinds(a, self.gm_a), self._kinds(b, self.gm_b)
        if kinds.UNKNOWN in (in_a, out_a, in_b, out_b):
            return None
        if in_a == in_b:
            return "same"
        if in_a is kinds.FP32 and in_b in (kinds.INT8, kinds.FP16):
            return "dequantize"
        if in_a is kinds.INT8 and in_b is kinds.FP32 and get_node_input_qparams(a, self.gm_a, self.known) is not None:
            return "quantize"
        return None

    def _can_be_copied(self, subgraph):
        """Are all inputs but those of the chain itself constants and attributes?"""
        for node, first in self._chain(subgraph):
            for value in [*node.args, *node.kwargs.values()][get_number_of_non_param_args(node, self.gm_a) if first else 1 :]:
                if isinstance(value, (list, tuple)) and any(isinstance(v, Node) for v in value):
                    return False
                if isinstance(value, Node) and return_first_non_observer_node(value, self.gm_a).op != "get_attr":
                    return False
        return True

    def _chain(self, subgraph):
        """[(node, is it the first one), …] from the start to the end."""
        nodes = [subgraph.end_node]
        while nodes[-1] is not subgraph.start_node:
            nodes.append(get_normalized_nth_input(nodes[-1], self.gm_a, 0))
        return [(node, node is subgraph.start_node) for node in reversed(nodes)]

    # The casts of inputs.
    def _cast(self, value, a, kind, after, prefix):
        copy = self.copy
        if isinstance(value, (list, tuple)):
            return type(value)(self._cast(v, a, kind, after, prefix) for v in value)
        if kind == "same":
            return copy.call_module(prefix, nn.Identity(), (value,), after)
        name = self._free_node_name(prefix)
        if kind == "dequantize":
            with copy.graph.inserting_after(after):
                return copy.graph.create_node("call_function", cresset.dequantize, (value,), {}, name)
        at = after
        facts = []
        for what, number in zip(("scale", "zero_point"), get_node_input_qparams(a, self.gm_a, self.known)):
            number = number.detach() if isinstance(number, cresset.Tensor) else cresset.tensor(number)
            target = copy.attribute(f"{a.name}_input_{what}_", number)
            with copy.graph.inserting_after(at):
                at = copy.graph.create_node("get_attr", target, (), {}, target)
            facts.append(at)
        with copy.graph.inserting_after(at):
            return copy.graph.create_node("call_function", cresset.quantize_per_tensor, (value, *facts, cresset.quint8), {}, name)

    def _free_node_name(self, prefix):
        names, number = {node.name for node in self.copy.graph.nodes}, 0
        while f"{prefix}{number}" in names:
            number += 1
        return f"{prefix}{number}"

    # Copies of nodes.
    def _argument(self, value, at):
        """A constant, or a copy of an attribute of A."""
        if not isinstance(value, Node):
            return value, at
        source = return_first_non_observer_node(value, self.gm_a)
        held = getattr_from_fqn(self.gm_a, source.target)
        target = self.copy.attribute(source.target.replace(".", "_") + "_shadow_copy_", held.detach() if isinstance(held, cresset.Tensor) else held)
        with self.copy.graph.inserting_after(at):
            made = self.copy.graph.create_node("get_attr", target, (), {}, target)
        return made, made

    def _copied_node(self, node, inputs, at, prefix):
        """A copy with these inputs in the place of the first ones."""
        normal = None
        if node.op != "call_method":
            try:
                normal = node.normalized_arguments(self.gm_a, normalize_to_only_use_kwargs=True)
            except RuntimeError:
                normal = None
        args, kwargs = (node.args, node.kwargs) if normal is None else (normal.args, normal.kwargs)
        places = [(index, None) for index in range(len(args))] + [(None, name) for name in kwargs]
        new_args, new_kwargs = list(args), dict(kwargs)
        for number, (index, name) in enumerate(places):
            value = args[index] if name is None else kwargs[name]
            if number < len(inputs):
                value = inputs[number]
            else:
                value, at = self._argument(value, at)
            if name is None:
                new_args[index] = value
            else:
                new_kwargs[name] = value
        if node.op == "call_module":
            module = self.gm_a.get_submodule(node.target)
            target = self.copy.attribute(prefix, module)
        else:
            target = node.target
        with self.copy.graph.inserting_after(at):
            return self.copy.graph.create_node(node.op, target, tuple(new_args), new_kwargs, self._free_node_name(prefix))

    def add(self, ref_name, subgraph_a, subgraph_b):
        """The part of A beside that of B, with loggers behind both."""
        a, b = subgraph_a.start_node, subgraph_b.start_node
        if not (op_type_supports_shadowing(b) and op_type_supports_shadowing(a)):
            return self._skipped(b, a, "unsupported")
        kind = self._cast_kind(a, b)
        if kind is None:
            return self._skipped(b, a, "unknown dtype cast")
        if not self._can_be_copied(subgraph_a):
            return self._skipped(b, a, "unhandled args in subgraph")
        count = min(get_number_of_non_param_args(node, gm) for node, gm in ((a, self.gm_a), (b, self.gm_b)))
        target_a = get_target_type_str(subgraph_a.base_op_node, self.gm_a)
        target_b = get_target_type_str(subgraph_b.base_op_node, self.gm_b)
        fqn_a, fqn_b = _maybe_get_fqn(subgraph_a.base_op_node, self.gm_a), _maybe_get_fqn(subgraph_b.base_op_node, self.gm_b)
        copy, start = self.copy, self.copy.made[b]
        if self.should_log_inputs:
            _input_loggers(copy, start, b, self.logger_cls, "_ns_logger_b_inp_", self.name_b, ref_name, b.name, target_b, fqn_b)
        given = [*start.args, *start.kwargs.values()][:count]
        first = self._cast(given[0], a, kind, start, f"{start.name}_dtype_cast_")
        at = first
        if self.should_log_inputs:
            facts = (f"{start.name}_shadow_copy_0", first.name, self.name_a, ref_name, get_target_type_str(first, copy.gm), target_a, _INPUT, 0, 0, fqn_a)
            at = first = copy.logger(first, "_ns_logger_a_inp_", self.logger_cls, *facts)
        inputs = [first, *given[1:]]
        for node, _ in self._chain(subgraph_a):
            at = self._copied_node(node, inputs, at, f"{start.name}_shadow_copy_")
            inputs = [at]
        facts = (at.name, at.name, self.name_a, ref_name, get_target_type_str(at, copy.gm), target_a, _OUTPUT, 0, 0, fqn_a)
        at = copy.logger(at, "_ns_logger_a_", self.logger_cls, *facts)
        end = copy.made[subgraph_b.end_node]
        _output_logger(copy, end, self.logger_cls, "_ns_logger_b_", self.name_b, ref_name, target_b, fqn_b, at if end is start else None)
        return None


def create_a_shadows_b(name_a, gm_a, name_b, gm_b, matched_subgraph_pairs, logger_cls, should_log_inputs, node_type_to_io_type_map=None):
    """A copy of graph module B in which the matching parts of A run on the inputs of those of B, with loggers behind both.

    Left out, with a line that says so, are sums, products and concatenations, parts whose dtypes are not known, and parts of A with inputs beyond those of
    B and their own weights.
    """
    known = get_node_type_to_io_type_map() if node_type_to_io_type_map is None else node_type_to_io_type_map
    made = _Shadow(gm_a, gm_b, (name_a, name_b), logger_cls, should_log_inputs, known)
    for ref_name, (subgraph_a, subgraph_b) in matched_subgraph_pairs.items():
        made.add(ref_name, subgraph_a, subgraph_b)
    return made.copy.done()

