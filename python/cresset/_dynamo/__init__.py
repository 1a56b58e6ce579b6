"""PyTorch's name for what captures Python code: see `cresset.compiler`, whose functions these are."""

import dataclasses as _dataclasses
import importlib as _importlib

from cresset._capture import backends as _backends
from cresset.compiler import (  # noqa: F401
    OptimizedModule, allow_in_graph, assume_constant_result, compile as _compile, compiled_of as _compiled_of, disable, is_compiling, list_backends, register_backend, reset, set_stance,
)  # fmt: skip


def __getattr__(name):
    if name in ("ExportResult", "export"):
        return getattr(_importlib.import_module(f"{__name__}._export"), name)
    if name in ("utils", "config", "eval_frame", "exc", "testing"):
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def is_dynamo_supported():
    """Can compile() capture code in this interpreter? Always: it needs nothing of the interpreter's insides."""
    return True


def graph_break(msg=""):
    """A place where a capture stops: what calls it stays eager."""


disable(graph_break)


def optimize(backend="inductor", *, nopython=False, dynamic=None, disable=False, **kwargs):
    """A decorator that compiles: `compile` by its older name."""
    return lambda fn: _compile(fn, backend=backend, fullgraph=nopython, dynamic=dynamic, disable=disable)


def run(fn=None):
    """The function itself: captures that are there serve it, where it is a compiled one."""
    return fn


def disallow_in_graph(fn):
    """The function, which no graph calls."""
    for one in fn if isinstance(fn, (list, tuple)) else (fn,):
        disable(one)
    return fn


forbid_in_graph = disallow_in_graph


def mark_dynamic(t, index, **kwargs):
    """A dimension whose size may change: engines take all sizes."""


maybe_mark_dynamic = mark_static = mark_static_address = mark_dynamic


@_dataclasses.dataclass
class ExplainOutput:
    """What explain() found: the graphs, and why code is in none."""

    graphs: list
    graph_count: int
    graph_break_count: int
    break_reasons: list
    op_count: int
    ops_per_graph: list
    out_guards: list

    def __str__(self):
        lines = [f"Graph Count: {self.graph_count}", f"Graph Break Count: {self.graph_break_count}", f"Op Count: {self.op_count}", "Break Reasons:"]
        lines += [f"  Break Reason {i + 1}:\n    Reason: {reason}" for i, reason in enumerate(self.break_reasons)]
        for i, ops in enumerate(self.ops_per_graph):
            lines += [f"Ops per Graph:\n  Ops {i + 1}:", *(f"    {op}" for op in ops)]
        return "\n".join(lines)


def explain(f, *extra_args, **extra_kwargs):
    """explain(f)(*args): the ExplainOutput of that call, which runs."""

    def inner(*args, **kwargs):
        given = _backends.lookup("eager")
        compiled = _compile(f, backend=given)
        compiled(*args, **kwargs)
        entries = _compiled_of(compiled).entries
        modules = [e.capture.module for e in entries if e.capture.module is not None]
        problems = [str(e.capture.problem) for e in entries if e.capture.problem is not None]
        ops = [[n.target for n in m.graph.nodes if n.op.startswith("call_")] for m in modules]
        reasons = [r for e in entries for r in e.capture.guard_reasons]
        return ExplainOutput(modules, len(modules), len(problems), problems, sum(map(len, ops)), ops, reasons)

    return inner(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else inner
