"""Quantization of graphs: a model is traced, fused, watched and converted without changes to its code (docs/guide/quantization.md)."""

import copy

import cresset
from cresset.ao.nn.quantized import FloatFunctional, FXFloatFunctional
from cresset.fx import GraphModule
from cresset.fx.graph_module import _USER_PRESERVED_ATTRIBUTES_KEY

from .backend_config import BackendConfig, get_tensorrt_backend_config  # noqa: F401
from .fx.convert import convert
from .fx.custom_config import ConvertCustomConfig, FuseCustomConfig, PrepareCustomConfig
from .fx.fuse import fuse
from .fx.graph_module import ObservedGraphModule  # noqa: F401
from .fx.prepare import prepare
from .fx.tracer import QuantizationTracer, Scope, ScopeContextManager  # noqa: F401
from .qconfig_mapping import QConfigMapping  # noqa: F401

__all__ = ["fuse_fx", "prepare_fx", "prepare_qat_fx", "convert_fx", "convert_to_reference_fx"]


def attach_preserved_attrs_to_model(model, preserved_attrs):
    """Attributes of the model that copies of it keep, too."""
    model.meta[_USER_PRESERVED_ATTRIBUTES_KEY] = copy.copy(preserved_attrs)
    for name, value in preserved_attrs.items():
        setattr(model, name, value)


def _preserved(model, custom):
    return {name: getattr(model, name) for name in custom.preserved_attributes if hasattr(model, name)}


def _of(config, kind):
    if config is None:
        return kind()
    return kind.from_dict(config) if isinstance(config, dict) else config


def _check_is_graph_module(model):
    if not isinstance(model, GraphModule):
        raise ValueError(
            "input model must be a GraphModule, Got type:" + str(type(model)) + " Please make sure to follow the tutorials.",
        )


def _attach_meta_to_node_if_not_exist(model):
    for node in model.graph.nodes:
        if not hasattr(node, "meta"):
            node.meta = {}


def _swap_ff_with_fxff(model):
    """Functions of modules (FloatFunctional) as graphs take them."""
    for name, child in list(model.named_children()):
        if isinstance(child, FloatFunctional):
            setattr(model, name, FXFloatFunctional())
        else:
            _swap_ff_with_fxff(child)


def _traced(model, custom):
    """(graph module, {node: (name of its module, class of it)})"""
    _swap_ff_with_fxff(model)
    names = [*custom.non_traceable_module_names, *custom.standalone_module_names]
    classes = [*custom.non_traceable_module_classes, *custom.standalone_module_classes, *(kind for kinds in custom.float_to_observed_mapping.values() for kind in kinds)]
    tracer = QuantizationTracer(names, classes)
    made = GraphModule(model, tracer.trace(model))
    _attach_meta_to_node_if_not_exist(made)
    return made, tracer.node_name_to_scope


def _fuse_fx(model, is_qat, fuse_custom_config=None, backend_config=None):
    _check_is_graph_module(model)
    return fuse(model, is_qat, fuse_custom_config, backend_config)


def fuse_fx(model, fuse_custom_config=None, backend_config=None):
    """A graph module of the model in evaluation, whose layers are fused as the backend computes them."""
    custom = _of(fuse_custom_config, FuseCustomConfig)
    kept = _preserved(model, custom)
    traced = GraphModule(model, cresset.fx.Tracer().trace(model))
    _attach_meta_to_node_if_not_exist(traced)
    made = _fuse_fx(traced, False, custom, backend_config)
    attach_preserved_attrs_to_model(made, kept)
    return made


def _prepare_fx(model, qconfig_mapping, is_qat, example_inputs, prepare_custom_config=None, _equalization_config=None, backend_config=None,
                is_standalone_module=False):  # fmt: skip
    custom = _of(prepare_custom_config, PrepareCustomConfig)
    kept = _preserved(model, custom)
    traced, scopes = _traced(model, custom)
    fused = _fuse_fx(traced, is_qat, FuseCustomConfig().set_preserved_attributes(custom.preserved_attributes), backend_config)
    made = prepare(fused, qconfig_mapping, is_qat, scopes, example_inputs, custom, _equalization_config, backend_config, is_standalone_module,
                   prepare_standalone=_prepare_standalone_module_fx)  # fmt: skip
    attach_preserved_attrs_to_model(made, kept)
    return made


def _prepare_standalone_module_fx(model, qconfig_mapping, is_qat, example_inputs, prepare_custom_config=None, backend_config=None):
    return _prepare_fx(model, qconfig_mapping, is_qat, example_inputs, prepare_custom_config, backend_config=backend_config, is_standalone_module=True)


def prepare_fx(model, qconfig_mapping, example_inputs, prepare_custom_config=None, _equalization_config=None, backend_config=None):
    """A graph module of the model with observers, which learn the ranges of values while it runs on some batches.

    `qconfig_mapping`: what is quantized, and how. `prepare_custom_config`: modules that are not traced, attributes to keep, ….
    """
    return _prepare_fx(model, qconfig_mapping, False, example_inputs, prepare_custom_config, _equalization_config, backend_config)


def prepare_qat_fx(model, qconfig_mapping, example_inputs, prepare_custom_config=None, backend_config=None):
    """A graph module of the model that is trained to be quantized."""
    return _prepare_fx(model, qconfig_mapping, True, example_inputs, prepare_custom_config, backend_config=backend_config)


def _convert_fx(graph_module, is_reference, convert_custom_config=None, is_standalone_module=False, _remove_qconfig=True, qconfig_mapping=None,
                backend_config=None, is_decomposed=False, keep_original_weights=False):  # fmt: skip
    custom = _of(convert_custom_config, ConvertCustomConfig)
    _check_is_graph_module(graph_module)
    kept = _preserved(graph_module, custom)
    made = convert(
        graph_module, is_reference, custom, is_standalone_module, _remove_qconfig_flag=_remove_qconfig, qconfig_mapping=qconfig_mapping,
        backend_config=backend_config, is_decomposed=is_decomposed, keep_original_weights=keep_original_weights,
    )  # fmt: skip
    attach_preserved_attrs_to_model(made, kept)
    return made


def convert_fx(graph_module, convert_custom_config=None, _remove_qconfig=True, qconfig_mapping=None, backend_config=None, keep_original_weights=False):
    """The quantized form of a graph module with observers: layers of `ao.nn.quantized`, and operators of `torch.ops.quantized`."""
    return _convert_fx(
        graph_module, False, convert_custom_config, _remove_qconfig=_remove_qconfig, qconfig_mapping=qconfig_mapping, backend_config=backend_config,
        keep_original_weights=keep_original_weights,
    )  # fmt: skip


def _convert_standalone_module_fx(graph_module, is_reference=False, convert_custom_config=None):
    return _convert_fx(graph_module, is_reference, convert_custom_config, is_standalone_module=True)


def convert_to_reference_fx(graph_module, convert_custom_config=None, _remove_qconfig=True, qconfig_mapping=None, backend_config=None):
    """The same in real numbers: what a backend computes in whole numbers stands between quantize and dequantize."""
    return _convert_fx(
        graph_module, True, convert_custom_config, _remove_qconfig=_remove_qconfig, qconfig_mapping=qconfig_mapping, backend_config=backend_config,
    )  # fmt: skip
