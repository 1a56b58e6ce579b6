"""Weights and results of a model's operations beside those of another form of it, as graphs: what PyTorch calls the numeric suite for FX.

```python
results = extract_weights("float", prepared, "int8", quantized)
float_logged, int8_logged = add_loggers("float", prepared, "int8", quantized, OutputLogger)
float_logged(x), int8_logged(x)
results = extract_logger_info(float_logged, int8_logged, OutputLogger, "int8")
extend_logger_results_with_comparison(results, "float", "int8", compute_sqnr, "sqnr")
shadowed = add_shadow_loggers("float", prepared, "int8", quantized, OutputLogger)   # each float operation on the inputs of the quantized one
```

Results are `{name of a node: {"weight", "node_output" or "node_input": {name of the model: [{"values": […], "fqn": …, …}]}}}`. Several quantized forms of each
part of one model: `prepare_n_shadows_model`, run it, `convert_n_shadows_model`, `loggers_set_enabled`, run it, `extract_results_n_shadows_model`.
"""

import cresset
from cresset.ao.ns.fx.graph_matcher import get_matching_subgraph_pairs
from cresset.ao.ns.fx.mappings import get_base_name_to_sets_of_related_ops
from cresset.ao.quantization import FakeQuantizeBase, ObserverBase
from cresset.ao.quantization.backend_config.utils import get_fusion_pattern_to_root_node_getter  # noqa: F401
from cresset.ao.quantization.quantize_fx import QuantizationTracer, convert_fx
from cresset.fx import GraphModule

from .fx._loggers import OutputComparisonLogger, OutputLogger, RNNReturnType  # noqa: F401
from .fx.graph_passes import add_loggers_to_model, create_a_shadows_b
from .fx.n_shadows_utils import (
    OutputProp, _subgraphs, create_add_loggers_graph, create_n_transformed_and_logged_copies_of_subgraph, create_results_comparison, extract_weight_comparison,
    group_results_by_subgraph, is_shadow_wrapper, node_name_to_qconfig_of, print_n_shadows_summary,
)  # fmt: skip
from .fx.ns_types import NSSingleResultValuesType
from .fx.qconfig_multi_mapping import QConfigMultiMapping
from .fx.utils import get_target_type_str, maybe_add_missing_fqns, rekey_logger_info_on_node_name_of_model
from .fx.weight_utils import extract_weight_from_node

__all__ = [
    "OutputLogger", "OutputComparisonLogger", "NSTracer", "extract_weights", "add_loggers", "extract_logger_info", "add_shadow_loggers", "extract_shadow_logger_info",
    "extend_logger_results_with_comparison", "prepare_n_shadows_model", "loggers_set_enabled", "loggers_set_save_activations", "convert_n_shadows_model",
    "extract_results_n_shadows_model", "print_comparisons_n_shadows_model",
]  # fmt: skip


class NSTracer(QuantizationTracer):
    """Traces models with observers, which are single nodes."""

    def is_leaf_module(self, m, module_qualified_name):
        """Is this module one node?"""
        return isinstance(m, (ObserverBase, FakeQuantizeBase)) or super().is_leaf_module(m, module_qualified_name)


def _traced(*models):
    """Graph modules of the models; those that are are taken as they are."""
    found = []
    for model in models:
        if not isinstance(model, GraphModule):
            tracer = NSTracer([], [])
            made = GraphModule(model, tracer.trace(model))
            made._node_name_to_scope = tracer.node_name_to_scope
            model = made
        found.append(model)
    return found


# Weights.
def _extract_weights_one_model(model_name, model, nodes_and_names_to_instrument, results, op_to_type_to_weight_extraction_fn=None):
    for node, ref_name in nodes_and_names_to_instrument:
        entry = extract_weight_from_node(node, model, op_to_type_to_weight_extraction_fn)
        if entry is not None:
            of_part = results.setdefault(ref_name, {}).setdefault(NSSingleResultValuesType.WEIGHT.value, {})
            of_part.setdefault(model_name, []).append(entry)


def _extract_weights_impl(
    model_name_a, gm_a, model_name_b, gm_b, base_name_to_sets_of_related_ops=None, unmatchable_types_map=None, op_to_type_to_weight_extraction_fn=None
):
    pairs, results = get_matching_subgraph_pairs(gm_a, gm_b, base_name_to_sets_of_related_ops, unmatchable_types_map), {}
    for index, (name, gm) in enumerate(((model_name_a, gm_a), (model_name_b, gm_b))):
        nodes = [(parts[index].base_op_node, ref_name) for ref_name, parts in pairs.items()]
        _extract_weights_one_model(name, gm, nodes, results, op_to_type_to_weight_extraction_fn)
    maybe_add_missing_fqns(results)
    return rekey_logger_info_on_node_name_of_model(results, model_name_b)


