"""Classes, enums, named tuples and interfaces in scripts; expected is what Python gives."""

import enum
from typing import Any, Dict, List, NamedTuple, Optional

import cresset
import pytest
from cresset import Tensor, nn

jit = cresset.jit


class Point:
    def __init__(self, x: int, y: int, names: Optional[List[str]] = None):
        self.x = x
        self.y = y
        self.names: List[str] = [] if names is None else names
        self.seen: Dict[str, int] = {}

    def sum(self, times: int = 1) -> int:
        return (self.x + self.y) * times

    def note(self, name: str) -> None:
        self.names.append(name)
        self.seen[name] = len(self.names)

    def __add__(self, other: "Point") -> "Point":
        return Point(self.x + other.x, self.y + other.y)

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, i: int) -> str:
        return self.names[i]

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def __eq__(self, other: "Point") -> bool:
        return self.x == other.x and self.y == other.y

    @property
    def twice(self) -> int:
        return self.x * 2

    @twice.setter
    def twice(self, v: int):
        self.x = v // 2

    @staticmethod
    def diagonal(n: int) -> "Point":
        return Point(n, n)


class Color(enum.Enum):
    RED = 1
    GREEN = 2


class Mode(enum.Enum):
    FAST = "fast"
    SLOW = "slow"


class Pair(NamedTuple):
    first: Tensor
    second: int = 5


class Total(NamedTuple):
    pair: Pair
    colors: List[int]


def makes_points(n: int):
    p = Point(n, 2)
    p.note("a")
    p.note("b")
    q = p + Point.diagonal(3)
    q.twice = 20
    return p.sum(), p.sum(times=3), q.x, q.y, len(p), p[1], "a" in p, "z" in p, p.seen, q.twice, p == Point(n, 2), p == q


def takes_a_point(p: Point) -> int:
    p.x += 1
    return p.sum()


def gives_a_point(n: int) -> Point:
    return Point(n, n + 1, ["n"])


def points_in_containers(n: int):
    points = [Point(i, i) for i in range(n)]
    by_name = {"a": points[0]}
    best: Optional[Point] = None
    for p in points:
        if best is None or p.sum() > best.sum():
            best = p
    assert best is not None
    return best.sum(), by_name["a"].x, len(points)


def enums(c: Color, m: Mode):
    if c == Color.RED:
        return c, c.name, c.value, m.value, m is Mode.FAST
    return Color.RED, c.name, c.value + 10, m.name, m != Mode.SLOW


def enum_loop(n: int):
    names = [c.name for c in Color]
    total = 0
    for c in Color:
        total += c.value * n
    return names, total


def named_tuples(x: Tensor):
    pair = Pair(x)
    other = Pair(second=3, first=x + 1)
    total = Total(pair, [1, 2])
    a, b = other
    return pair, other.second, total.pair.second, total.colors, a, b, pair[1]


X = cresset.ones(2)
PROGRAMS = [
    (makes_points, (4,)), (takes_a_point, (Point(1, 2),)), (points_in_containers, (3,)), (enums, (Color.RED, Mode.FAST)),
    (enums, (Color.GREEN, Mode.SLOW)), (enum_loop, (2,)), (named_tuples, (X,)),
]  # fmt: skip


@pytest.mark.parametrize("function, args", PROGRAMS, ids=[f"{f.__name__}{i}" for i, (f, _) in enumerate(PROGRAMS)])
def test_programs(function, args):
    actual = jit.script(function)(*args)  # first: Python's own run may change the arguments
    expected = function(*args)
    assert repr(actual) == repr(expected) and type(actual) is type(expected)


def test_objects_cross_the_border():
    point = jit.script(gives_a_point)(3)
    assert isinstance(point, Point) and (point.x, point.y, point.names) == (3, 4, ["n"]) and point.sum() == 7
    with pytest.raises(RuntimeError, match=r"Expected a value of type '__torch__.*Point' for argument 'p' but instead found type 'int'"):
        jit.script(takes_a_point)(3)


class WithObjects(nn.Module):
    def __init__(self):
        super().__init__()
        self.point = Point(1, 2)
        self.mode = Mode.SLOW
        self.pair = Pair(cresset.ones(1), 2)

    def forward(self, x: Tensor):
        self.point.note("x")
        if self.mode == Mode.SLOW:
            x = x + self.point.sum()
        return x * self.pair.second, len(self.point)


def test_objects_as_attributes():
    module = WithObjects()
    script = jit.script(module)
    for n in (1, 2):
        assert repr(script(X)) == repr((cresset.full((2,), 8.0), n))


class Guard:
    def __init__(self, log: List[str]):
        self.log = log

    def __enter__(self):
        self.log.append("in")
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any):
        self.log.append("out")


def guarded(x: Tensor):
    log: List[str] = []
    with Guard(log) as g:
        g.log.append("body")
    with cresset.no_grad():
        y = x * 2
    return log, y.requires_grad, (x * 2).requires_grad


def test_with():
    x = cresset.ones(1, requires_grad=True)
    assert jit.script(guarded)(x) == guarded(x) == (["in", "body", "out"], False, True)


class Derived(Point):
    pass


class Mixed(enum.Enum):
    A = 1
    B = "b"


def takes_mixed(x: Mixed):
    return 1


def makes_module(x):
    return nn.Linear(2, 2)(x)


@pytest.mark.parametrize(
    "compiled, message",
    [
        (Derived, "TorchScript classes does not support inheritance yet. Please directly inherit from 'object'"),
        (int, "<class 'int'> is a built-in class"),
        (takes_mixed, "Unknown type name|Could not unify"),
        (makes_module, "Cannot instantiate class 'Linear' in a script function"),
    ],
)
def test_errors(compiled, message):
    with pytest.raises((RuntimeError, TypeError), match=message):
        jit.script(compiled)


def test_decorator_gives_the_class_back():
    @jit.script
    class Local:
        def __init__(self, n: int):
            self.n = n

        def again(self) -> int:
            return Local(self.n + 1).n

    def use(n: int) -> int:
        return Local(n).again()

    assert Local(3).again() == 4 and jit.script(use)(3) == 4


class Offset:
    def __init__(self, by: int):
        self.by = by

    def of(self, n: int) -> int:
        return self.by + n


class NotForScripts:
    def __init__(self, text):
        self.lines = {*text}

    def of(self, n):
        return sorted(self.lines, key=lambda line: line)[n]


class HoldsObjects(nn.Module):
    def __init__(self):
        super().__init__()
        self.offset, self.other = Offset(3), NotForScripts("ab")

    def forward(self, x: Tensor):
        return x + self.offset.of(2)


class UsesWhatCannotBeCompiled(HoldsObjects):
    def forward(self, x: Tensor):
        return x + self.other.of(2)


def test_classes_of_attributes_are_compiled_where_they_can_be():
    assert jit.script(HoldsObjects())(X).tolist() == (X + 5).tolist()
    with pytest.raises(RuntimeError, match="has no attribute 'other' .*failed to convert Python type: 'NotForScripts' to a TorchScript type"):
        jit.script(UsesWhatCannotBeCompiled())
