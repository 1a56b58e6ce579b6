"""A device that is written in Python alone, in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent


@pytest.mark.parametrize("program", ["python_backend.py", "python_training.py"])
def test_a_device_in_python(program):
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1] / "python")}
    run = subprocess.run([sys.executable, HERE / program], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-4000:]
    assert run.stdout.endswith("all of it\n")
