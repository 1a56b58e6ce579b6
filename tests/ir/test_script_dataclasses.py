"""Dataclasses as classes of scripts: what the decorator writes behaves as in Python."""

import dataclasses
from typing import List, Optional

import cresset
import pytest
from cresset import Tensor

jit = cresset.jit


@dataclasses.dataclass(order=True)
class Span:
    first: "int"
    last: int = 10
    step: int = dataclasses.field(default=1, compare=False)

    def size(self) -> int:
        return (self.last - self.first) // self.step


@dataclasses.dataclass
class Batch:
    data: Tensor
    names: List[str]
    span: Optional[Span] = None
    scale: float = dataclasses.field(default=0.5, kw_only=True)
    total: int = 0

    def __post_init__(self):
        self.total = len(self.names)


@dataclasses.dataclass(eq=False)
class OwnInit:
    n: "int"

    def __init__(self, text: str):
        self.n = len(text)


def makes(n: int):
    a, b = Span(n), Span(first=n, last=12, step=3)
    return a.size(), b.size(), a.last, b.step


def compares(n: int):
    a, b, c = Span(n), Span(n, 12), Span(n, 10, 7)
    return a == b, a == c, not (a == b), a < b, b < a, a <= c, a > b, a >= c, Span(n - 1, 99) < a


def nests(n: int):
    batch = Batch(cresset.ones(n), ["a", "b"], Span(n), scale=2.0)
    plain = Batch(cresset.zeros(n), [])
    span = batch.span
    assert span is not None
    return batch.data * batch.scale, batch.total, span.size(), plain.scale, plain.total, plain.span is None


def own_init(n: int):
    return OwnInit("abc").n + n


@pytest.mark.parametrize("function", [makes, compares, nests, own_init], ids=lambda f: f.__name__)
def test_programs(function):
    cresset.testing.assert_close(jit.script(function)(3), function(3))


def test_objects_cross_the_border():
    def later(span: Span, by: int) -> Span:
        return Span(span.first + by, span.last + by)

    assert jit.script(later)(Span(1, 2), 3) == Span(4, 5)


def test_decorated():
    @jit.script
    @dataclasses.dataclass
    class Local:
        x: int
        other: Optional["Local"] = None

    def use(n: int):
        outer = Local(n, Local(n + 1))
        inner = outer.other
        assert inner is not None
        return inner.x

    assert jit.script(use)(3) == 4 and Local(2) == Local(2)


@dataclasses.dataclass
class Factory:
    names: List[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class NoParameter:
    n: int = dataclasses.field(default=3, init=False)


@pytest.mark.parametrize("cls, message", [(Factory, "Default factory initializers"), (NoParameter, "Fields with init=False")])
def test_errors(cls, message):
    with pytest.raises(NotImplementedError, match=f"{message} are not supported in TorchScript dataclasses"):
        jit.script(cls)


@dataclasses.dataclass(order=True)
class Measured:
    x: float
    y: float
    norm: Optional[Tensor] = None
    tag: Optional[int] = None

    def __post_init__(self):
        self.norm = cresset.tensor(self.x) ** 2 + cresset.tensor(self.y) ** 2


@dataclasses.dataclass(order=True)
class Tagged:
    tag: Optional[int] = None


def all_comparisons(a: float, b: float, c: float, d: float):
    p, q = Measured(a, b), Measured(c, d)
    return [p == q, p < q, p <= q, p > q, p >= q]


def tags_are_equal(a: Optional[int], b: Optional[int]):
    return Tagged(a) == Tagged(b)


def tag_is_less(a: Optional[int], b: Optional[int]):
    return Tagged(a) < Tagged(b)


def test_fields_that_may_be_none_are_compared():
    compiled = jit.script(all_comparisons)
    for numbers in ((1.0, 2.0, 1.0, 2.0), (1.0, 2.0, 1.0, 3.0), (2.0, 2.0, 1.0, 3.0)):
        assert compiled(*numbers) == all_comparisons(*numbers)
    equal = jit.script(tags_are_equal)
    for a in (None, 1, 2):
        for b in (None, 1, 2):
            assert equal(a, b) == tags_are_equal(a, b)
    assert jit.script(tag_is_less)(1, 2) and not jit.script(tag_is_less)(2, 1)
    with pytest.raises(Exception, match="Cannot compare Tagged with None"):
        jit.script(tag_is_less)(1, None)
