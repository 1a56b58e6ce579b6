"""`pip install .` works by itself: the wheel holds the library, the headers and the CMake package."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_pip_install(tmp_path):
    environment = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    environment["CXX"] = "c++"  # the name that other builds use, so that ccache knows the sources
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "env"], check=True)
    python = tmp_path / "env/bin/python"
    subprocess.run([python, "-m", "pip", "install", "-q", str(ROOT)], check=True, env=environment)
    code = (
        "import cresset, os; p = os.path.dirname(cresset.__file__); "
        "x = cresset.ones(2, 3, requires_grad=True); (x * 2).sum().backward(); print(x.grad.sum().item()); "
        "print(all(os.path.exists(os.path.join(p, n)) for n in "
        "('lib/libcresset.so', 'include/cresset/cresset.h', 'lib/cmake/Cresset/CressetConfig.cmake')))"
    )
    result = subprocess.run([python, "-c", code], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert result.stdout == "12.0\nTrue\n", result.stderr
    version = subprocess.run(
        [tmp_path / "env/bin/cresset", "--version"], capture_output=True, text=True, env=environment
    )
    assert version.returncode == 0, version.stderr
