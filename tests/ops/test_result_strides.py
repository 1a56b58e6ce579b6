"""Strides of results for arguments of many layouts, on the CPU and on meta, against those that PyTorch gave (result_strides.toml)."""

import tomllib
from pathlib import Path

import cresset
import pytest

CALLS = tomllib.loads((Path(__file__).parent / "result_strides.toml").read_text())["call"]
NAMES = {name: getattr(cresset, name) for name in dir(cresset)}


def argument(sizes, strides, device):
    memory = cresset.linspace(0.1, 0.9, max(1, 1 + sum((n - 1) * s for n, s in zip(sizes, strides))), device=device)
    return memory.as_strided(sizes, strides)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call["code"])
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_strides(call, device):
    for sizes, strides, want in call["layouts"]:
        with cresset.device(device):  # the numbers and indices in the text
            result = eval(call["code"], NAMES | {"x": argument(sizes, strides, device)})
        # Those of dimensions with one element say nothing, but for copies that preserve the layout (exact).
        have = [(s, w) for s, w, n in zip(result.stride(), want, result.shape) if n > 1 or call.get("exact")]
        assert all(s == w for s, w in have), f"sizes {sizes}, strides {strides}: {tuple(result.stride())}, wanted {want} of {tuple(result.shape)}"
