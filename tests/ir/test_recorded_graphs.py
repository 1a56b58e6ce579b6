"""Graphs that PyTorch printed (frozen script and trace modules) go through every pass: well formed, settled after one run, same answers.

The contents of large constants are not in such texts; they are read as zeros, so answers compare the structure of the computation.
"""

from pathlib import Path

import pytest

import cresset
from cresset import _C

FOLDER = Path(__file__).parent / "recorded"
# For each graph: inputs, and passes that must find something in it.
GRAPHS = {
    "attention_scripted": (lambda: [cresset.randn(2, 5, 16), None], {"linear_to_addmm", "view_to_reshape"}),
    "control_scripted": (lambda: [cresset.randn(4, 4), 3], set()),
    "convbn_traced": (lambda: [cresset.randn(2, 3, 8, 8)], {"linear_to_addmm"}),
    "mlp_scripted": (lambda: [cresset.randn(3, 8)], {"linear_to_addmm", "unpack_log_softmax"}),
    "state_scripted": (None, set()),
}
# These drop what only some callers need, or change the signature.
CHANGES_ANSWERS = {"remove_collection_cast", "autocast_long_inputs", "lower_all_tuples"}


def read(name):
    return _C.parse_ir((FOLDER / f"{name}.ir").read_text(), parse_tensor_constants=True)


def without_module(graph):
    """The same graph without its first input, which frozen graphs do not use."""
    if not any(True for _ in next(graph.inputs()).uses()):
        graph.eraseInput(0)
    return graph


def test_every_recorded_graph_is_named():
    assert {p.stem for p in FOLDER.glob("*.ir")} == set(GRAPHS)


@pytest.mark.parametrize("name", GRAPHS)
def test_round_trip(name):
    graph = read(name)
    graph.lint()
    assert str(_C.parse_ir(str(graph))) == str(graph)


@pytest.mark.parametrize("name", GRAPHS)
def test_passes(name):
    inputs, expected = GRAPHS[name]
    if inputs is not None:
        assert _C._jit_run_graph(without_module(read(name)), inputs())
    found = set()
    for pass_name, *_ in _C._jit_passes():
        if pass_name in CHANGES_ANSWERS:
            continue
        before = without_module(read(name))
        after = before.copy()
        if _C._jit_run_pass(pass_name, after, [])[0] == "unchanged":
            continue
        found.add(pass_name)
        after.lint()
        if inputs is not None:
            cresset.manual_seed(0)
            assert _C._jit_run_difference(before, after, inputs()) is None, f"{pass_name}\n{after}"
    assert expected <= found
