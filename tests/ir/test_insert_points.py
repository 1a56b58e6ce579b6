"""The insertion point of a graph while passes run: it may stand on a node that goes, and no guard that restores it may end the process."""

import pytest
from test_passes import cases

from cresset import _C


def nodes(block):
    for n in block.nodes():
        yield n
        for b in n.blocks():
            yield from nodes(b)


@pytest.mark.parametrize("case", list(cases()))
def test_a_pass_with_the_point_on_each_node(case):
    options = [option.replace(" ", "") for option in case.all("option")]
    original = _C.parse_ir(case.graph)
    for name in case.passes("before"):
        _C._jit_run_pass(name, original, [])
    for i in range(len(list(nodes(original)))):
        graph = original.copy()
        graph.setInsertPoint(list(nodes(graph))[i])
        try:
            _C._jit_run_pass(case.pass_name, graph, options)
        except Exception:
            continue  # what the pass raises is its own test's
        graph.insertConstant(1)
        graph.lint()
