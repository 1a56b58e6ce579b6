"""Types that lie: with trust_types=0 no pass relies on what the types of a graph's inputs say. Cases are those of passes/*/*.ir."""

import re

import pytest
from test_passes import cases, inputs

from cresset import _C

# What the inputs are said to be, and what that becomes.
_TYPE = re.compile(r"\b(Byte|Int|Long|Half|Float|Double|Bool|BFloat16)\(([^()]*)\)")
_OTHER = {"Float": "Long", "Double": "Bool", "Half": "Double", "BFloat16": "Float", "Long": "Float", "Int": "Double", "Byte": "Half", "Bool": "Float"}


# Rounds as the dtype does when nobody says that it is a half.
_ROUNDS = "halves are computed in float"


def lie(found):
    word, inside = found.groups()
    sizes = [part for part in inside.split(", ") if re.fullmatch(r"\d+|\*", part)]
    return f"{_OTHER[word]}({', '.join([*(str(7 + i) for i in range(len(sizes))), '11'])})"


def refined():
    for parameter in cases():
        case = parameter.values[0]
        header = case.graph[: case.graph.index("):")]
        if case.name != _ROUNDS and case.outcome != "raises" and case.all("run") and "not run-equal" not in case.flags and _TYPE.search(header):
            yield pytest.param(case, header, id=parameter.id)


@pytest.mark.parametrize("case, header", list(refined()))
@pytest.mark.parametrize("told", ["lies", "hints"])
def test_answers_stay(case, header, told):
    original = _C.parse_ir(case.graph)
    for name in case.passes("before"):
        _C._jit_run_pass(name, original, [])
    graph = _C.parse_ir(_TYPE.sub(lie, header) + case.graph[len(header) :]) if told == "lies" else original.copy()
    for name in case.passes("before"):
        _C._jit_run_pass(name, graph, [])
    options = [option.replace(" ", "") for option in case.all("option")] + ["trust_types=0", "assume_batched=0"]
    try:
        _C._jit_run_pass(case.pass_name, graph, options)
    except RuntimeError:
        return  # a pass that needs its types says so
    graph.lint()
    for line in case.all("run"):
        difference = _C._jit_run_difference(original, graph, inputs(line))
        assert difference is None, f"# run: {line}\n{difference}\n{graph}"


def test_there_are_cases():
    assert len(list(refined())) > 60
