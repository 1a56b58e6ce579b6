"""Small programs whose compiled form gives what Python gives: slices as objects, sums of tuples, unions, other spellings of operators."""

import cmath
import dataclasses
import io
import math
import warnings
from typing import Any, Dict, List, Optional, Tuple, Union

import pytest

import cresset
from cresset import Tensor, jit, nn

X = cresset.arange(24.0).reshape(2, 3, 4)


def remainders(a: float, b: float):
    return math.remainder(a, b), a % b


def remainder_of_ints(a: int, b: int):
    return math.remainder(a, b), a % b


def logarithms(z: complex):
    return cmath.log(z), cmath.exp(z), cmath.sqrt(z), cmath.phase(z), cmath.rect(z.real, 2.0), cmath.rect(1, 2)


def slices_of_a_list(values: List[int], start: int, stop: Optional[int]):
    return values[slice(start, stop)], values[slice(2)], values[slice(None, None, 2)], values[slice(None)]


def slices_of_a_tuple():
    values = (1, "a", 2.0, None)
    return values[slice(0, 2)], values[slice(1, None, 2)]


def slices_of_a_string(text: str):
    return text[slice(1, -1)], text[slice(None, 3)]


def slices_of_a_tensor(x, stop: int):
    return x[slice(0, 1), ..., slice(None, stop)], x[Ellipsis, 0], x[0, Ellipsis, slice(1, stop, 2)]


def sums_of_tuples(a: Tuple[int, str], b: Tuple[float]):
    return a + b, (1,) + a, a + (None, 2) + b, () + a


def spellings(x):
    return cresset.ceil(input=x), cresset.add(input=x, other=x), x.where(x > 3, -x), x.type(cresset.float64)


def hashes(a: Optional[int]):
    return hash(a) == hash(None), hash(cresset.device("cpu")) == hash(cresset.device("cpu"))


def unions_in_arms(n: int):
    if n % 2:
        y: Union[str, int] = "odd"
    else:
        y: Union[str, int] = n
    if isinstance(y, str):
        return y + "!"
    return "even"


def optional_unions_in_arms(n: int) -> Union[str, int, None]:
    if n == 0:
        x: Optional[Union[int, str]] = "none"
    elif n == 1:
        x: Optional[Union[int, str]] = 1
    else:
        x: Optional[Union[int, str]] = None
    return x


def commented(x, n):
    # type: (Tensor, int)
    return x * n, n // 2


def required(x: Optional[int]):
    return jit._unwrap_optional(x)


def grows_from_nothing(x: Optional[Tensor], rounds: int):
    if x is None:
        x = cresset.ones(2)
    while bool(x.sum() < 20):
        x = x + rounds
    previous: Optional[Tensor] = None
    for i in range(rounds):
        previous = x if previous is None else previous + i
    assert previous is not None
    for i in range(rounds):
        for j in range(i):
            previous += j
    return x, previous


def loops_behind_conditions(x: Optional[int], rounds: int):
    if x is None:
        return -1
    last: Optional[int] = 3
    if last is not None:
        for i in range(rounds):
            last += i
    for i in range(rounds):
        x += i
        last = None if i > 3 else x
    return x if last is None else x + last


CASES = [
    (grows_from_nothing, (None, 3)), (grows_from_nothing, (X[0, 0], 4)), (loops_behind_conditions, (None, 2)), (loops_behind_conditions, (1, 3)), (loops_behind_conditions, (1, 6)),
    (remainders, (1.0, -2.2)), (remainders, (7.5, 2.0)), (remainder_of_ints, (5, 3)), (logarithms, (1 + 2j,)), (logarithms, (-1 + 0j,)),
    (slices_of_a_list, ([1, 2, 3, 4, 5], 1, 4)), (slices_of_a_list, ([1, 2, 3, 4, 5], -2, None)), (slices_of_a_tuple, ()),
    (slices_of_a_string, ("abcdef",)), (slices_of_a_tensor, (X, 3)), (sums_of_tuples, ((1, "a"), (2.0,))), (spellings, (X,)), (hashes, (None,)),
    (unions_in_arms, (1,)), (unions_in_arms, (2,)), (optional_unions_in_arms, (0,)), (optional_unions_in_arms, (1,)), (optional_unions_in_arms, (2,)),
    (commented, (X, 3)), (required, (4,)),
]  # fmt: skip


