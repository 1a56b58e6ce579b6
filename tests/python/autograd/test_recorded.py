"""Behaviours of autograd against what PyTorch gave for the same small functions."""

import json
import pathlib
import sys

import cresset
import pytest

GOLDEN = pathlib.Path(__file__).parents[2] / "golden"
sys.path.insert(0, str(GOLDEN))
import autograd_cases  # noqa: E402

RECORDED = json.loads((GOLDEN / "autograd.json").read_text())
CASES = autograd_cases.cases()


def test_every_case_is_recorded():
    assert list(CASES) == list(RECORDED)


def test_every_record_is_of_something_expected():
    """A fragment that PyTorch's message lacks is recorded as the whole message: none of those, and nothing that crashed."""
    assert not [name for name, value in RECORDED.items() if len(json.dumps(value)) > 3000]


@pytest.fixture
def every_warning():
    """Warnings that come once a process come again."""
    before = cresset.is_warn_always_enabled()
    cresset.set_warn_always(True)
    yield
    cresset.set_warn_always(before)


@pytest.mark.parametrize("name", RECORDED)
def test_behaviour(name, every_warning):
    assert autograd_cases.observe(CASES[name], cresset) == RECORDED[name]
