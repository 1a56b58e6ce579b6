"""Tensors of Cresset and of the real PyTorch in one call: a sentence, not a recursion. Needs CRESSET_ORACLE_PYTHON, a Python that has torch."""

import os
import subprocess
import sys
from pathlib import Path

import cresset
import pytest

ORACLE = os.environ.get("CRESSET_ORACLE_PYTHON")

# Stands in for PyTorch: a tensor type whose __torch_function__ runs the function with its own overrides off.
STAND_IN = """
import cresset, pytest

class Foreign:
    __torch_function__ = classmethod(lambda cls, func, types, args=(), kwargs=None: func(*args, **(kwargs or {})))

def foreign_add(a, b):
    for x in (a, b):
        if type(x) is cresset.Tensor:
            return type(x).__torch_function__(foreign_add, (cresset.Tensor,), (a, b), None)
    return "foreign"

with pytest.raises(TypeError, match=r"from_dlpack"):
    cresset.add(cresset.ones(2), Foreign())
with pytest.raises(TypeError, match=r"from_dlpack"):
    foreign_add(cresset.ones(2), Foreign())
"""


def run(python, code, **environment):
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=240, env=os.environ | environment)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_a_type_that_gives_calls_back():
    run(sys.executable, STAND_IN)


@pytest.mark.skipif(not ORACLE, reason="no Python with torch: CRESSET_ORACLE_PYTHON")
def test_torch_itself():
    paths = os.pathsep.join([str(Path(cresset.__file__).parents[1]), *(p for p in sys.path if "site-packages" in p)])
    out = run(
        ORACLE,
        """
import torch, cresset
calls = [lambda: torch.ones(2) + cresset.ones(2), lambda: cresset.ones(2) + torch.ones(2), lambda: torch.ones(2) @ cresset.ones(2),
         lambda: cresset.ones(2) @ torch.ones(2), lambda: torch.add(torch.ones(2), cresset.ones(2)), lambda: cresset.add(cresset.ones(2), torch.ones(2)),
         lambda: torch.ones(2).add_(cresset.ones(2)), lambda: cresset.ones(2) == torch.ones(2)]
for call in calls:
    try:
        call()
    except TypeError as error:
        print("from_dlpack" in str(error))
print((cresset.ones(2) + cresset.from_dlpack(torch.ones(2))).tolist())
""",
        PYTHONPATH=paths,
    )
    assert out.splitlines() == ["True"] * 8 + ["[2.0, 2.0]"]