def same(a, b):
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, Tensor):
        return a.dtype == b.dtype and cresset.equal(a, b)
    return type(a) is type(b) and (a == b or (isinstance(a, (float, complex)) and cmath.isclose(a, b, rel_tol=1e-12)))


@pytest.mark.parametrize(("function", "arguments"), CASES, ids=[f"{f.__name__}-{i}" for i, (f, _) in enumerate(CASES)])
def test_as_python(function, arguments):
    expected, found = function(*arguments), jit.script(function)(*arguments)
    assert same(expected, found), f"{found} instead of {expected}"


REFUSED = {
    "none is no value": (lambda: jit.script(required)(None), "Unwrapping null optional"),
    "bare List": ("def f(x: Any):\n    return torch.jit.isinstance(x, List)\n", "Attempted to use List without a contained type. Please add a contained type, e.g. List[int]"),
    "bare Dict": ("def f(x: Any):\n    return torch.jit.isinstance(x, (int, Dict))\n", "Attempted to use Dict without contained types. Please add contained type, e.g. Dict[int, int]"),
    "bare annotation": ("def f(x: Dict):\n    return x\n", "Attempted to use Dict without contained types. Please add contained type, e.g. Dict[int, int]"),
    "keys": ("def f(x: Dict[Union[int, str], str]):\n    return x\n", "Cannot create dict for key type 'Union(int, str)', only int, float, complex, Tensor, device and string keys are supported"),
    "what a loop holds": ("def f(x: Optional[int]):\n    assert x is not None\n    for i in range(3):\n        x = None\n    return x\n", "Variable 'x' previously had type int but is now being assigned to a value of type NoneType"),
    "no numbers": ("def f():\n    return range()\n", "range expected at least 1 arguments, got 0"),
    "whole assignments are marked": ("def f(x: int):\n    x.y = 3\n", "    x.y = 3\n    ~~~~~~~ <--- HERE"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    program, words = REFUSED[case]
    with pytest.raises(RuntimeError) as error:
        jit.CompilationUnit(program) if isinstance(program, str) else program()
    assert words in str(error.value)


@pytest.mark.parametrize(("target", "words"), [
    (List, "Attempted to use List without a contained type"), (dict, "Attempted to use dict without contained types"),
    (Optional, "Attempted to use Optional without a contained type"), ((int, Tuple), "Attempted to use Tuple without a contained type"),
    ([int], "must be a type or a tuple of types"),
])  # fmt: skip
def test_isinstance_in_python_refuses(target, words):
    with pytest.raises(RuntimeError, match=words):
        jit.isinstance([1], target)


def test_isinstance_in_python_warns_of_empty_containers():
    with pytest.warns(UserWarning, match="The inner type of a container is lost"):
        assert jit.isinstance([], List[int])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert jit.isinstance([1], List[int]) and jit.isinstance(None, Optional[int]) and not jit.isinstance({"a": 1}, Dict[str, str])
        assert jit.isinstance((1, "a"), (Tuple[int, str], List[int])) and not jit.isinstance(1, str)


@pytest.mark.parametrize(("written", "shown"), [
    (Union[str, int], "Union[int, str]"), (Union[int, str, float], "Union[float, int, str]"), (Union[int, float, None], "Union[float, int, NoneType]"),
    (Union[List[str], List[int]], "Union[List[int], List[str]]"), (Union[str, Tuple[int], Tensor], "Union[Tensor, Tuple[int], str]"),
])  # fmt: skip
def test_members_of_a_union_have_one_order(written, shown):
    def f(x: written):
        return 1

    assert next(jit.script(f).graph.inputs()).type().annotation_str == shown


def test_what_no_member_of_a_union_takes():
    def f(x: Union[float, int]):
        return 1

    with pytest.raises(RuntimeError, match="Value: 's'\n.*\nCast error details: Expected a member of Union\\[float, int\\] but instead found type str"):
        jit.script(f)("s")


@jit.interface
class Adds:
    def add(self, x: Tensor) -> Tensor:
        pass


@jit.script
class AddsOne:
    def __init__(self):
        pass

    def add(self, x: Tensor) -> Tensor:
        return x + 1


def test_objects_behind_an_interface():
    class Module(nn.Module):
        adder: Adds

        def __init__(self):
            super().__init__()
            self.adder = AddsOne()

        def forward(self, x):
            return self.adder.add(x)

    def call(adder: Adds, x):
        return adder.add(x)

    assert jit.script(Module())(cresset.ones(1)).item() == 2
    assert jit.script(call)(AddsOne(), cresset.ones(1)).item() == 2


@jit.interface
class Runs(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        pass

    def extra(self, x: Tensor) -> Tensor:
        pass


class Complete(nn.Module):
    def forward(self, x):
        return x

    @jit.export
    def extra(self, x):
        return x * 2


def test_modules_put_in_the_place_of_others():
    class Module(nn.Module):
        part: Runs

        def __init__(self):
            super().__init__()
            self.part = Complete()

        def forward(self, x):
            return self.part.forward(x)

    scripted = jit.script(Module())
    with pytest.raises(RuntimeError, match="is not compatible with interface"):
        scripted.part = jit.script(nn.ReLU())
    with pytest.raises(RuntimeError, match="Cannot re-assign modules in a ScriptModule with non-scripted module"):
        scripted.part = Complete()
    scripted.part = jit.script(Complete())


def test_state_that_a_module_makes_of_itself():
    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", cresset.ones(2))

        def forward(self, x):
            return x + self.total

        @jit.export
        def __getstate__(self):
            return self.total, 74, self.training

        @jit.export
        def __setstate__(self, state):
            self.total = state[0] + 10
            self.training = state[2]

    buffer = io.BytesIO()
    jit.save(jit.script(Module()), buffer)
    loaded = jit.load(io.BytesIO(buffer.getvalue()))
    assert cresset.equal(loaded.total, cresset.full((2,), 11.0))


def test_parameters_named_like_constants_in_archives():
    def f(infj: int, nanj: int):
        return (infj + cresset.jit.annotate(complex, complex(0, math.inf))) if infj == 2 else complex(nanj, math.inf)

    buffer = io.BytesIO()
    jit.script(f).save(buffer)
    loaded = jit.load(io.BytesIO(buffer.getvalue()))
    assert loaded(2, 3) == f(2, 3) and loaded(3, 4) == f(3, 4)


def test_what_is_only_passed_to_post_init():
    @jit.script
    @dataclasses.dataclass
    class Point:
        x: float
        power: dataclasses.InitVar[int] = 2
        norm: Optional[float] = None

        def __post_init__(self, power: int):
            self.norm = self.x**power

    def f(x: float, power: int):
        return Point(x, power).norm, Point(x).norm

    assert jit.script(f)(3.0, 3) == (27.0, 9.0)


def test_none_from_python_in_place_of_a_tensor():
    seen = []

    @jit.ignore
    def note(x):
        seen.append(x.item())

    def f(x):
        note(x)
        return x

    assert jit.script(f)(cresset.ones(1)).item() == 1 and seen == [1]


def test_bodies_in_place_of_calls_from_the_start():
    def inner(x):
        return x + 1

    def outer(x):
        return inner(x)

    cresset._C._jit_set_inline_everything_mode(True)
    try:
        assert cresset._C._jit_get_inline_everything_mode()
        assert "prim::CallFunction" not in str(jit.script(outer).graph)
    finally:
        cresset._C._jit_set_inline_everything_mode(False)


def test_any_of_other_names():
    from cresset.jit.annotations import Any as ours

    assert ours is Any


@pytest.mark.parametrize(("value", "kind"), [
    (4, "int"), (4.5, "float"), ([1, 2], "ints"), ([1.5], "floats"), ("s", "str"), (None, "none"), (range(2), "ints"),
])  # fmt: skip
def test_the_member_of_a_union_that_a_value_is(value, kind):
    def f(x: Union[float, int, List[float], List[int], str, None]):
        if isinstance(x, int):
            return "int"
        if isinstance(x, float):
            return "float"
        if isinstance(x, List[int]):
            return "ints"
        if isinstance(x, List[float]):
            return "floats"
        return "none" if x is None else "str"

    if isinstance(value, range):
        value = list(value)
    assert jit.script(f)(value) == kind


def test_ranges_are_lists_of_numbers():
    def f(x: List[int], y: Optional[List[float]] = None):
        return sum(x) if y is None else len(y)

    function = jit.script(f)
    assert function(range(4)) == 6 and function([], range(3)) == 3
