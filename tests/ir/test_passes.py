"""Passes on graphs, as data: passes/<pass>/*.ir; passes/README.md explains the format."""

import re
from pathlib import Path

import pytest

import cresset
from cresset import _C

FOLDER = Path(__file__).parent / "passes"
NAMES = {
    **{name: getattr(cresset, name) for name in ("randn", "rand", "zeros", "ones", "full", "arange", "tensor", "empty", "eye", "randint")},
    **{str(d).split(".")[-1]: d for d in (cresset.float32, cresset.float64, cresset.float16, cresset.bfloat16, cresset.int32, cresset.int64,
                                          cresset.uint8, cresset.bool)},
    "inf": float("inf"),
    "nan": float("nan"),
}


class Case:
    def __init__(self, path, line, name, body):
        self.pass_name, self.name, self.place = path.parent.name, name, f"{path.name}:{line}"
        parts = re.split(r"^--- *(\w+) *$", body, maxsplit=1, flags=re.M)
        assert len(parts) == 3, f"{self.place}: a case needs one line '--- expected', '--- unchanged' or '--- raises'"
        before, self.outcome, after = parts
        assert self.outcome in ("expected", "unchanged", "raises"), f"{self.place}: unknown outcome {self.outcome}"
        head = before[: before.index("graph(")]
        self.graph, self.after = before[len(head):], after.strip("\n")
        self.flags, self.directives = set(), {}
        for directive in re.findall(r"^# *(.+)$", head, flags=re.M):
            key, colon, value = directive.partition(":")
            if colon and key in ("run", "raises", "note", "option", "before", "after"):
                self.directives.setdefault(key, []).append(value.strip())
            elif directive in ("not idempotent", "not run-equal"):
                self.flags.add(directive)
            # everything else explains the case

    def all(self, directive):
        return self.directives.get(directive, [])

    def passes(self, directive):
        return [name.strip() for value in self.all(directive) for name in value.split(",")]


def cases():
    for path in sorted(FOLDER.glob("*/*.ir")):
        text = path.read_text()
        for found in re.finditer(r"^=== *(.+?) *\n(.*?)(?=^=== |\Z)", text, flags=re.M | re.S):
            line = text[: found.start()].count("\n") + 1
            case = Case(path, line, found[1], found[2])
            yield pytest.param(case, id=f"{case.pass_name}/{path.stem}: {case.name}")


def inputs(text):
    cresset.manual_seed(0)
    return list(eval(f"({text},)" if text else "()", dict(NAMES)))


def run(graph, text):
    try:
        return None, _C._jit_run_graph(graph, inputs(text))
    except Exception as e:
        return str(e), None


@pytest.mark.parametrize("case", list(cases()))
def test_pass(case):
    graph = _C.parse_ir(case.graph)
    graph.lint()
    for name in case.passes("before"):
        _C._jit_run_pass(name, graph, [])
    original, text = graph.copy(), str(graph)
    options = [option.replace(" ", "") for option in case.all("option")]
    if case.outcome == "raises":
        with pytest.raises(Exception) as e:
            _C._jit_run_pass(case.pass_name, graph, options)
        for piece in case.after.splitlines():
            assert piece.strip() in str(e.value)
        return
    changed, *notes = _C._jit_run_pass(case.pass_name, graph, options)
    graph.lint()
    assert (changed == "changed") == (str(graph) != text), f"the pass says '{changed}':\n{graph}"
    again = original.copy()
    _C._jit_run_pass(case.pass_name, again, options)
    assert str(again) == str(graph), "the same pass on the same graph gave another text"
    if "not idempotent" not in case.flags:
        once = str(graph)
        twice = _C._jit_run_pass(case.pass_name, graph, options)
        assert str(graph) == once and twice[0] == "unchanged", f"a second run changed the graph:\n{once}\nto\n{graph}"
    for name in case.passes("after"):
        _C._jit_run_pass(name, graph, options)
        graph.lint()

    if case.outcome == "unchanged":
        assert changed == "unchanged", f"\n{graph}"
    else:
        expected = _C.parse_ir(case.after)
        difference = _C._jit_graph_difference(graph.canonicalize(), expected.canonicalize())
        assert difference is None, f"{case.place}: {difference}\n{graph}"
    for piece in case.all("note"):
        assert any(piece in note for note in notes), f"no note with '{piece}' in {notes}"
    for line in case.all("run"):
        error, _ = run(original, line)
        wanted = case.all("raises")
        assert (error is None) == (not wanted), error or f"no run raised '{wanted[0]}'"
        if wanted:
            assert any(piece in error for piece in wanted), error
        difference = _C._jit_run_difference(original, graph, inputs(line))
        assert (difference is None) == ("not run-equal" not in case.flags), f"# run: {line}\n{difference}\n{graph}"


def test_every_folder_is_a_pass():
    names = {folder.name for folder in FOLDER.iterdir() if folder.is_dir()}
    known = {row[3] for row in _C._jit_passes()}
    assert names <= known, names - known
