"""Files of PyTorch and of Cresset, each read by the other, where CRESSET_ORACLE_PYTHON names an interpreter with PyTorch; by Cresset alone otherwise."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ORACLE = os.environ.get("CRESSET_ORACLE_PYTHON")
PROGRAM = Path(__file__).with_name("exchange.py")
needs_torch = pytest.mark.skipif(not ORACLE, reason="CRESSET_ORACLE_PYTHON is not set")


def run(action, side, folder):
    environment = {k: v for k, v in os.environ.items() if side != "torch" or k != "PYTHONPATH"}
    done = subprocess.run([ORACLE if side == "torch" else sys.executable, PROGRAM, action, side, folder], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The folder of one writer."""
    made = {}

    def of(side):
        if side not in made:
            made[side] = tmp_path_factory.mktemp(side)
            run("write", side, made[side])
        return made[side]

    return of


@pytest.mark.parametrize("writer", ["cresset", "alias"])
@pytest.mark.parametrize("reader", ["cresset", "alias", pytest.param("torch", marks=needs_torch)])
def test_files_of_cresset(written, writer, reader):
    run("read", reader, written(writer))


@needs_torch
@pytest.mark.parametrize("reader", ["cresset", "alias"])
def test_files_of_pytorch(written, reader):
    run("read", reader, written("torch"))
