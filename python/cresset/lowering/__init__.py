"""The lowering phase: graphs and modules through passes, one by one, visible and verified.

    lowered = cresset.lowering.lower(module)
    print(lowered.graph)
    for step in lowered.steps: print(step.name, step.changed, step.seconds, step.notes)
"""

from __future__ import annotations

import dataclasses

from cresset import _C

_C._load_graph_part()

from . import logging
from cresset.export import ExportedProgram
from cresset.export._load import ir_module

from ._input import Input
from ._pattern import Pattern, find, pattern

__all__ = ["Difference", "Disagreement", "Input", "Lowered", "Note", "Pass", "Pattern", "Step", "bisect", "diff", "eliminate_dead_code", "find", "freeze", "logging", "lower",
           "lower_graph", "option_names", "passes", "pattern", "pipeline", "register_pass", "run_pass", "run_passes", "unregister_pass"]


@dataclasses.dataclass(frozen=True)
class Pass:
    name: str
    phase: str
    summary: str
    command_name: str


@dataclasses.dataclass(frozen=True)
class Note:
    """Something a pass did that its user should know: a removed check, an assumption."""

    level: str
    place: str  # "file:line:column", or empty
    text: str

    def __str__(self) -> str:
        return f"{self.level}: {self.place + ': ' if self.place else ''}{self.text}"


@dataclasses.dataclass(frozen=True)
class Step:
    index: int
    name: str
    changed: bool
    seconds: float
    notes: tuple[Note, ...]


@dataclasses.dataclass(frozen=True)
class Lowered:
    graph: object
    parameters: list  # values of the graph's last inputs
    steps: tuple[Step, ...]
    inputs: tuple[Input | None, ...] = ()  # what the graph was typed with

    def __call__(self, *inputs):
        """Runs the graph on the true inputs; the parameters are appended. ValueError for inputs that are not as specified."""
        for i, (spec, value) in enumerate(zip(self.inputs, inputs)):
            if spec is not None and (misfit := spec.misfit(value)):
                raise ValueError(f"input {i}: {misfit}")
        results = _C._jit_run_graph(self.graph, [*inputs, *self.parameters])
        return results[0] if len(results) == 1 else tuple(results)


@dataclasses.dataclass(frozen=True)
class Disagreement:
    index: int
    name: str
    what: str


@dataclasses.dataclass(frozen=True)
class Difference:
    """Two graphs beside each other; its text has a line for each node, with - and + where they differ."""

    equal: bool
    text: str
    same: int  # nodes that match, and so on
    changed: int
    gone: int
    new: int

    def __str__(self) -> str:
        return self.text


def diff(before, after) -> Difference:
    """How two graphs differ, node by node. Names of values do not count."""
    return Difference(*_C._lowering_diff(before, after))


def passes() -> list[Pass]:
    """All passes there are."""
    return [Pass(*row) for row in _C._jit_passes()]


def pipeline() -> list[str]:
    """The names of the passes of the lowering phase, in their order."""
    return _C._jit_lowering_passes()


def option_names() -> list[str]:
    """Names of the keyword arguments that lower(), run_pass() and bisect() hand to passes."""
    return _C._lowering_options()


def _text(value) -> str:
    if isinstance(value, bool):
        return str(int(value))
    return ",".join(value) if isinstance(value, (list, tuple)) else str(value)


def _inputs(inputs) -> tuple[Input | None, ...]:
    return tuple(None if one is None else Input.of(one) for one in inputs or ())


def _settings(options: dict, *, inputs=(), **settings) -> dict:
    if inputs:
        settings["inputs"] = [None if one is None else one.text() for one in inputs]
        settings["input_devices"] = [None if one is None else one.device for one in inputs]
    settings["options"] = [f"{name}={_text(value)}" for name, value in options.items() if value is not None]
    return settings


def _lowered(result, inputs=()) -> Lowered:
    graph, parameters, reports = result
    steps = tuple(Step(index, name, changed, seconds, tuple(Note(*n) for n in notes)) for index, name, changed, seconds, notes in reports)
    return Lowered(graph, parameters, steps, tuple(inputs))


