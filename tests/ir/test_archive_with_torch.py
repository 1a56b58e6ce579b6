"""Archives exchanged with PyTorch itself, where CRESSET_ORACLE_PYTHON names an interpreter that has it."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import cresset
from cresset import jit

ORACLE = os.environ.get("CRESSET_ORACLE_PYTHON")
pytestmark = pytest.mark.skipif(not ORACLE, reason="CRESSET_ORACLE_PYTHON is not set")
PROGRAM = Path(__file__).with_name("torch_models.py")


def flat(value):
    if isinstance(value, dict):
        value = list(value.values())
    return [t for v in value for t in flat(v)] if isinstance(value, (list, tuple)) else [value] if isinstance(value, cresset.Tensor) else []


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("torch")
    subprocess.run([ORACLE, PROGRAM, "save", folder], check=True, capture_output=True, env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"})
    return folder


def names():
    return subprocess.run([sys.executable, PROGRAM, "names"], check=True, capture_output=True, text=True).stdout.split()


@pytest.fixture(scope="module")
def answers(folder):
    """What PyTorch computes with the files that were written here."""
    for name in names():
        jit.load(folder / f"{name}.pt").save(folder / f"{name}.back.pt")
    done = subprocess.run([ORACLE, PROGRAM, "check", folder], capture_output=True, text=True, env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"})
    assert done.returncode == 0, done.stderr
    return dict(line.split() for line in done.stdout.splitlines())


@pytest.mark.parametrize("name", names())
def test_files_of_torch_give_its_results(folder, name):
    recorded = np.load(folder / f"{name}.npz")
    m = jit.load(folder / f"{name}.pt")
    with cresset.no_grad():
        results = flat(m(*(cresset.from_numpy(recorded[k]) for k in recorded if k.startswith("in"))))
    wanted = [recorded[k] for k in recorded if k.startswith("out")]
    assert len(results) == len(wanted) > 0
    for got, want in zip(results, wanted):
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", names())
def test_torch_reads_what_is_written_here(answers, name):
    assert float(answers[name]) == 0.0


class Halves(cresset.nn.Module):
    def forward(self, x: cresset.Tensor):
        y = x + 1
        return y.view(2, -1)


def torch_runs(*arguments):
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    return subprocess.run([ORACLE, *map(str, arguments)], capture_output=True, text=True, env=environment)


def test_torch_shows_the_places_of_what_is_written_here(tmp_path):
    jit.script(Halves()).save(tmp_path / "halves.pt")
    run = torch_runs("-c", "import sys, torch; torch.jit.load(sys.argv[1])(torch.ones(3))", tmp_path / "halves.pt")
    line = inspect.getsourcelines(Halves.forward)[1] + 2
    assert f'File "{__file__}", line {line}, in forward' in run.stderr, run.stderr


def test_places_of_files_of_torch(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, torch\n\n\nclass Halves(torch.nn.Module):\n    def forward(self, x):\n        y = x + 1\n        return y.view(2, -1)\n\n\n"
        "torch.jit.script(Halves()).save(sys.argv[1])\n"
    )
    assert torch_runs(program, tmp_path / "halves.pt").returncode == 0
    with pytest.raises(RuntimeError) as caught:
        jit.load(tmp_path / "halves.pt")(cresset.ones(3))
    assert f'File "{program}", line 7' in str(caught.value) and "return y.view(2, -1)" in str(caught.value)
