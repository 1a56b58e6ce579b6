"""The score card finds wrong kernels: planted_faults.py has them as data."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("planted_faults.py")
PARTS = 5


@pytest.mark.parametrize("part", range(PARTS))
def test_each_is_found(minimal, part, count):
    done = subprocess.run([sys.executable, str(PROGRAM), str(minimal), str(part), str(PARTS)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    cards = json.loads(done.stdout.splitlines()[-1])
    missed = [name for name, failures in cards["found"].items() if not failures]
    count("planted faults", "faults", planted=len(cards["found"]), found=len(cards["found"]) - len(missed))
    assert missed == []
    assert {form: failures for form, failures in cards["right"].items() if failures} == {}  # the same kernel without its fault
    assert len(cards["found"]) >= 10
