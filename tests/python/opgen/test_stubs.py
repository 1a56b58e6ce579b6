"""The generated stubs, read by mypy as a user's program reads them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

PROGRAM = """\
import cresset
from cresset import Tensor

x = cresset.ones(2, 3, dtype=cresset.float64)
a: Tensor = cresset.add(x, 1, alpha=2)
b: Tensor = x.view(3, 2).sum([0], keepdim=True).relu_()
values, indices = x.max(0)
n: int = x.size(0)
c: Tensor = (x + 1) @ a.t() * 2.0
parts: tuple[Tensor, ...] = x.split(1)
d: Tensor = cresset.sum(x, [0], out=cresset.empty(3))
e: Tensor = x & 1
wrong: int = cresset.add(x, 1)
x.add("text")
cresset.add(x, 1, alpha=None)
x.view(1.5)
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The stubs, with empty modules in place of the package's own."""
    folder = tmp_path_factory.mktemp("stubs")
    subprocess.run([sys.executable, "-B", str(ROOT / "tools/opgen"), "generate", "--out", str(folder / "gen")], check=True, cwd=ROOT)
    package = folder / "gen/data/stubs/cresset"
    for name in re.findall(r"(\w+) as \1", re.search(r"from \. import (.*)", (package / "__init__.pyi").read_text()).group(1)):
        assert (ROOT / "python/cresset" / name).is_dir() or (ROOT / "python/cresset" / f"{name}.py").is_file()
        (package / name).mkdir()
        (package / name / "__init__.pyi").touch()
    (package / "autograd/grad_mode.pyi").write_text("enable_grad: type\ninference_mode: type\nno_grad: type\n")
    return package.parent


def mypy(package, tmp_path, text):
    (tmp_path / "program.py").write_text(text)
    done = subprocess.run([sys.executable, "-m", "mypy", "--no-incremental", "--follow-imports=silent", "program.py"], cwd=tmp_path,
                          capture_output=True, text=True, env={**os.environ, "MYPYPATH": str(package)})
    return re.findall(r"program\.py:(\d+): error: (.*)", done.stdout), done.stdout


def test_right_calls_pass_and_wrong_ones_do_not(package, tmp_path):
    errors, text = mypy(package, tmp_path, PROGRAM)
    wrong = PROGRAM.splitlines().index("wrong: int = cresset.add(x, 1)") + 1
    assert [int(line) for line, _ in errors] == [wrong, wrong + 1, wrong + 2, wrong + 3], text
    assert "Incompatible types in assignment" in errors[0][1]


def test_the_stubs_themselves_are_well_formed(package):
    files = [str(p) for p in (package / "cresset/_C").glob("*.pyi")]
    done = subprocess.run([sys.executable, "-m", "mypy", "--no-incremental", "--follow-imports=silent", *files], cwd=package, capture_output=True, text=True,
                          env={**os.environ, "MYPYPATH": str(package)})
    assert done.returncode == 0, done.stdout
