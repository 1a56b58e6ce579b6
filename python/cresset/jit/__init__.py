"""`cresset.jit`: Python functions, modules and classes compiled to graphs."""

import importlib
import operator
import types
import typing
import warnings

from cresset import _C, _awaits
from cresset._scripting import is_scripting
from cresset._submodules import submodule

_C._load_graph_part()

from cresset._C import Future, ScriptFunction, ScriptMethod  # noqa: F401
from cresset import _rare_operators  # noqa: F401  likewise
from cresset.sparse import _operators as _sparse_operators  # noqa: F401  (scripts find operators by name)

from ._classes import interface
from ._concrete import Attribute
from ._marks import export, ignore, unused
from ._overloads import declare as _overload  # noqa: F401
from ._overloads import declare as _overload_method  # noqa: F401
from ._recursive import RecursiveScriptModule, ScriptModule
from ._script import CompilationUnit, script, script_if_tracing, script_method
from ._script import script_if_tracing as _script_if_tracing  # noqa: F401

Final = typing.Final

__all__ = [
    "Attribute", "CompilationUnit", "Error", "Final", "Future", "Limits", "RecursiveScriptModule", "ScriptFunction", "ScriptMethod", "ScriptModule",
    "ScriptWarning", "annotate", "export", "fork", "freeze", "ignore", "interface", "is_scripting", "is_tracing", "isinstance",
    "last_executed_optimized_graph", "load", "native_code_enabled", "onednn_fusion_enabled", "optimize_for_inference", "optimized_execution", "save",
    "script", "script_if_tracing", "script_method", "set_fusion_strategy", "set_native_code", "strict_fusion", "trace", "trace_module", "unused", "wait",
]  # fmt: skip

Error = _C._ScriptError
_isinstance = isinstance

# Parts that need not be there for scripts, loaded on first use.
_LAZY = {
    "fuser": "_fusers", "save": "serialization", "load": "serialization", "Limits": "_limits", "export_opnames": "_export_names",
    "trace": "_trace", "trace_module": "_trace", "TracerWarning": "_trace", "TracingCheckError": "_trace",
    "TopLevelTracedModule": "_traced_module", "TracedModule": "_traced_module", "freeze": "_freeze", "optimize_for_inference": "_freeze", "run_frozen_optimizations": "_freeze",
}  # fmt: skip

# The same under another name than it has there.
_RENAMED = {
    "_drop": "_marks.drop", "_get_trace_graph": "_trace.get_trace_graph", "_ScriptProfile": "_script_profile.ScriptProfile",
    "_register_decomposition": "_decompositions.register_decomposition",
}  # fmt: skip


class ScriptWarning(Warning):
    """Something in a script that will not do what it looks like."""


def __getattr__(name):
    if name in ("annotations", "frontend", "_trace"):
        return importlib.import_module(f"{__name__}.{name}")
    if name in _RENAMED:
        module, _, attribute = _RENAMED[name].partition(".")
        return getattr(importlib.import_module(f"{__name__}.{module}"), attribute)
    if name in _LAZY:
        return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
    return submodule(__name__, name)


def is_tracing():
    """Is a trace being recorded on this thread?"""
    return _C._is_tracing()


def annotate(the_type, the_value):
    """`the_value`; scripts take `the_type` for its type."""
    return the_value


def isinstance(obj, target_type):  # noqa: A001
    """isinstance with types as annotations write them: `isinstance(x, List[int])`, also in tuples.

    What an empty container would contain is not known: it belongs to every type of its kind, and a warning says so. RuntimeError for containers
    without contained types, and for what is neither a type nor a tuple of types.
    """
    from cresset._jit_internal import check_empty_containers

    check_empty_containers(obj)
    return _is_of(obj, target_type)


