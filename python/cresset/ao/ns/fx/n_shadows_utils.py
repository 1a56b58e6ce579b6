"""Several quantized forms of each part of a model, beside it in one graph: shadow_0_0 keeps the results of the first part, shadow_wrapper_0_1 is a form of it."""

import collections
import copy

import cresset
from cresset.ao.quantization import QConfigMapping
from cresset.ao.quantization.fx.match_utils import find_matches
from cresset.ao.quantization.fx.qconfig_mapping_utils import _generate_node_name_to_qconfig
from cresset.ao.quantization.quantize_fx import prepare_fx
from cresset.fx import Graph, GraphModule, Interpreter, Node

from ._loggers import OutputComparisonLogger, OutputLogger
from .graph_passes import _maybe_get_fqn
from .ns_types import NSSingleResultValuesType
from .utils import compute_sqnr, get_target_type_str
from .weight_utils import constant_value, extract_weight_from_node

__all__ = [
    "OutputProp", "create_add_loggers_graph", "create_n_transformed_and_logged_copies_of_subgraph", "create_one_transformed_and_logged_copy_of_subgraph",
    "create_results_comparison", "create_submodule_from_subgraph", "extract_weight_comparison", "group_results_by_subgraph", "print_n_shadows_summary",
]  # fmt: skip

SHADOW_NODE_NAME_PREFIX, SHADOW_WRAPPER_NODE_NAME_PREFIX = "shadow", "shadow_wrapper"


def _get_attr_name(subgraph_idx, subgraph_candidate_idx):
    return f"{SHADOW_NODE_NAME_PREFIX}_{subgraph_idx}_{subgraph_candidate_idx}"


def _get_attr_wrapper_name(subgraph_idx, subgraph_candidate_idx):
    return f"{SHADOW_WRAPPER_NODE_NAME_PREFIX}_{subgraph_idx}_{subgraph_candidate_idx}"


class OutputProp:
    """Runs a graph module; each node keeps what it gave as `traced_result`."""

    def __init__(self, mod):
        self.mod = mod

    def propagate(self, *args):
        """The result of the whole."""

        class Keeping(Interpreter):
            def run_node(self, n):
                n.traced_result = super().run_node(n)
                return n.traced_result

        return Keeping(self.mod, garbage_collect_values=False).run(*args)


def _subgraphs(mt, backend_config):
    """[[first node, …, last one], …] of what the backend has patterns for, in the order of the graph."""
    matches = find_matches(mt.graph, dict(mt.named_modules(remove_duplicate=False)), backend_config._pattern_complex_format_to_config)
    order, found = {node: index for index, node in enumerate(mt.graph.nodes)}, {}
    for match in matches.values():
        found[match.last] = sorted(match.nodes, key=order.get)
    return [found[last] for last in sorted(found, key=order.get)]


def _flat_nodes(node):
    """The nodes in a node's arguments, in order and with repetitions."""
    found = []
    cresset.fx.map_arg((node.args, node.kwargs), found.append)
    return found


def create_submodule_from_subgraph(model, first_node, last_node):
    """A graph module of its own, of copies of the modules, with one input for each value that comes from outside. `_outer_inputs` are those."""
    nodes, node = [first_node], first_node
    while node is not last_node:
        node = next(user for user in node.users if user.op != "call_module" or not user.name.startswith(SHADOW_NODE_NAME_PREFIX))
        nodes.append(node)
    root, graph, made, outer, names = cresset.nn.Module(), Graph(), {}, [], collections.Counter()
    pending = {}
    for node in nodes:  # inputs first
        for value in _flat_nodes(node):
            if value not in nodes:
                pending.setdefault(node, []).append(graph.placeholder(f"{value.name}_{names[value.name]}"))
                names[value.name] += 1
                outer.append(value)
    for number, node in enumerate(nodes):
        given = iter(pending.get(node, []))
        args, kwargs = cresset.fx.map_arg((node.args, node.kwargs), lambda n, given=given: made[n] if n in made else next(given))
        target = node.target
        if node.op == "call_module":
            target = f"mod_{number}"
            setattr(root, target, copy.deepcopy(model.get_submodule(node.target)))
        made[node] = graph.create_node(node.op, target, args, kwargs)
    graph.output(made[last_node])
    submodule = GraphModule(root, graph).train(model.training)
    submodule._outer_inputs = outer
    return submodule


