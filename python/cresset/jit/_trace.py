"""Tracing: a function or module runs once on example inputs, and every operator it calls is recorded as a node of a graph."""

import inspect
import warnings

import cresset
from cresset._C import TracerWarning
from cresset.jit import _trace_check, _traced_module
from cresset.jit._trace_check import TracingCheckError

from .. import _C
from . import _state
from ._record import parameter_names, record
from ._traced_module import TopLevelTracedModule, TracedModule  # noqa: F401  (PyTorch has them here)

__all__ = ["trace", "trace_module", "TracerWarning", "TracingCheckError", "TracingState"]


def _ignore_lib_warnings():
    """Warnings that start inside of the library are not shown: what it asks of sizes is checks of arguments, users can do nothing about it."""
    warnings.filterwarnings("ignore", category=TracerWarning, module=r"cresset\.(?!jit)")


# For programs that reset the filters (a test runner does) and want this one back.
TracerWarning.ignore_lib_warnings = staticmethod(_ignore_lib_warnings)
_ignore_lib_warnings()


def trace(
    func,
    example_inputs=None,
    optimize=None,
    check_trace=True,
    check_inputs=None,
    check_tolerance=1e-5,
    strict=True,
    _force_outplace=False,
    _module_class=None,
    _compilation_unit=None,
    example_kwarg_inputs=None,
    _store_inputs=True,
):
    """Run `func` (a function or module) on example inputs and return what it did as a function or module with a graph.

    Python's control flow and numbers are part of the recording as they were; sizes of tensors stay variable. With `check_trace` the
    trace is made again and its results are compared, within `check_tolerance`. `strict=False` allows dictionaries and lists as results.
    `_force_outplace` records operators that write as those that give a new tensor; writes into parts of a tensor are lost then, with a warning.
    """
    del optimize, _module_class, _compilation_unit, _store_inputs
    if not _state._enabled:
        return func
    options = {"check_trace": check_trace, "check_inputs": check_inputs, "check_tolerance": check_tolerance, "strict": strict}
    module = _module_behind(func)
    if module is not None:
        if isinstance(module, cresset.jit.ScriptModule):
            warnings.warn(
                "The input to trace is already a ScriptModule, tracing it is a no-op. Returning the object as is.", stacklevel=2
            )
            return module
        inputs = _positional(module.forward, example_inputs, example_kwarg_inputs)
        if check_inputs is not None:
            options["check_inputs"] = [{"forward": i} for i in check_inputs]
        return trace_module(module, {"forward": inputs}, _force_outplace=_force_outplace, **options)
    if isinstance(getattr(func, "__self__", None), cresset.nn.Module):
        raise AttributeError("trace doesn't support compiling individual module's functions.\nPlease use trace_module")
    inputs = _positional(func, example_inputs, example_kwarg_inputs)
    traced = _function_from_trace(func, inputs, strict, _force_outplace)
    if check_trace:
        for some in [inputs] if check_inputs is None else [_as_tuple(i) for i in check_inputs]:
            _trace_check.check(
                "",
                traced,
                func,
                some,
                lambda again: _function_from_trace(func, again, strict, _force_outplace),
                check_tolerance,
            )
    return traced


def trace_module(
    mod,
    inputs,
    optimize=None,
    check_trace=True,
    check_inputs=None,
    check_tolerance=1e-5,
    strict=True,
    _force_outplace=False,
    _module_class=None,
    _compilation_unit=None,
    example_inputs_is_kwarg=False,
    _store_inputs=True,
):
    """Trace methods of a module: `inputs` gives the example inputs of each by its name. Returns a module with their graphs."""
    del optimize, _module_class, _compilation_unit, _store_inputs
    if not _state._enabled:
        return mod
    if not isinstance(mod, cresset.nn.Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    inputs = {
        name: _positional(getattr(mod, name), None, i) if example_inputs_is_kwarg else _as_tuple(i) for name, i in inputs.items()
    }
    traced = _traced_module.traced(mod, inputs, strict, _force_outplace)
    if check_trace:
        for some in [inputs] if check_inputs is None else check_inputs:
            for name, given in some.items():
                _trace_check.check(
                    name,
                    getattr(traced, name),
                    getattr(mod, name) if name != "forward" else mod,
                    _as_tuple(given),
                    lambda again, name=name: getattr(_traced_module.traced(mod, {name: again}, strict, _force_outplace), name),
                    check_tolerance,
                )
    return traced


def _module_behind(func):
    """The module, also when its bound `forward` is given."""
    if isinstance(func, cresset.nn.Module):
        return func
    owner = getattr(func, "__self__", None)
    if isinstance(owner, cresset.nn.Module) and getattr(func, "__name__", "") == "forward":
        return owner
    return None


def _as_tuple(inputs):
    return (inputs,) if isinstance(inputs, (cresset.Tensor, dict)) else tuple(inputs)


def _positional(func, example_inputs, example_kwarg_inputs):
    """The example inputs in the order of the parameters."""
    if example_kwarg_inputs is None:
        if example_inputs is None:
            raise RuntimeError("example_kwarg_inputs should be a dict when example_inputs is None")
        return _as_tuple(example_inputs)
    if not isinstance(example_kwarg_inputs, dict):
        raise RuntimeError("example_kwarg_inputs should be a dict")
    bound = inspect.signature(func).bind(**example_kwarg_inputs)
    if list(bound.arguments) != list(inspect.signature(func).parameters)[: len(bound.arguments)] or bound.kwargs:
        raise RuntimeError(
            "trace: the inputs of a trace have places; example_kwarg_inputs left one out that has others behind it, or names one that "
            "can only be given by keyword. Trace a function that takes the inputs in order."
        )
    return bound.args


def _function_from_trace(func, inputs, strict, force_outplace=False):
    graph = record(func, parameter_names(func, len(inputs)), inputs, strict, force_outplace=force_outplace)
    name = getattr(func, "__name__", type(func).__name__)
    traced = _C._create_function_from_graph("_lambda" if name == "<lambda>" else name, graph)
    _C._trace_set_schema(traced)
    return traced


class TracingState:
    """The trace that records now, as libraries see it: nodes carry the names of the scopes that are open."""

    push_scope, pop_scope = staticmethod(_C._trace_push_scope), staticmethod(_C._trace_pop_scope)


def get_trace_graph(f, args=(), kwargs=None, strict=True, _force_outplace=False, return_inputs=False, _return_inputs_states=False):
    """(graph, result) of a function or module, flat; parameters and buffers are inputs behind the arguments. What libraries that count do."""
    if _return_inputs_states:
        raise NotImplementedError("_get_trace_graph: _return_inputs_states is part of exporting to ONNX, which is not supported.")
    args = _as_tuple(args)
    state = list(f.state_dict(keep_vars=True).values()) if isinstance(f, cresset.nn.Module) else []
    results = []

    def call(*inputs):
        results.append(f(*inputs[: len(args)], **(kwargs or {})))
        return results[0]

    inputs = (*args, *{id(t): t for t in state}.values())
    graph = record(call, parameter_names(None, len(inputs)), inputs, strict, force_outplace=_force_outplace)
    return (graph, results[0], inputs) if return_inputs else (graph, results[0])
