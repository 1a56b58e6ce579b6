"""Error classes and words of vmap and the function transforms, recorded from PyTorch."""

import re
import tomllib
from pathlib import Path

import cresset
import pytest
from cresset import func, vmap

HERE = Path(__file__).resolve().parent


def entries(name):
    return tomllib.loads((HERE / name).read_text())["error"]


def check(entry, names):
    with pytest.raises(Exception) as caught:
        eval(entry["call"], {"cresset": cresset, "vmap": vmap, **vars(func), **names})
    assert isinstance(caught.value, getattr(__builtins__, entry["error"], None) or eval(entry["error"]))
    said = re.sub(r"\bcresset\.Size\b", "torch.Size", str(caught.value))
    assert entry["text"] in said, said


@pytest.mark.parametrize("entry", entries("vmap_errors.toml"), ids=lambda e: e["call"])
def test_vmap(entry):
    check(entry, {"x": cresset.ones(3, 4)})
    assert cresset._C._vmap_depth() == 0  # no level is left behind


@pytest.mark.parametrize("entry", entries("func_errors.toml"), ids=lambda e: e["call"])
def test_func(entry):
    m = cresset.nn.Linear(3, 2)
    check(entry, {"x": cresset.ones(3), "m": m, "p": dict(m.named_parameters())})
    assert cresset._C._vmap_depth() == 0 and cresset._C._current_dual_level() < 0
