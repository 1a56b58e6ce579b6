"""slice(…) as a value, types of attributes, conversions in texts, interfaces: words and answers as PyTorch's."""

import io
from typing import List

import pytest

import cresset
from cresset import jit, nn


def of_list(x: List[int]):
    a, b, c = slice(2), slice(1, None), slice(None, None, 2)
    return x[a], x[b], x[c]


def of_tensor(x, n: int):
    rows, columns = slice(1, n), slice(None, 2)
    x[rows, 0] = 7
    return x[rows], x[rows, columns], x[..., columns]


def of_tuple():
    part = slice(1, 3)
    return (1, "two", 3.0, 4)[part]


def test_slices_have_names():
    assert jit.script(of_list)([1, 2, 3, 4]) == of_list([1, 2, 3, 4])
    assert jit.script(of_tuple)() == of_tuple()
    for n in (2, 4):
        found, wanted = jit.script(of_tensor)(cresset.arange(12.0).view(4, 3), n), of_tensor(cresset.arange(12.0).view(4, 3), n)
        assert all(cresset.equal(a, b) for a, b in zip(found, wanted))


def keyword(x: List[int]):
    return x[slice(1, stop=2)]


class Late:
    def __init__(self, x: int):
        self.x = x

    def set(self, value: int):
        self.x: int = value


def test_refused():
    with pytest.raises(RuntimeError, match="Slice does not accept any keyword arguments"):
        jit.script(keyword)
    with pytest.raises(ValueError, match="must be declared in __init__, not 'set': SourceRange at:\n(.|\n)*\n        ~~~~~~~~~~~ <--- HERE"):
        jit.script(Late)


@pytest.mark.parametrize("kind, value, said", [
    ("e", "1", "%e requires a number for formatting, but got String"), ("d", "a", "%d requires a number for formatting, but got String"),
    ("c", "foo", "%c requires an int or char for formatting, but got String"), ("c", 1.5, "%c requires an int or char for formatting, but got Double"),
])  # fmt: skip
def test_texts_of_other_types(kind, value, said):
    unit = jit.CompilationUnit(f'def f(a: {type(value).__name__}) -> str:\n    return "%{kind} in" % a\n')
    with pytest.raises(RuntimeError, match=said):
        unit.f(value)


def test_texts_of_characters():
    assert jit.CompilationUnit('def f(a: str, b: int) -> str:\n    return "%c%c" % (a, b)\n').f("a", 66) == "aB"


@jit.interface
class Doubles(nn.Module):
    def forward(self, x: cresset.Tensor) -> cresset.Tensor:
        pass


class Other(nn.Module):
    def forward(self, x: int) -> int:
        return x


def as_doubles(x: Doubles) -> Doubles:
    return x


def test_modules_that_do_not_fit_an_interface():
    with pytest.raises(RuntimeError, match="Object of type .*Other is not compatible with interface .*Doubles"):
        jit.script(as_doubles)(jit.script(Other()))
    with pytest.raises(RuntimeError, match="Only ScriptModule class can be subtype of module interface"):
        jit.script(as_doubles)(cresset.ones(1))


def into(x, y):
    cresset.add(x, y, out=y)
    return cresset.sum(x, dim=[0], out=y)


def test_defaults_in_front_of_out_are_not_printed():
    code = jit.script(into).code
    assert "torch.add(x, y, out=y)" in code and "torch.sum(x, [0], out=y)" in code


def test_modules_on_the_meta_device_in_archives():
    module = nn.Linear(2, 3, device="meta")
    buffer = io.BytesIO()
    jit.save(jit.script(module), buffer)
    buffer.seek(0)
    again = jit.load(buffer, map_location="cpu")  # there is nothing to put there
    assert again.weight.is_meta and again.weight.shape == (3, 2) and again(cresset.ones(1, 2, device="meta")).shape == (1, 3)
