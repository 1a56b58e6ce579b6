"""Graphs, generated code and errors against what PyTorch writes."""

import json
import pathlib
import sys

import cresset
import cresset.fx
import pytest

GOLDEN = pathlib.Path(__file__).parents[2] / "golden"
sys.path.insert(0, str(GOLDEN))
import fx_cases  # noqa: E402

RECORDED = json.loads((GOLDEN / "fx.json").read_text())


@pytest.fixture(scope="module")
def texts():
    return fx_cases.texts(cresset)


def test_every_case_is_recorded(texts):
    assert list(texts) == list(RECORDED)


@pytest.mark.parametrize("case", RECORDED)
def test_text(texts, case):
    assert texts[case] == RECORDED[case]
