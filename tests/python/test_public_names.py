"""The public names of PyTorch 2.13 (tests/golden/public_names.json) are here, or stand in absent_names.toml with a reason; both ways."""

import importlib
import json
import tomllib
import warnings
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NAMES = {module: names.split() for module, names in json.loads((HERE.parent / "golden" / "public_names.json").read_text()).items()}
REASONS = tomllib.loads((HERE / "absent_names.toml").read_text())
ABSENT = {}
for reason, names in REASONS.items():
    for name in names:
        assert name not in ABSENT, f"{name} stands in absent_names.toml twice"
        ABSENT[name] = reason


def find(path):
    """The module or class of this name in Cresset, None when there is none."""
    path = "cresset" + path.removeprefix("torch")
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError:
        parent, _, name = path.rpartition(".")
        return getattr(importlib.import_module(parent), name, None) if parent else None


def has(owner, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if isinstance(owner, type):
            return any(name in vars(kind) for kind in owner.__mro__)
        return hasattr(owner, name)


@pytest.mark.parametrize("module", NAMES)
def test_names_are_here_or_listed(module):
    owner = find(module)
    assert owner is not None, f"{module} is missing"
    missing = [f"{module}.{name}" for name in NAMES[module] if not has(owner, name)]
    assert [n for n in missing if n not in ABSENT] == [], "missing and not in absent_names.toml"
    listed = [n for n in ABSENT if n.rpartition(".")[0] == module]
    assert [n for n in listed if n not in missing] == [], "in absent_names.toml, but there (or no name of PyTorch)"


def test_every_listed_name_is_a_name_of_pytorch():
    assert [n for n in ABSENT if n.rpartition(".")[0] not in NAMES] == []


def test_most_names_are_here():
    total = sum(map(len, NAMES.values()))
    assert 1 - len(ABSENT) / total >= 0.95, f"{len(ABSENT)} of {total} names are missing"