def _is_of(obj, target):
    from ._types import missing_contained_type

    if _isinstance(target, tuple):
        return any([_is_of(obj, t) for t in target])
    origin, arguments = typing.get_origin(target), typing.get_args(target)
    bare = {typing.List: "List", typing.Dict: "Dict", typing.Tuple: "Tuple", typing.Optional: "Optional", list: "list", dict: "dict", tuple: "tuple"}
    if not _isinstance(target, typing.Hashable):
        raise RuntimeError("The second argument to `torch.jit.isinstance` must be a type or a tuple of types")
    if target in bare:
        raise RuntimeError(missing_contained_type(bare[target]))
    if origin is None:
        return _isinstance(obj, target)
    if origin in (typing.Union, types.UnionType):
        return any(obj is None if t is type(None) else _is_of(obj, t) for t in arguments)
    if not _isinstance(obj, origin):
        return False
    if origin is list:
        return all(_is_of(v, arguments[0]) for v in obj)
    if origin is dict:
        return all(_is_of(k, arguments[0]) and _is_of(v, arguments[1]) for k, v in obj.items())
    if origin is tuple:
        return len(obj) == len(arguments) and all(_is_of(v, t) for v, t in zip(obj, arguments))
    return True


def _unwrap_optional(x):
    """`x`, which must not be None (AssertionError): in scripts the type without Optional."""
    assert x is not None, "Unwrapping null optional"
    return x


def unchecked_cast(the_type, the_value):
    """`the_value`; scripts take `the_type` for its type without looking."""
    return the_value


def fork(func, *args, **kwargs):
    """Run a function; scripts start it on another thread and give a Future. In Python it is called at once, and a trace has it as a fork where only
    those that wait for it use what it makes."""
    future = Future()
    if not _C._is_tracing():
        future.set_result(func(*args, **kwargs))
        return future
    _C._trace_fork_begin()
    try:
        result = func(*args, **kwargs)
        future.set_result(result)
    except BaseException:
        _C._trace_fork_failed()
        raise
    _C._trace_fork_end(future, result)
    return future


def wait(future):
    """The value of a Future, once it is there."""
    if future is None:
        raise RuntimeError("Future can't be None")
    return future.wait()


_fork, _wait = fork, wait
_awaitable, _awaitable_nowait, _awaitable_wait = _awaits._awaitable, _awaits._awaitable_nowait, _awaits._awaitable_wait
_Await = _awaits._Await


def optimized_execution(should_optimize):
    """A context manager that is accepted and has no effect: there is one way of running graphs."""
    import contextlib

    return contextlib.nullcontext()


def set_native_code(on):
    """Whether loops of numbers may run as machine code (see the guide's page on scripts). For the whole process; on at the start unless the
    environment has CRESSET_NATIVE=0."""
    _C._jit_set_native(on)


def native_code_enabled():
    """May loops of numbers run as machine code? Never where the library was built without it."""
    return _C._jit_native_enabled()


_fusion_strategy = [("STATIC", 2), ("DYNAMIC", 10)]


def set_fusion_strategy(strategy):
    """Remembered and without effect, as graphs are not fused: (kind, count) pairs of kinds "STATIC" and "DYNAMIC". Gives the one before."""
    global _fusion_strategy
    strategy = [(str(kind), operator.index(count)) for kind, count in strategy]
    for kind, _ in strategy:
        if kind not in ("STATIC", "DYNAMIC"):
            raise ValueError(f"FusionBehavior only supported 'STATIC' or 'DYNAMIC', got: {kind}")
    former, _fusion_strategy = _fusion_strategy, strategy
    return former


class strict_fusion:
    """For a block of a script: everything in it should be fused. Outside of scripts it warns and does nothing."""

    def __init__(self):
        if not is_scripting():
            warnings.warn("Only works in script mode", stacklevel=2)

    def __enter__(self):
        pass

    def __exit__(self, kind: typing.Any, value: typing.Any, trace: typing.Any):
        pass


def onednn_fusion_enabled():
    """False: there is no such fusion."""
    return False


def enable_onednn_fusion(enabled):
    """Accepted and without effect."""


def last_executed_optimized_graph():
    """The graph of the function or method of scripts that Python called last, with all calls inlined: graphs run as they are. RuntimeError when
    there was none."""
    return _C._last_executed_optimized_graph()
