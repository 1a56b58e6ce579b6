"""Rewrites by example: a small graph, and what stands in its place. C++ finds and replaces; Python is asked only by guards."""

from __future__ import annotations

import itertools
import re

from cresset import _C


class Pattern:
    """A rewrite; pattern() makes it. Called with a graph it rewrites it in place and gives the number of rewrites."""

    def __init__(self, before: str, after: str, *, guard=None, summary: str = ""):
        self.before, self.after, self.guard = _graph(before), _graph(after, _inputs_of(_graph(before))), guard
        self.summary = summary or (guard.__doc__ or "").split("\n")[0] if guard else summary
        self._rules = _C._lowering_pattern(self.before, self.after, guard)

    def __call__(self, graph) -> int:
        return _C._lowering_pattern_run(self._rules, graph)

    def matches(self, graph) -> list[dict[str, object]]:
        """Where the first graph occurs: the values by their names in it. The guard is not asked."""
        return find(self.before, graph)

    def __repr__(self) -> str:
        return f"Pattern({self.before!r}, {self.after!r})"


def pattern(before: str, after: str, *, guard=None, summary: str = "") -> Pattern:
    """A rewrite of one small graph by another with the same inputs and results.

        gelu = lowering.pattern("%y = aten::gelu(%x, %mode)", "%h = aten::relu(%x)\\nreturn (%h)", guard=lambda m: m["x"].type().dim() == 2)
        gelu(graph)                                       # how many rewrites
        lowering.register_pass("gelu", gelu, after="peephole")

    Both are IR text: a whole graph, or its nodes alone, where values that no node defines are the inputs in the order of their first use, and
    the result is what `return (…)` names or the last node gives. The replacement has the inputs of the pattern. guard(values) is asked for each
    match with the graph's values by the pattern's names. A match is left alone where the meaning would change: see the rules of rewriting in
    docs/guide/lowering.md. RuntimeError for text that is no graph.
    """
    return Pattern(before, after, guard=guard, summary=summary)


def find(before: str, graph) -> list[dict[str, object]]:
    """Where a small graph occurs in a graph: for each match, in the order of the program, the values by their names in it."""
    return _C._lowering_pattern_matches(_graph(before), graph)


_VALUE = re.compile(r"%[A-Za-z0-9_.]+")


def _inputs_of(graph: str) -> list[str]:
    return _VALUE.findall(graph[: graph.index("):")])


def _graph(text: str, inputs: list[str] | None = None) -> str:
    if text.lstrip().startswith("graph("):
        return text
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    results, defined, free = None, [], []
    if lines and lines[-1].startswith("return"):
        results = lines.pop()
    nodes = []
    for line in lines:
        left, equals, right = line.partition(" = ")
        if not equals:
            raise ValueError(f"pattern: a node '%y = kind(%x)' was required; {line!r} was given.")
        free += [v for v in _VALUE.findall(re.sub(r"\[[^\]]*\]", "", right)) if v not in defined]
        new = _VALUE.findall(left)
        defined += new
        nodes.append(f"  {left}{equals}{right}")
    if not nodes:
        raise ValueError("pattern: at least one node was required.")
    if results is None:
        last = list(itertools.chain.from_iterable(_VALUE.findall(line.partition(" = ")[0]) for line in lines[-1:]))
        results = f"return ({', '.join(last)})"
    given = inputs if inputs is not None else list(dict.fromkeys(free))
    return "graph({}):\n{}\n  {}\n".format(", ".join(given), "\n".join(nodes), results)
