"""Objects of Python on the side of scripts: of compiled classes, generators, modules of containers behind interfaces; what a class leaves out."""

import io
from typing import Dict, Iterable, Iterator, List, Tuple

import pytest

import cresset
from cresset import jit, nn


class Counter:
    def __init__(self, count: int):
        self.count = count

    def set(self, value: int):
        self.count = value

    def get(self) -> int:
        return self.count

    @property
    def double(self) -> int:
        return 2 * self.count


@jit.script
def set_to_two(counter: Counter):
    counter.set(2)


def test_an_object_by_reference():
    counter = jit.script(Counter(1))
    assert (counter.get(), counter.count, counter.double) == (1, 1, 2)
    set_to_two(counter)
    assert (counter.get(), counter.count, counter.double) == (2, 2, 4)
    counter.count = 7
    assert counter.get() == 7
    assert "Counter" in repr(counter)


class Variadic:
    def __call__(self, first: int, *others):
        return first


def test_an_object_whose_class_is_no_script():
    with pytest.raises(jit.frontend.NotSupportedError, match="can't take variable number of arguments"):
        jit.script(Variadic())


class Prepared(Variadic):
    def __prepare_scriptable__(self):
        def plain(first: int, second: int) -> int:
            return first + second

        return plain


def test_an_object_that_names_what_stands_for_it():
    assert jit.script(Prepared())(1, 2) == 3


def normal():
    generator = cresset.Generator()
    generator.manual_seed(2023)
    return cresset.empty(3).normal_(-1.0, 1.0, generator=generator), generator.initial_seed()


def seeded():
    cresset.manual_seed(7)
    return cresset.empty(3).normal_()


@pytest.mark.parametrize("function", [normal, seeded])
def test_generators(function):
    scripted = jit.script(function)
    for _ in range(2):
        cresset.manual_seed(1)
        wanted = function()
        cresset.manual_seed(2)
        found = scripted()
        pairs = zip(wanted, found) if isinstance(wanted, tuple) else [(wanted, found)]
        assert all(cresset.equal(a, b) if isinstance(a, cresset.Tensor) else a == b for a, b in pairs)


def test_a_seed_of_its_own():
    @jit.script
    def fresh():
        generator = cresset.Generator(device="cpu")
        seed = generator.seed()
        return seed == generator.initial_seed()

    assert fresh()


def test_items_by_method():
    @jit.script
    def rows(x):
        return x.__getitem__(cresset.tensor([0, 2])), x.__getitem__(1)

    x = cresset.arange(6).view(3, 2)
    a, b = rows(x)
    assert cresset.equal(a, x[[0, 2]]) and cresset.equal(b, x[1])


def test_unions_written_with_a_bar():
    def kind(x: List[int] | int) -> int:
        if jit.isinstance(x, int | float | str):
            return x + 1
        return len(x)

    assert jit.script(kind)(3) == 4 and jit.script(kind)([1, 2, 3]) == 3


def test_displays_in_a_tuple_take_its_types():
    @jit.script
    def displays():
        pair: Tuple[List[int], Tuple[int, Dict[str, float]]] = ([], (1, {}))
        return pair

    assert displays() == ([], (1, {}))
    assert str(displays.graph.findNode("prim::ListConstruct").output().type()) == "List[int]"


@jit.interface
class Step(nn.Module):
    def forward(self, x: cresset.Tensor) -> cresset.Tensor:
        pass


class Plus(nn.Module):
    def __init__(self, n: int):
        super().__init__()
        self.n = n

    def forward(self, x: cresset.Tensor) -> cresset.Tensor:
        return x + self.n


class Choosing(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = nn.ModuleList([Plus(1), Plus(10)])
        self.named = nn.ModuleDict({"a": Plus(100), "b": Plus(1000)})

    def forward(self, x: cresset.Tensor, i: int, key: str):
        step: Step = self.steps[i]
        other: Step = self.named[key]
        return other.forward(step.forward(x))


def test_modules_by_index_in_archives():
    module, buffer = jit.script(Choosing()), io.BytesIO()
    module.save(buffer)
    buffer.seek(0)
    again = jit.load(buffer)
    for i, key, wanted in ((0, "a", 101), (1, "b", 1010)):
        assert module(cresset.zeros(1), i, key).item() == again(cresset.zeros(1), i, key).item() == wanted
    assert again.code == module.code


class Ignoring(nn.Module):
    __jit_ignored_attributes__ = ["number", "part"]

    def __init__(self, use: bool):
        super().__init__()
        self.number, self.part, self.use = 1, Plus(3), use

    def forward(self, x):
        return x

    @jit.ignore
    def in_python(self) -> int:
        return self.number + self.part.n


class Using(Ignoring):
    def forward(self, x):
        return self.part(x)


def test_ignored_attributes_and_modules():
    module = jit.script(Ignoring(False))
    assert module.in_python() == 4 and module(cresset.ones(1)).item() == 1
    with pytest.raises(RuntimeError, match="attribute was ignored during compilation"):
        jit.script(Using(True))


@jit.script
class Partly:
    def __init__(self, n: int):
        self.n = n

    @jit.unused
    def unused(self, x: int, y: Iterable[int], **kwargs) -> int:
        return next(iter(y))

    @jit._drop
    def __iter__(self) -> Iterator[int]:
        return iter([self.n])

    def uses(self) -> int:
        return self.unused(y="hi", x=3)


def test_what_a_class_leaves_out():
    @jit.script
    def calls(p: Partly) -> int:
        return p.uses()

    with pytest.raises(jit.Error, match="annotated to be ignored and cannot be run"):
        calls(Partly(1))


def test_frozen_modules_keep_methods_of_submodules():
    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.plus = Plus(2)

        def forward(self, x: cresset.Tensor) -> cresset.Tensor:
            return self.plus(x)

    frozen = jit.freeze(jit.script(Outer().eval()), preserved_attrs=["plus.forward"])
    assert frozen.plus.forward(cresset.ones(1)).item() == 3 and frozen(cresset.ones(1)).item() == 3


def test_objects_that_python_calls():
    class Names:
        @jit.ignore
        def __call__(self, *args) -> str:
            return type(args[0]).__name__

    names = Names()

    @jit.script
    def name(x):
        return names(x)

    assert name(cresset.ones(2)) == "Tensor"
