"""What modules print and compute under the name torch is what PyTorch gives. Needs CRESSET_ORACLE_PYTHON, a Python that has torch."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ORACLE = os.environ.get("CRESSET_ORACLE_PYTHON")
PROGRAM = str(Path(__file__).parent / "module_lines.py")


def lines(*command):
    done = subprocess.run([*command, PROGRAM], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(line.split(" -> ", 1) for line in done.stdout.splitlines())


def test_every_line_works():
    failed = {name: text for name, text in lines(sys.executable, "-m", "cresset.as_torch").items() if text.startswith("!!")}
    assert sorted(failed) == ["cudae", "dist.err"]


@pytest.mark.skipif(not ORACLE, reason="no Python with torch: CRESSET_ORACLE_PYTHON")
def test_lines_are_pytorchs():
    ours, theirs = lines(sys.executable, "-m", "cresset.as_torch"), lines(ORACLE)
    assert ours == theirs
