"""Traces of 257 programs have the operators that PyTorch 2.13 records (traced_operators.json, written by traced_programs.py with PyTorch)."""

import json
from pathlib import Path

import pytest

HERE = Path(__file__).parent
RECORDED = json.loads((HERE / "traced_operators.json").read_text())
del RECORDED["torch"]

# What is computed in another way here.
OTHERWISE = {
    "CrossMapLRN": "a layer of operators, where PyTorch has an autograd.Function",
    "f:index": "an index in a list is made before the full slice in front of it",
    **dict.fromkeys(("RNNCell", "LSTMCell", "GRUCell"), "gates are not written in place"),
}


@pytest.fixture(scope="module")
def found(run_as_torch):
    return run_as_torch(HERE / "traced_programs.py", "operators")


@pytest.mark.parametrize("name", RECORDED)
def test_operators_of_a_trace(found, name):
    assert (found[name] == RECORDED[name]) is (name not in OTHERWISE), f"{found[name]}\n{RECORDED[name]}"
