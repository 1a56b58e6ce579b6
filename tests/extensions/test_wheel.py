"""The wheel is enough: it holds the library, the headers and the CMake packages, and extensions build with pip against it, with and
without build isolation."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULE = """
#include <Python.h>
#include <cresset/base/error.h>
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "clip_ops", nullptr, -1};
PyMODINIT_FUNC PyInit_clip_ops() {
  PyObject* m = PyModule_Create(&module);
  PyModule_AddStringConstant(m, "text", cresset::str("answer ", 42).c_str());
  return m;
}
"""
SETUP = """
from setuptools import setup
from cresset.utils.cpp_extension import BuildExtension, CppExtension

setup(name="clip", version="1.0", py_modules=[], ext_modules=[CppExtension("clip_ops", ["clip_ops.cpp"], extra_compile_args=["-O0"])],
      cmdclass={"build_ext": BuildExtension})
"""
# By its place: what is tested is this wheel.
ISOLATED = '[build-system]\nrequires = ["setuptools>=70.1", "cresset-runtime @ {}"]\nbuild-backend = "setuptools.build_meta"\n'
ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")} | {
    "CXX": "c++"  # the name that other builds use, so that ccache knows the sources
}


def run(*command, **options):
    result = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=ENVIRONMENT, **options)
    assert result.returncode == 0, f"{' '.join(map(str, command))}\n{result.stdout[-3000:]}{result.stderr[-3000:]}"
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheels")
    run(sys.executable, ROOT / "tools/make_wheel", "--out", folder)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """The Python of a new environment with the wheel installed."""
    folder = tmp_path_factory.mktemp("environment")
    run(sys.executable, "-m", "venv", folder)
    run(folder / "bin/python", "-m", "pip", "install", "-q", wheel)
    return folder / "bin/python"


@pytest.mark.slow
def test_the_wheel_is_complete(python, tmp_path):
    code = (
        "import cresset, os; p = os.path.dirname(cresset.__file__); cresset.jit; "
        "x = cresset.ones(2, 3, requires_grad=True); (x * 2).sum().backward(); print(x.grad.sum().item()); "
        "print(all(os.path.exists(os.path.join(p, n)) for n in "
        "('lib/libcresset.so', 'lib/libcresset_cpu.so', 'lib/libcresset_ir.so', 'lib/libcresset_nn.so', 'include/cresset/cresset.h', 'lib/cmake/Cresset/CressetConfig.cmake', 'lib/cmake/Torch/TorchConfig.cmake')))"
    )
    assert run(python, "-c", code, cwd=tmp_path) == "12.0\nTrue\n"
    run(python.with_name("cresset"), "--version")


@pytest.mark.slow
def test_the_wheel_needs_no_packages_of_the_system(python, wheel, tmp_path):
    """Where there is no compiler and no BLAS: nothing but the C and C++ run-time comes from outside of the environment."""
    assert "linux_x86_64" not in wheel.name and "manylinux" in wheel.name
    code = (
        "import cresset, sys\n"
        "a = cresset.randn(80, 80); x = cresset.randn(1, 3, 16, 16); w = cresset.randn(4, 3, 3, 3)\n"
        "assert cresset.allclose(a @ cresset.linalg.inv(a), cresset.eye(80), atol=1e-2) and cresset.conv2d(x, w).shape == (1, 4, 14, 14)\n"
        "assert cresset.jit.trace(lambda x: x * 2, x)(x).equal(x * 2)\n"
        "mapped = {line.split()[-1] for line in open('/proc/self/maps') if '.so' in line}\n"
        "print(*sorted(p for p in mapped if not p.startswith(sys.prefix)))"
    )
    environment = {"PATH": "", "HOME": str(tmp_path)}
    shown = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    foreign = [path for path in shown.stdout.split() if any(name in path for name in ("blas", "dnnl", "gfortran", "gomp", "quadmath"))]
    assert foreign == []


@pytest.mark.slow
@pytest.mark.parametrize("isolated", [True, False])
def test_extensions_build_with_pip(python, wheel, tmp_path, isolated):
    (tmp_path / "clip_ops.cpp").write_text(MODULE)
    (tmp_path / "setup.py").write_text(SETUP)
    if isolated:
        (tmp_path / "pyproject.toml").write_text(ISOLATED.format(wheel.as_uri()))
        run(python, "-m", "pip", "install", "-q", "--force-reinstall", "--no-deps", tmp_path)
    else:
        run(python, "-m", "pip", "install", "-q", "setuptools>=70.1")
        run(python, "-m", "pip", "install", "-q", "--force-reinstall", "--no-deps", "--no-build-isolation", tmp_path)
    assert run(python, "-c", "import cresset, clip_ops; print(clip_ops.text)", cwd="/") == "answer 42\n"