def _get_logger_for_subgraph(model, first_node, last_node, subgraph_idx, subgraph_candidate_idx, qconfig_str, logger_cls, fqn):
    logger = logger_cls(
        first_node.name, last_node.name, f"subgraph_{subgraph_idx}_{subgraph_candidate_idx}", "model", get_target_type_str(last_node, model),
        get_target_type_str(first_node, model), NSSingleResultValuesType.NODE_OUTPUT.value, 0, 0, fqn, qconfig_str,
    )  # fmt: skip
    logger.enabled = False
    return logger


def _call(mt, name, module, args, after):
    setattr(mt, name, module)
    with mt.graph.inserting_after(after):
        return mt.graph.create_node("call_module", name, args, {}, name)


def _log_original(mt, nodes, subgraph_idx, fqn):
    logger = _get_logger_for_subgraph(mt, nodes[0], nodes[-1], subgraph_idx, 0, "", OutputLogger, fqn)
    return _call(mt, _get_attr_name(subgraph_idx, 0), logger, (nodes[-1],), nodes[-1])


def _log_comparison(mt, nodes, subgraph_idx, number, qconfig, fqn, shadow, after):
    logger = _get_logger_for_subgraph(mt, nodes[0], nodes[-1], subgraph_idx, number, "" if qconfig is None else str(qconfig), OutputComparisonLogger, fqn)
    return _call(mt, _get_attr_name(subgraph_idx, number), logger, (shadow, nodes[-1]), after)


def create_one_transformed_and_logged_copy_of_subgraph(
    mt, subgraph_idx, subgraph_candidate_idx, first_node, last_node, fqn, list_of_node_name_to_qconfig, example_inputs, last_added_shadow_node_list,
    custom_prepare_fn=None, custom_prepare_kwargs=None,
):  # fmt: skip
    """The part with one of its QConfigs and a logger behind `last_added_shadow_node_list[0]`; number 0 is the logger of the part itself."""
    if subgraph_candidate_idx == 0:
        last_added_shadow_node_list[0] = _log_original(mt, [first_node, last_node], subgraph_idx, fqn)
        return
    qconfig = list_of_node_name_to_qconfig[subgraph_candidate_idx - 1][first_node.name]
    if qconfig is None:
        return
    submodule = create_submodule_from_subgraph(mt, first_node, last_node)
    outer = submodule._outer_inputs
    prepare = prepare_fx if custom_prepare_fn is None else custom_prepare_fn
    prepared = prepare(submodule, QConfigMapping().set_global(qconfig), example_inputs=example_inputs, **(custom_prepare_kwargs or {}))
    wrapper = _call(mt, _get_attr_wrapper_name(subgraph_idx, subgraph_candidate_idx), prepared, tuple(outer), last_added_shadow_node_list[0])
    last_added_shadow_node_list[0] = _log_comparison(mt, [first_node, last_node], subgraph_idx, subgraph_candidate_idx, qconfig, fqn, wrapper, wrapper)


def _examples(nodes):
    return tuple(value.traced_result for node in nodes for value in _flat_nodes(node) if value not in nodes)


