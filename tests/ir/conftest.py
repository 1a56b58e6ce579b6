"""The helper modules of this folder are imported by name. Every graph that a test makes is printed and read back."""

import functools
import sys
from pathlib import Path

import pytest

import cresset
from cresset import _C

sys.path.insert(0, str(Path(__file__).resolve().parent))

LONGEST = 200_000  # of a text; longer ones are tested by themselves


def graphs_of(made):
    """The graphs in a graph, function, module or unit."""
    if isinstance(made, _C.Graph):
        return [made]
    if isinstance(made, _C.CompilationUnit):
        return [f.graph for f in made.get_functions()]
    module = getattr(made, "_c", None)
    if hasattr(module, "_method_names"):
        return [m._get_method(name).graph for _, m in module.named_modules() for name in m._method_names()]
    return [made.graph] if hasattr(made, "graph") else []


def check(graph):
    text = str(graph)
    if len(text) > LONGEST:
        return
    again = _C.parse_ir(text, like=graph)
    assert str(again) == text, f"read back as\n{again}\ninstead of\n{text}"
    difference = _C._jit_graph_difference(graph, again)
    assert difference is None, f"{difference}\n{text}"


@pytest.fixture(autouse=True)
def round_trips(monkeypatch):
    def watch(owner, name):
        make = getattr(owner, name)

        @functools.wraps(make)
        def watched(*args, **kwargs):
            made = make(*args, **kwargs)
            for graph in graphs_of(args[1] if name == "_jit_run_pass" else made):
                check(graph)
            return made

        monkeypatch.setattr(owner, name, watched)

    for name in ("script", "trace", "trace_module", "load"):
        watch(cresset.jit, name)
    watch(cresset.jit, "CompilationUnit")
    watch(_C, "_jit_run_pass")
