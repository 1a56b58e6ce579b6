"""Traces of 257 programs have the operators that PyTorch 2.13 records (traced_operators.json, written by traced_programs.py with PyTorch)."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

import cresset

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
def found():
    names = ("torch", "torch.nn", "torch.nn.functional")
    before = {name: sys.modules.get(name) for name in names}
    sys.modules.update(zip(names, (cresset, cresset.nn, cresset.nn.functional)))
    try:
        spec = importlib.util.spec_from_file_location("traced_programs", HERE / "traced_programs.py")
        programs = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(programs)
        return programs.operators()
    finally:
        for name, module in before.items():
            sys.modules.pop(name) if module is None else sys.modules.update({name: module})


@pytest.mark.parametrize("name", RECORDED)
def test_operators_of_a_trace(found, name):
    assert (found[name] == RECORDED[name]) is (name not in OTHERWISE), f"{found[name]}\n{RECORDED[name]}"
