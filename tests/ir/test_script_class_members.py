"""Static and class methods, properties, class attributes and bases of script classes; expected is what Python gives."""

from typing import Final, List

import cresset
import pytest
from cresset import Tensor, nn

jit = cresset.jit


class Boxes:
    kind = 3

    def __init__(self, tensor: Tensor):
        self.tensor = tensor

    @staticmethod
    def twice(n: int) -> int:
        return n * 2

    @staticmethod
    def of_ones(n: int) -> "Boxes":
        return Boxes(cresset.ones(Boxes.twice(n)))

    @classmethod
    def cat(cls, boxes: List["Boxes"]) -> "Boxes":
        return cls(cresset.cat([b.tensor for b in boxes]))

    @classmethod
    def pair(cls, first: int, second: int = 1) -> "Boxes":
        return cls.cat([cls.of_ones(first), Boxes.of_ones(second)])

    @property
    def length(self) -> int:
        return self.twice(self.tensor.size(0))

    @jit.ignore
    def in_python(self, factor: int) -> int:
        return sum(factor for _ in self.tensor)

    @jit.unused
    def unused(self) -> int:
        return yes_this_name_is_unknown  # noqa: F821

    def __len__(self) -> int:
        return self.tensor.size(0)


class OnlyStatics:
    @staticmethod
    def plus_one(x: Tensor) -> Tensor:
        return OnlyStatics.plus(x, 1)

    @staticmethod
    def plus(x: Tensor, n: int) -> Tensor:
        return x + n


class Base:
    def __init__(self):
        self.number = 1

    def inherited(self) -> int:
        return self.number


class Derived(Base):
    """A script that mentions the class takes what it defines itself."""

    def __init__(self, number: int):
        self.number = number

    def own(self) -> int:
        return self.number + 1


class Accessors:
    __jit_unused_properties__ = ["not_compiled"]

    def __init__(self, number: int):
        self._number = number

    @property
    def number(self) -> int:
        return self._number

    @number.setter
    def number(self, value: int):
        self._number = value

    @property
    def read_only(self) -> int:
        return self._number + 1

    @property
    def not_compiled(self):
        return [type(self)]


class WithStatics(nn.Module):
    @staticmethod
    def plus(x: Tensor) -> Tensor:
        return x + 1

    @classmethod
    def times(cls, x: Tensor) -> Tensor:
        return cls.plus(x) * 2

    def forward(self, x: Tensor) -> Tensor:
        return self.times(self.plus(x)) + WithStatics.plus(x)


def static_of_class(n: int):
    return Boxes.twice(n), Boxes.of_ones(n).tensor


def static_of_object(n: int):
    return Boxes.of_ones(n).twice(n), Boxes.of_ones(n).length


def static_as_value(n: int):
    f = Boxes.twice
    return f(f(n))


def only_statics(n: int):
    return OnlyStatics.plus_one(cresset.ones(n))


def class_method_of_object(n: int):
    boxes = Boxes.of_ones(n)
    return boxes.cat([boxes, boxes]).tensor, boxes.pair(n).tensor


def class_method_of_class(n: int):
    return Boxes.pair(n, second=2).tensor, len(Boxes.pair(first=n))


def ignored_method(n: int):
    return Boxes.of_ones(n).in_python(n)


def own_methods_of_derived(n: int):
    return Derived(n).own()


def properties(n: int):
    a = Accessors(n)
    a.number = a.number + 1
    a.number += 5
    return a.number, a.read_only


PROGRAMS = [
    static_of_class, static_of_object, static_as_value, only_statics, class_method_of_object, class_method_of_class, ignored_method,
    own_methods_of_derived, properties,
]  # fmt: skip


@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_programs(function):
    cresset.testing.assert_close(jit.script(function)(3), function(3))


def test_static_and_class_methods_of_modules():
    module, x = WithStatics(), cresset.ones(2)
    assert jit.script(module)(x).equal(module(x))

    def names_the_class(x):
        return WithStatics.plus(x)

    assert jit.script(names_the_class)(x).equal(x + 1)


def test_static_methods_are_saved(tmp_path):
    class Uses(nn.Module):
        def forward(self, n: int):
            return Boxes.of_ones(n).length, Boxes.pair(n).tensor

    jit.script(Uses()).save(str(tmp_path / "m.pt"))
    cresset.testing.assert_close(jit.load(str(tmp_path / "m.pt"))(2), Uses()(2))


class Constant:
    kind: Final[int] = 3

    def __init__(self):
        self.x = 1

    def get(self) -> int:
        return self.kind


def unknown_static(n: int):
    return Boxes.nothing(n)


def unknown_method(n: int):
    return Boxes.of_ones(n).nothing()


def class_attribute(n: int):
    return Boxes.of_ones(n).kind


def calls_inherited(n: int):
    return Derived(n).inherited()


def sets_read_only(n: int):
    a = Accessors(n)
    a.read_only = 3


def reads_unused(n: int):
    return Accessors(n).not_compiled


def makes_a_module(n: int):
    return WithStatics()


ATTRIBUTE = "is defined as a class attribute which currently is not supported. Consider converting this to an instance attribute."
NO_BASES = "TorchScript classes does not support inheritance yet. Please directly inherit from 'object'."
ERRORS = [
    (Derived, NO_BASES),
    (calls_inherited, NO_BASES),
    (Constant, f"'kind' {ATTRIBUTE}"),
    (class_attribute, f"'kind' {ATTRIBUTE}"),
    (unknown_static, "attribute lookup is not defined on class"),
    (unknown_method, "has no attribute or method 'nothing'. Did you forget to initialize an attribute in __init__()?"),
    (sets_read_only, "Tried to set read-only attribute: read_only"),
    (reads_unused, "has no attribute or method 'not_compiled'"),
    (makes_a_module, "Cannot instantiate class 'WithStatics' in a script function"),
]


@pytest.mark.parametrize("compiled,message", ERRORS, ids=lambda p: getattr(p, "__name__", ""))
def test_errors(compiled, message):
    with pytest.raises(RuntimeError) as error:
        jit.script(compiled)
    assert message in str(error.value)


def test_unused_methods_raise_when_they_run():
    def runs(n: int):
        return Boxes.of_ones(n).unused()

    with pytest.raises(RuntimeError, match="annotated to be ignored and cannot be run"):
        jit.script(runs)(2)


def test_a_library_may_name_another_class_in_place_of_its_own():
    """As detectron2 does: its class has any fields, a script takes one that was written for it."""

    class Instances:
        pass

    class ScriptedInstances:
        def __init__(self, size: int):
            self.size = size

    jit.script(ScriptedInstances)
    Instances._jit_override_qualname = cresset._jit_internal._qualified_name(ScriptedInstances)

    def size(i: Instances):
        return i.size

    assert jit.script(size)(ScriptedInstances(4)) == 4


def test_libraries_may_make_the_compiler_forget():
    from cresset.jit._recursive import concrete_type_store
    from cresset.jit._state import _jit_caching_layer

    first, module = jit.script(only_statics), jit.script(WithStatics())
    assert jit.script(only_statics) is first
    concrete_type_store.type_store.clear()
    _jit_caching_layer.clear()
    again = jit.script(WithStatics())
    assert jit.script(only_statics) is not first and again._c.qualified_name != module._c.qualified_name
    assert again(cresset.ones(1)).equal(module(cresset.ones(1)))