def extract_weights(
    model_name_a, model_a, model_name_b, model_b, base_name_to_sets_of_related_ops=None, unmatchable_types_map=None, op_to_type_to_weight_extraction_fn=None
):
    """The weights of matching operations of two forms of a model. The tables of `ns.fx.mappings` and `ns.fx.weight_utils` may be given with additions."""
    base = get_base_name_to_sets_of_related_ops() if base_name_to_sets_of_related_ops is None else base_name_to_sets_of_related_ops
    gm_a, gm_b = _traced(model_a, model_b)
    return _extract_weights_impl(model_name_a, gm_a, model_name_b, gm_b, base, unmatchable_types_map, op_to_type_to_weight_extraction_fn)


# Results.
def _add_loggers_impl(name_a, gm_a, name_b, gm_b, logger_cls, should_log_inputs, base_name_to_sets_of_related_ops=None, unmatchable_types_map=None):
    pairs, made = get_matching_subgraph_pairs(gm_a, gm_b, base_name_to_sets_of_related_ops, unmatchable_types_map), []
    for index, (name, gm) in enumerate(((name_a, gm_a), (name_b, gm_b))):
        inputs, outputs = {}, {}
        for ref_name, parts in pairs.items():
            part = parts[index]
            target = get_target_type_str(part.base_op_node, gm)
            if should_log_inputs:
                inputs[part.start_node] = (ref_name, target)
            outputs[part.end_node] = (ref_name, target)
        made.append(add_loggers_to_model(gm, inputs, outputs, logger_cls, name))
    return tuple(made)


def add_loggers(name_a, model_a, name_b, model_b, logger_cls, should_log_inputs=False, base_name_to_sets_of_related_ops=None, unmatchable_types_map=None):
    """(copy of model A, copy of model B) as graphs with loggers behind matching operations; before them, too, with `should_log_inputs`."""
    gm_a, gm_b = _traced(model_a, model_b)
    return _add_loggers_impl(name_a, gm_a, name_b, gm_b, logger_cls, should_log_inputs, base_name_to_sets_of_related_ops, unmatchable_types_map)


def _is_logger(module, logger_cls):
    scripted = isinstance(module, cresset.jit.ScriptModule) and getattr(module, "original_name", None) == logger_cls.__name__
    return isinstance(module, logger_cls) or scripted


def _extract_logger_info_one_model(model, results, logger_cls):
    for _, module in model.named_modules():
        if not _is_logger(module, logger_cls):
            continue
        of_kind = results.setdefault(module.ref_name, {}).setdefault(module.results_type, {})
        if any(entry["index_within_arg"] == module.index_within_arg and entry["index_of_arg"] == module.index_of_arg for entry in of_kind.get(module.model_name, [])):
            raise AssertionError(f"{module.ref_name}: two loggers of {module.model_name} keep one value")
        entry = {
            "type": module.results_type, "values": list(module.stats_rnn) if len(module.stats_rnn) else list(module.stats), "comparisons": [], "comparison_fn_name": "",
            **{
                key: getattr(module, key)
                for key in (
                    "ref_node_name", "ref_node_target_type", "prev_node_name", "prev_node_target_type", "index_within_arg", "index_of_arg", "fqn", "qconfig_str",
                )
            },
        }  # fmt: skip
        if isinstance(module, OutputComparisonLogger):
            entry |= {"comparisons": module.comparisons, "comparison_fn_name": module.comparison_fn_name}
        of_kind.setdefault(module.model_name, []).append(entry)
        of_kind[module.model_name].sort(key=lambda one: (one["index_of_arg"], one["index_within_arg"]))


def extract_logger_info(model_a, model_b, logger_cls, model_name_to_use_for_layer_names):
    """What the loggers of two models kept, by names of nodes of one of them."""
    results = {}
    for model in (model_a, model_b):
        _extract_logger_info_one_model(model, results, logger_cls)
    maybe_add_missing_fqns(results)
    return rekey_logger_info_on_node_name_of_model(results, model_name_to_use_for_layer_names)


def _add_shadow_loggers_impl(
    name_a, gm_a, name_b, gm_b, logger_cls, should_log_inputs, base_name_to_sets_of_related_ops=None, node_type_to_io_type_map=None, unmatchable_types_map=None
):
    pairs = get_matching_subgraph_pairs(gm_a, gm_b, base_name_to_sets_of_related_ops, unmatchable_types_map)
    return create_a_shadows_b(name_a, gm_a, name_b, gm_b, pairs, logger_cls, should_log_inputs, node_type_to_io_type_map)


