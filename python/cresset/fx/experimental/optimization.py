"""Rewrites of traced models for inference: batch norms become parts of the layers before them, dropout goes away."""

import copy

from cresset import nn
from cresset.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

from .._symbolic_trace import Tracer, symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule

__all__ = ["extract_subgraph", "fuse", "matches_module_pattern", "optimize_for_inference", "remove_dropout", "replace_node_module"]

# Classes of two layers of which the second is computed by the first, and the function that makes one layer of both.
_FUSED = {
    (nn.Conv1d, nn.BatchNorm1d): fuse_conv_bn_eval,
    (nn.Conv2d, nn.BatchNorm2d): fuse_conv_bn_eval,
    (nn.Conv3d, nn.BatchNorm3d): fuse_conv_bn_eval,
    (nn.Linear, nn.BatchNorm1d): fuse_linear_bn_eval,
}


def matches_module_pattern(pattern, node, modules):
    """Does `node` call a module of the last class in `pattern`, with the result of the class before it as its first argument, and so on?"""
    for kind in reversed(tuple(pattern)):
        if getattr(node, "op", None) != "call_module" or type(modules.get(node.target)) is not kind:
            return False
        node = node.args[0] if node.args else None
    return True


def replace_node_module(node, modules, new_module):
    """Put a module in the place of the one that `node` calls, in the dict of modules by name and in its parent there."""
    parent, _, name = node.target.rpartition(".")
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model, inplace=False, no_trace=False):
    """A graph module in which layers compute the batch norms that follow them. The model is in evaluation mode.

    A layer whose result is used elsewhere too stays as it is, and so does a norm without running statistics. inplace: the model's own
    layers are replaced. no_trace: the model is a graph module already.
    """
    if not inplace:
        model = copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules = dict(traced.named_modules())
    graph = copy.deepcopy(traced.graph)
    for pattern, fused in _FUSED.items():
        for node in graph.nodes:
            if not matches_module_pattern(pattern, node, modules) or len(node.args[0].users) > 1:
                continue
            layer, norm = modules[node.args[0].target], modules[node.target]
            if not norm.track_running_stats:
                continue
            replace_node_module(node.args[0], modules, fused(layer, norm))
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
    return GraphModule(traced, graph)


def remove_dropout(model):
    """A graph module without the model's Dropout layers."""
    traced = symbolic_trace(model)
    modules = dict(traced.named_modules())
    for node in traced.graph.nodes:
        if node.op == "call_module" and isinstance(modules[node.target], nn.Dropout):
            node.replace_all_uses_with(node.args[0])
            traced.graph.erase_node(node)
    traced.delete_all_unused_submodules()
    traced.recompile()
    return traced


def optimize_for_inference(model, pass_config=None, tracer=Tracer):
    """A graph module for inference: layers compute the batch norms that follow them, and dropout is gone. The model is in evaluation mode.

    `pass_config` leaves one out: `{"conv_bn_fuse": False}` or `{"remove_dropout": False}`; `mkldnn_layout_optimize` is taken and changes nothing, since kernels
    choose layouts themselves. RuntimeError for other names. `tracer`: the class that traces the model.
    """
    passes = {"conv_bn_fuse": True, "remove_dropout": True, "mkldnn_layout_optimize": True} | (pass_config or {})
    if unknown := passes.keys() - {"conv_bn_fuse", "remove_dropout", "mkldnn_layout_optimize"}:
        raise RuntimeError(f"optimize_for_inference: there is no pass {sorted(unknown)[0]!r}.")
    model = copy.deepcopy(model)
    traced = GraphModule(model, tracer().trace(model))
    if passes["conv_bn_fuse"]:
        traced = fuse(traced, no_trace=True)
    return remove_dropout(traced) if passes["remove_dropout"] else traced


def extract_subgraph(orig_module, nodes, inputs, outputs):
    """A graph module of these nodes, whose arguments are the nodes `inputs` and whose result is the list of `outputs`."""
    graph, copies = Graph(), {}
    for node in inputs:
        copies[node] = graph.placeholder(node.name)
    for node in nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output([copies[node] for node in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)
