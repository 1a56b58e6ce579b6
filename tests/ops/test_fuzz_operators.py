"""A slice of tools/fuzz_operators, and that it finds what it looks for."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools/fuzz_operators"


def test_a_slice_without_findings():
    done = subprocess.run([sys.executable, TOOL, "--calls", "2000", "--seed", "slice"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert "2000 calls" in done.stdout


def test_faults_are_found(tmp_path):
    """Operators that crash, hang, write before an error or fail an internal check, registered in the tool's own processes."""
    script = tmp_path / "faulty.py"
    script.write_text(f"""
import ctypes, importlib.machinery, importlib.util, sys, time
import cresset
from cresset.testing import samples
loader = importlib.machinery.SourceFileLoader("fuzz_operators", {str(TOOL)!r})
tool = importlib.util.module_from_spec(importlib.util.spec_from_loader("fuzz_operators", loader))
sys.modules["fuzz_operators"] = tool
loader.exec_module(tool)
tool.SECONDS = 0.2
lib = cresset.library.Library("faulty", "DEF")
def crash(x): ctypes.string_at(0)
def hang(x):
    while True: pass
def wrote(x):
    if x.numel() and x.is_cpu: x.view(-1).fill_(77) if x.is_contiguous() else None
    raise RuntimeError("late")
def inner(x): raise RuntimeError("std::bad_alloc")
def sound(x): return x.clone()
for f in (crash, hang, wrote, inner, sound):
    lib.define(f"{{f.__name__}}(Tensor x) -> Tensor")
    lib.impl(f.__name__, f, "CompositeExplicitAutograd")
argument = dict(name="x", type="Tensor", default=None, kwarg_only=False, alias=None, write=False)
table = [dict(name="faulty::" + f, overload="", arguments=[argument], samples=[], row=None, mutates=[], out=None, inplace=None)
         for f in ("crash", "hang", "wrote", "inner", "sound")]
samples.operators = lambda: table
sys.exit(tool.main())
""")
    report = tmp_path / "report.json"
    environment = {**os.environ, "ASAN_OPTIONS": f"{os.environ.get('ASAN_OPTIONS', '')}:handle_segv=0"}  # a report of the crash takes longer
    done = subprocess.run([sys.executable, script, "--calls", "25", "--jobs", "2", "--json", report], capture_output=True, text=True, env=environment)
    assert done.returncode == 1, done.stdout + done.stderr
    found = {(f["operator"], f["kind"]) for f in json.loads(report.read_text())}
    assert found == {("faulty::crash", "crash"), ("faulty::hang", "hang"), ("faulty::wrote", "wrote"), ("faulty::inner", "class")}
