"""Paths and a runner for the tests of tools/opgen."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TABLES = Path(__file__).resolve().parent / "tables"
sys.path.insert(0, str(ROOT / "tools/opgen"))


class Result:
    def __init__(self, done):
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr


@pytest.fixture
def opgen(tmp_path):
    """Runs the command line as the build does."""

    def run(*args):
        return Result(subprocess.run([sys.executable, "-B", str(ROOT / "tools/opgen"), *map(str, args)], capture_output=True, text=True, cwd=tmp_path))

    return run


@pytest.fixture
def family(tmp_path, opgen):
    """Writes one table from text and generates it; gives the result and the output folder."""

    def generate(text):
        tables, out = tmp_path / "tables", tmp_path / "out"
        tables.mkdir(exist_ok=True)
        (tables / "sample.toml").write_text(text)
        return opgen("generate", "--tables", tables, "--out", out), out

    return generate


@pytest.fixture(scope="session")
def pilot(tmp_path_factory):
    """The generated tree of the pilot rows."""
    out = tmp_path_factory.mktemp("pilot")
    done = subprocess.run([sys.executable, "-B", str(ROOT / "tools/opgen"), "generate", "--tables", str(TABLES), "--out", str(out)],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out