def add_shadow_loggers(
    name_a, model_a, name_b, model_b, logger_cls, should_log_inputs=False, base_name_to_sets_of_related_ops=None, node_type_to_io_type_map=None,
    unmatchable_types_map=None,
):  # fmt: skip
    """A graph of model B in which matching operations of A run on the inputs of those of B, with loggers behind both: each alone is compared."""
    gm_a, gm_b = _traced(model_a, model_b)
    return _add_shadow_loggers_impl(
        name_a, gm_a, name_b, gm_b, logger_cls, should_log_inputs, base_name_to_sets_of_related_ops, node_type_to_io_type_map, unmatchable_types_map
    )


def extract_shadow_logger_info(model_a_shadows_b, logger_cls, model_name_to_use_for_layer_names):
    """What the loggers of `add_shadow_loggers` kept, by names of nodes of one model."""
    results = {}
    _extract_logger_info_one_model(model_a_shadows_b, results, logger_cls)
    maybe_add_missing_fqns(results)
    return rekey_logger_info_on_node_name_of_model(results, model_name_to_use_for_layer_names)


def extend_logger_results_with_comparison(results, model_name_1, model_name_2, comparison_fn, comparison_name):
    """Add to each entry of the second model the distance of its values from those of the first, under `comparison_name`."""
    for of_kinds in results.values():
        for models in of_kinds.values():
            for model_name in (model_name_1, model_name_2):
                if model_name not in models:
                    raise AssertionError(f"{model_name} has no results; there are those of {', '.join(models)}")
            for one, other in zip(models[model_name_1], models[model_name_2]):
                other[comparison_name] = [comparison_fn(a, b) for a, b in zip(one["values"], other["values"])]


# Several forms beside each part.
def _traced_with_results(model, example_inputs, tracer=None):
    tracer = QuantizationTracer([], []) if tracer is None else tracer
    mt = GraphModule(model, tracer.trace(model))
    mt._node_name_to_scope = tracer.node_name_to_scope
    OutputProp(mt).propagate(*example_inputs)
    return mt


def prepare_n_shadows_model(
    model, example_inputs, qconfig_multi_mapping, backend_config, custom_prepare_fn=None, custom_prepare_kwargs=None, custom_tracer=None
):
    """A graph of the model with a copy of each part with observers for each of its QConfigs, and loggers that are off. The results are those of the model.

    A part is what the backend has a pattern for, such as a convolution with its norm and ReLU; its first node says which QConfigs it has.
    """
    mt = _traced_with_results(model, example_inputs, custom_tracer)
    mappings = qconfig_multi_mapping.qconfig_mappings_list
    subgraphs = _subgraphs(mt, backend_config)
    qconfigs = [node_name_to_qconfig_of(mt, mapping) for mapping in mappings]
    for number, nodes in enumerate(subgraphs):
        create_n_transformed_and_logged_copies_of_subgraph(
            mt, number, nodes[-1].name, nodes, mappings, qconfigs, custom_prepare_fn, custom_prepare_kwargs
        )
    mt.recompile()
    return mt


def _prepare_n_shadows_add_loggers_model(model, example_inputs, qconfig_mapping, backend_config):
    mt = _traced_with_results(model, example_inputs)
    create_add_loggers_graph(mt, _subgraphs(mt, backend_config), qconfig_mapping, node_name_to_qconfig_of(mt, qconfig_mapping))
    mt.recompile()
    return mt


def _n_shadows_compare_weights(model, example_inputs, qconfig_mapping, backend_config):
    mappings = QConfigMultiMapping.from_list_qconfig_mapping([qconfig_mapping])
    prepared = prepare_n_shadows_model(model, example_inputs, mappings, backend_config)
    prepared(*example_inputs)
    return extract_weight_comparison(convert_n_shadows_model(prepared))


def loggers_set_enabled(model, enabled):
    """Turn all loggers of a model on or off."""
    for module in model.modules():
        if isinstance(module, OutputLogger):
            module.enabled = enabled


def loggers_set_save_activations(model, save_activations):
    """Let all loggers of a model keep values, or only distances."""
    for module in model.modules():
        if isinstance(module, OutputLogger):
            module.save_activations = save_activations


def convert_n_shadows_model(model, custom_convert_fn=None, custom_convert_kwargs=None):
    """The model, whose copies of parts with observers are converted, by convert_fx or `custom_convert_fn`."""
    convert = convert_fx if custom_convert_fn is None else custom_convert_fn
    for node in model.graph.nodes:
        if is_shadow_wrapper(node):
            setattr(model, node.target, convert(getattr(model, node.target), **(custom_convert_kwargs or {})))
    return model


def extract_results_n_shadows_model(model):
    """{"model": {"node_output": {"subgraph_0_0": […], "subgraph_0_1": […], …}}}: what the loggers kept of each form of each part; number 0 is the model's own."""
    results = {}
    _extract_logger_info_one_model(model, results, OutputLogger)
    return results


def print_comparisons_n_shadows_model(results):
    """A table of the distances of each form of each part (by the package tabulate)."""
    print_n_shadows_summary(create_results_comparison(group_results_by_subgraph(results)))
