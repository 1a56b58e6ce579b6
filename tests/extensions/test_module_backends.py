"""Backends that take whole modules: written in C++ with PyTorch's names, used from Python."""

import io
from pathlib import Path

import pytest

import cresset
from cresset import jit, nn
from cresset.utils import cpp_extension

SOURCES = Path(__file__).parent / "sources"
METHODS = {"forward": {"": ""}, "add": {"level": 3}}


@pytest.fixture(scope="module", autouse=True)
def library(tmp_path_factory):
    cpp_extension.load("module_backend", SOURCES / "module_backend.cpp", extra_cflags=["-O0"], build_directory=tmp_path_factory.mktemp("backend"), is_python_module=False)


class Pair(nn.Module):
    def forward(self, x, h):
        return self.add(x, h), x - h

    @jit.export
    def add(self, x, h):
        return x + h


class Outer(nn.Module):
    def __init__(self, inner, other):
        super().__init__()
        self.inner, self.other = inner, other

    def forward(self, x, h):
        a, b = self.inner(x, h)
        c, d = self.other(x, h)
        return a * c, b * d


class Other(Pair):
    pass


def lowered(name="counting"):
    return cresset._C._jit_to_backend(name, jit.script(Pair()), METHODS)


def copied(module):
    file = io.BytesIO()
    jit.save(module, file)
    file.seek(0)
    return jit.load(file)


X, H = cresset.tensor([1.0, 5.0]), cresset.tensor([2.0, 2.0])


def check(module):
    first, second = module(X, H)
    assert first.tolist() == [3.0, 7.0] and second.tolist() == [-1.0, 3.0]
    assert module.add(X, H).tolist() == [3.0, 7.0]


def test_a_module_on_a_backend():
    module = lowered()
    check(module)
    inner = getattr(module, "__loweredModule__")
    assert getattr(inner, "__method_compile_spec") == METHODS
    assert "LoweredModule.counting" in str(inner.graph) and "__backends__.counting" in str(inner.graph)
    assert "__backends__" not in str(module.graph)
    check(copied(module))


def test_as_a_part():
    plain, mixed = Outer(Pair(), Other()), jit.script(Outer(lowered(), Other()))
    assert all(cresset.equal(a, b) for a, b in zip(plain(X, H), mixed(X, H)))
    again = copied(mixed)
    assert all(cresset.equal(a, b) for a, b in zip(plain(X, H), again(X, H)))


def test_selected_parts():
    module = jit.script(Outer(Pair(), Other()))
    wanted = module(X, H)
    low = cresset._C._jit_to_backend_selective(module, lambda m: cresset._C._jit_to_backend("counting", m, METHODS), ["inner"])
    assert "LoweredWrapper.counting" in str(low.graph) and "Other" in str(low.graph)
    assert all(cresset.equal(a, b) for a, b in zip(wanted, low(X, H)))
    with pytest.raises(RuntimeError, match="is not a ScriptModule"):
        cresset._C._jit_to_backend_selective(nn.ReLU(), None, ["inner"])
    with pytest.raises(RuntimeError, match="Attribute named nothing is not a Module"):
        cresset._C._jit_to_backend_selective(low, None, ["nothing"])
    with pytest.raises(RuntimeError, match="only supported for module hierarchies with unique types"):
        cresset._C._jit_to_backend_selective(jit.script(Outer(Pair(), Pair())), None, ["inner"])


def test_a_backend_of_another_machine():
    module = lowered("elsewhere")
    with pytest.raises(Exception, match="Backend is not available."):
        module(X, H)
    with pytest.raises(Exception, match="Backend is not available."):
        copied(module)


def test_errors():
    with pytest.raises(RuntimeError, match="does not exist"):
        cresset._C._jit_to_backend("nobody", jit.script(Pair()), METHODS)
    with pytest.raises(RuntimeError, match="Method nothing in the compile spec"):
        cresset._C._jit_to_backend("counting", jit.script(Pair()), {"nothing": 1})
