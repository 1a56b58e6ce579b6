"""torch._dynamo.export: a function or module as an fx.GraphModule that is called as it is."""

import inspect
from typing import NamedTuple

import cresset
from cresset import nn
from cresset.export import export as _export_program

__all__ = ["ExportResult", "export"]


class ExportResult(NamedTuple):
    """The module, which checks its inputs when it is called, and what it checks: nothing is listed."""

    graph_module: cresset.fx.GraphModule
    guards: frozenset


class _Called(nn.Module):
    """A function as a module with its signature."""

    def __init__(self, function):
        super().__init__()
        self.forward = function


def _source(node, called):
    """[(name of the call, the class of the layer or the function)] that a node comes from, or None."""
    for key, (_, kind) in reversed(list((node.meta.get("nn_module_stack") or {}).items())):
        cls = _layer(kind)
        if cls is not None:
            return [(key, cls)]
    name = (node.meta.get("torch_fn") or (None,))[0]
    return [(name, called[name])] if name in called else None


def _layer(kind):
    """The class of a layer of the package by its name; None for others."""
    if not isinstance(kind, str):
        return kind if kind.__module__.startswith("cresset.nn.modules") else None
    module, _, name = kind.rpartition(".")
    return getattr(nn, name, None) if ".nn.modules." in f".{module}." else None


def export(f, *extra_args, aten_graph=False, pre_dispatch=False, decomposition_table=None, tracing_mode="symbolic", dynamic_shapes=None, same_signature=True, **options):
    """export(f)(*args, **kwargs) is the ExportResult of a call of a function or module: an fx.GraphModule with the operators that the call runs, which takes the
    same arguments and gives the same structure. Tensors of a module are attributes by their paths; what is no tensor is a constant, and sizes are those of the
    call, unless dynamic_shapes says otherwise: calls with others raise RuntimeError.

    aten_graph: operators write nothing, but to buffers at the end. Without it they are those that the program calls, operators in both cases.
    decomposition_table: {overload: function} of what comes apart, with aten_graph. dynamic_shapes: as in torch.export.export. Nodes have in
    meta["source_fn_stack"] which layer of the package or which of its functions they come from (fx.passes.utils.source_matcher_utils). AssertionError for a table
    without aten_graph.
    """
    if decomposition_table is not None and not aten_graph:
        raise AssertionError("Specifying a decomposition_table table or tracing mode is illegal without setting aten_graph=True")
    del pre_dispatch, tracing_mode, same_signature

    def inner(*args, **kwargs):
        module = f if isinstance(f, nn.Module) else _Called(f)
        program = _export_program(module, args, kwargs, dynamic_shapes=dynamic_shapes)
        called = program.graph_module.meta["called"]
        if aten_graph:
            program = program.run_decompositions(decomposition_table or {})
        made = program.module()
        for node in made.graph.nodes:
            source = _source(node, called) if node.op == "call_function" else None
            if source is not None:
                node.meta["source_fn_stack"] = source
        return ExportResult(made, frozenset())

    if extra_args:
        inspect.signature(f.forward if isinstance(f, nn.Module) else f)  # TypeError for what has none
        return inner(*extra_args, **options)
    return inner
