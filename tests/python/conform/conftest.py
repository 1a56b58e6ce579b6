"""Runs of the command in processes of their own: a device stays for good once it is loaded."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
COMMAND = ROOT / "build/dev/bin/cresset"

WRONG_RELU = """
from cresset.library import Library

library = Library("aten", "IMPL")


def relu(x, *, out):
    return out.copy_(x.cpu().clamp(min=0.125).to(x.device))  # wrong between 0 and 1/8


library.impl("relu.out", relu, "PrivateUse1")
"""


class Conform:
    """conform(arguments…) runs the command with the device tin; status, out and err of the last run."""

    def __init__(self, tin, folder):
        self.tin, self.folder = tin, folder

    def __call__(self, *arguments, device="tin", load=None, command=(str(COMMAND), "conform"), **environment):
        loads = [self.tin] if load is None else load
        words = [*command, "--device", device, *[w for p in loads for w in ("--load", str(p))], *map(str, arguments)]
        done = subprocess.run(words, capture_output=True, text=True, cwd=self.folder, env=os.environ | {"CRESSET_PYTHON": sys.executable} | environment)
        self.status, self.out, self.err = done.returncode, done.stdout, done.stderr
        return self.out


@pytest.fixture
def conform(tin, tmp_path):
    return Conform(tin, tmp_path)


@pytest.fixture
def wrong_relu(tmp_path):
    """A backend file that gives the device a wrong kernel."""
    path = tmp_path / "wrong_relu.py"
    path.write_text(WRONG_RELU)
    return path