def create_n_transformed_and_logged_copies_of_subgraph(
    mt, subgraph_idx, match_name, nodes_in_this_subgraph, qconfig_mappings, list_of_node_name_to_qconfig, custom_prepare_fn=None, custom_prepare_kwargs=None
):  # fmt: skip
    """The part with each of its QConfigs. A part whose inputs are no tensors stays without."""
    nodes = nodes_in_this_subgraph
    examples = _examples(nodes)
    if not all(isinstance(value, cresset.Tensor) for value in examples):
        return
    last_added, fqn = [None], _maybe_get_fqn(nodes[0], mt)
    for number in range(len(qconfig_mappings) + 1):
        create_one_transformed_and_logged_copy_of_subgraph(
            mt, subgraph_idx, number, nodes[0], nodes[-1], fqn, list_of_node_name_to_qconfig, examples, last_added, custom_prepare_fn, custom_prepare_kwargs
        )


def node_name_to_qconfig_of(mt, qconfig_mapping):
    """{name of a node: QConfig or None}"""
    modules = dict(mt.named_modules(remove_duplicate=False))
    return _generate_node_name_to_qconfig(mt, modules, mt.graph, qconfig_mapping, mt._node_name_to_scope)


def create_add_loggers_graph(model, subgraphs, qconfig_mapping, node_name_to_qconfig):
    """The model and beside it one quantized form as a whole: each part of it takes what the parts before it gave. Results of the graph are those of the model."""
    with_pattern = {node: nodes for nodes in subgraphs for node in nodes}
    shadow_of, number = {}, 0
    for node in list(model.graph.nodes):
        if node.op in ("placeholder", "get_attr", "output") or node in shadow_of:
            continue
        nodes = with_pattern.get(node, [node])
        if node is not nodes[0]:
            continue
        qconfig = node_name_to_qconfig.get(nodes[0].name) if node in with_pattern else None
        _shadow_of_part(model, nodes, number, qconfig, shadow_of)
        number += 1


def _shadow_of_part(mt, nodes, number, qconfig, shadow_of):
    examples, fqn = _examples(nodes), _maybe_get_fqn(nodes[0], mt)
    submodule = None
    if qconfig is not None and all(isinstance(value, cresset.Tensor) for value in examples):
        submodule = create_submodule_from_subgraph(mt, nodes[0], nodes[-1])
    after = _log_original(mt, nodes, number, fqn)
    if submodule is not None:
        inputs = tuple(shadow_of.get(value, value) for value in submodule._outer_inputs)
        prepared = prepare_fx(submodule, QConfigMapping().set_global(qconfig), example_inputs=examples)
        after = shadow = _call(mt, _get_attr_wrapper_name(number, 1), prepared, inputs, after)
        shadow_of[nodes[-1]] = shadow
    else:
        for node in nodes:
            with mt.graph.inserting_after(after):
                after = mt.graph.node_copy(node, lambda n: shadow_of.get(n, n))
            shadow_of[node] = after
        shadow = after
    if isinstance(nodes[-1].traced_result, cresset.Tensor):
        _log_comparison(mt, nodes, number, 1, qconfig, fqn, shadow, after)


# Results.
def _with_weights(wrapper, call, m):
    """A quantized part, in which inputs that depend on attributes of the model alone are attributes."""
    graph, made, root = Graph(), {}, cresset.nn.Module()
    given = dict(zip((node for node in wrapper.graph.nodes if node.op == "placeholder"), call.args))
    root.__dict__.update(wrapper.__dict__)
    for node in wrapper.graph.nodes:
        try:
            setattr(root, node.name + "_given", constant_value(given[node], m))
            made[node] = graph.create_node("get_attr", node.name + "_given")
        except (AssertionError, KeyError):
            made[node] = graph.node_copy(node, lambda n: made[n])
    return GraphModule(root, graph)


def _get_weight_info_from_shadow_wrapper(shadow_wrapper):
    """(node, graph module) of the first weight in a quantized part, or None."""
    for node in shadow_wrapper.graph.nodes:
        if node.op in ("call_function", "call_module") and extract_weight_from_node(node, shadow_wrapper) is not None:
            return node, shadow_wrapper
    return None


