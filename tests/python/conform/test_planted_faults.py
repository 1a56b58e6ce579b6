"""The score card finds wrong kernels: planted_faults.py has them as data."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

WRONG_QUEUE = """
import ctypes

ctypes.CDLL({library!r}).simulated_set_fault(b"wrong_queue", ctypes.c_int64(1))
"""
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


@pytest.mark.parametrize("wrong", [False, True])
def test_a_kernel_on_another_queue_is_found(conform, simulated, tmp_path, wrong):
    """Its inputs arrive late on the stream of the call: a kernel on the default queue reads them too early."""
    (tmp_path / "fault.py").write_text(WRONG_QUEUE.format(library=str(simulated)) if wrong else "")
    arguments = ["--ops", "^(mul.Tensor|mm)$", "--dtypes", "float32", "--checks", "stream", "--no-models", "--json"]
    out = conform(*arguments, device="simulated", load=[simulated, tmp_path / "fault.py"])
    assert conform.status in (0, 1) and out, conform.err
    card = json.loads(out)
    assert {(r["op"], r["check"]): r["status"] for r in card["results"]} == {(op, "stream"): "wrong" if wrong else "pass" for op in ("mul.Tensor", "mm")}
