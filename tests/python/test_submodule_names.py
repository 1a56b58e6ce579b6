"""A submodule that is imported does not take the place of a function or class that its package has under the same name."""

import subprocess
import sys

import pytest

import cresset  # noqa: F401

PROBE = """
import importlib, pkgutil, sys, types
import cresset
package = importlib.import_module({package!r})
for name in [m.name for m in pkgutil.iter_modules(package.__path__)]:
    if name.startswith("_"):
        continue
    before = getattr(package, name, None)
    importlib.import_module({package!r} + "." + name)
    if before is not None and not isinstance(before, types.ModuleType):
        assert getattr(package, name) is before, name
"""


@pytest.mark.parametrize("package", ["cresset", "cresset.autograd", "cresset.nn", "cresset.nn.utils", "cresset.optim", "cresset.utils", "cresset.jit", "cresset.func", "cresset.distributions"])
def test_functions_stay(package):
    done = subprocess.run([sys.executable, "-c", PROBE.format(package=package)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("package", "name"), [("cresset.autograd", "gradcheck"), ("cresset.nn.utils", "weight_norm"), ("cresset.nn.utils", "spectral_norm")]
)
def test_a_submodule_that_is_imported_first(package, name):
    program = f"import {package}.{name}, sys; p = sys.modules[{package!r}]; f = sys.modules[{package!r} + '.{name}'].{name}; assert p.{name} is f"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