def extract_weight_comparison(m):
    """{"model": {"weight": {"subgraph_0_0": […], "subgraph_0_1": […], …}}} of the weights of parts and of their quantized forms."""
    found = {}
    for name, wrapper in m.named_children():
        if not name.startswith(SHADOW_WRAPPER_NODE_NAME_PREFIX + "_"):
            continue
        subgraph, candidate = name.removeprefix(SHADOW_WRAPPER_NODE_NAME_PREFIX + "_").split("_")
        logger = getattr(m, _get_attr_name(subgraph, candidate))
        first = next(node for node in m.graph.nodes if node.name == logger.ref_node_name)
        call = next(node for node in m.graph.nodes if node.target == name)
        of_model, of_shadow = extract_weight_from_node(first, m), _get_weight_info_from_shadow_wrapper(_with_weights(wrapper, call, m))
        if of_model is None or of_shadow is None:
            continue
        shadow = extract_weight_from_node(*of_shadow)
        comparison = compute_sqnr(of_model["values"][0], shadow["values"][0])
        for number, values in ((0, of_model["values"]), (candidate, shadow["values"])):
            facts = {key: value for key, value in of_model.items() if key not in ("type", "values", "fqn")}
            found[f"subgraph_{subgraph}_{number}"] = [{
                "res_type": "weight", "values": values, **facts, "fqn": logger.fqn, "qconfig_str": logger.qconfig_str if number else "",
                "comparisons": [comparison], "comparison_fn_name": "sqnr",
            }]  # fmt: skip
    return {"model": {NSSingleResultValuesType.WEIGHT.value: found}}


def group_results_by_subgraph(results):
    """{"subgraph_0": {"0": {…}, "1": {…}}, …}: what is known of each form of each part."""
    grouped = collections.defaultdict(dict)
    of_kinds = results["model"]
    of_kind = of_kinds.get(NSSingleResultValuesType.NODE_OUTPUT.value, of_kinds.get(NSSingleResultValuesType.WEIGHT.value))
    for name, entries in of_kind.items():
        subgraph, _, candidate = name.rpartition("_")
        grouped[subgraph][candidate] = {
            key: entries[0][key] for key in ("ref_node_name", "ref_node_target_type", "fqn", "values", "qconfig_str", "comparisons", "comparison_fn_name")
        }
    return dict(grouped)


def create_results_comparison(results_grouped):
    """{"subgraph_0": {"ref_node_name": …, "ref_node_target_type": …, "fqn": …, "candidates": {"1": {"cmp_raw": […], "cmp_mean": …}, …}}, …}"""
    made = {}
    for subgraph, of_candidates in results_grouped.items():
        first = of_candidates["0"]
        candidates = {
            number: {
                "qconfig_str": facts["qconfig_str"], "comparison_fn_name": facts["comparison_fn_name"], "cmp_raw": facts["comparisons"],
                "cmp_mean": sum(facts["comparisons"]) / len(facts["comparisons"]),
            }
            for number, facts in of_candidates.items() if number != "0" and facts["comparisons"]
        }  # fmt: skip
        made[subgraph] = {key: first[key] for key in ("ref_node_name", "ref_node_target_type", "fqn")} | {"candidates": candidates}
    return made


def print_n_shadows_summary(results_comparison):
    """A table of the parts with a column of each form: the mean of its distances."""
    try:
        from tabulate import tabulate
    except ImportError:
        print("print_comparisons_n_shadows_model: the package tabulate is not installed, and the table is made by it.")
        return
    columns = max((len(facts["candidates"]) for facts in results_comparison.values()), default=0)
    rows = [
        [facts["ref_node_name"], facts["ref_node_target_type"], facts["fqn"], *(one["cmp_mean"] for one in facts["candidates"].values())]
        for facts in results_comparison.values()
    ]  # fmt: skip
    print(tabulate(rows, headers=["node_name", "node_type", "fqn", *map(str, range(columns))]))


def is_shadow_wrapper(node):
    """Is the node a call of a quantized form of a part?"""
    return isinstance(node, Node) and node.op == "call_module" and node.name.startswith(SHADOW_WRAPPER_NODE_NAME_PREFIX + "_")