def lower(target, method: str = "forward", *, inputs=None, only=None, stop_after: str | None = None, dump_before=None, dump_after=None, check_with=None, verify: bool = True,
          **options) -> Lowered:
    """Lowers a module's method, or a graph, which is changed in place. A module stays as it is, and so does an ExportedProgram.

    inputs: an Input (or what Input() takes, or a tensor, or None: nothing known) for each true input; the graph is typed with them, and passes
    rely on it.
    only, stop_after: which passes run. check_with: inputs on which the graph is run before and behind each pass; another answer raises.
    dump_before, dump_after: passes around which graphs are logged at level graph. Other keywords are options of passes (option_names()).
    """
    if isinstance(target, ExportedProgram):
        target = ir_module(target)
    specs = _inputs(inputs)
    settings = _settings(options, inputs=specs, only=only, stop_after=stop_after, dump_before=dump_before, dump_after=dump_after, check_with=check_with, verify=verify)
    return _lowered(_C._lowering_run(target, method, settings, None), specs)


def run_passes(target, names, method: str = "forward", *, inputs=None, **options) -> Lowered:
    """Runs passes by name, in this order, on a graph (in place) or on a module's method.

    Of a module, "freeze-module" and "lower-graph" may stand among the names, so that the pair of the fallback works by name:
    ["notate-module-for-fallback", "freeze-module", "lower-graph", "mark-nodes-for-fallback"]. The module itself stays as it is.
    """
    specs = _inputs(inputs)
    return _lowered(_C._lowering_run(target, method, _settings(options, inputs=specs), list(names)), specs)


def run_pass(name: str, graph, *, inputs=None, **options) -> Step:
    """Runs one pass on a graph, in place."""
    return _lowered(_C._lowering_run(graph, "", _settings(options, inputs=_inputs(inputs)), [name])).steps[0]


def eliminate_dead_code(graph, *, with_aliases: bool = True, delete_effects: bool = False, live_values=None) -> bool:
    """Removes what nobody needs from a graph, in place; True when something went.

    with_aliases=False is quicker and keeps every write. delete_effects: nodes whose results nobody needs go although they print, raise or have
    other effects; writes that somebody may see stay. live_values(values) is given the set of values that are needed before something goes, once
    for each time that the graph is marked.
    """
    return _C._lowering_eliminate_dead_code(graph, with_aliases, delete_effects, live_values)


def bisect(graph, inputs, names=None, **options) -> Disagreement | None:
    """The first pass that changes the answer of the graph on these inputs; None when all agree. The graph stays as it is."""
    found = _C._lowering_bisect(graph, inputs, _settings(options), names)
    return Disagreement(*found) if found else None


def freeze(module, preserved=()):
    """A module of which attributes that nobody writes are constants."""
    return _C._lowering_freeze(module, list(preserved))


def lower_graph(module, method: str = "forward"):
    """(graph, values): the method's graph with attributes as inputs behind the true ones, and their values."""
    return _C._lowering_lower_graph(module, method)


def register_pass(name: str, function, *, before: str = "", after: str = "", phase: str = "user", summary: str = "", device: str = "") -> None:
    """Registers a pass: function(graph), which may say with True or False whether it changed the graph, or a Pattern, or a list of those, which
    run without Python. before or after names a pass of the pipeline beside which it stands; device limits it to the pipelines of that device."""
    patterns = [function] if isinstance(function, Pattern) else function if isinstance(function, (list, tuple)) else None
    if patterns is not None:
        summary = summary or "; ".join(p.summary for p in patterns if p.summary)
        _C._lowering_register_pass(name, tuple(p._rules for p in patterns), phase, summary, device, before, after)
        return
    _C._lowering_register_pass(name, function, phase, summary or (function.__doc__ or "").split("\n")[0], device, before, after)


def unregister_pass(name: str) -> bool:
    return _C._lowering_unregister_pass(name)
