"""Which objects the names of a source text are: those of the text, of who compiles it, and of a program without Python, in this order."""

import math
import re
from typing import List

import pytest

import cresset
from cresset import _C, jit, nn

GLOBAL = "a global"


@jit.script
class Counter:
    def __init__(self, start: int):
        self.at = start

    def next(self) -> int:
        self.at += 1
        return self.at


def helper(x):
    return x * 3


def unit(text, **options):
    return jit.CompilationUnit(text, _frames_up=2, **options)  # this function and the fixture of the folder stand in between


def test_classes_and_functions_of_the_module():
    made = unit("""
def f(x):
    c = Counter(4)
    return helper(x) + c.next()
def g(c: Counter) -> int:
    return c.next() + c.next()
""")
    assert made.f(cresset.ones(1)).item() == 8
    assert made.g(Counter(0)) == 3


def test_variables_of_the_caller_come_first():
    def helper(x):
        return x + 100

    @jit.script
    class Counter:
        def __init__(self, start: int):
            self.start = start

    made = unit("def f(x):\n    return helper(x) + Counter(5).start\n")
    assert made.f(cresset.ones(1)).item() == 106


def test_names_of_the_text_come_before_all():
    made = unit("def helper(x):\n    return x - 1\ndef f(x):\n    return helper(x)\n")
    assert made.f(cresset.ones(1)).item() == 0


def test_names_without_python_come_last():
    made = unit("def f(x):\n    # type: (Tensor) -> Tensor\n    y = torch.jit.annotate(List[int], [1])\n    return torch.relu(x) + len(y)\n")
    assert made.f(-cresset.ones(1)).item() == 1


def test_a_second_text_sees_the_first():
    made = unit("def f(x):\n    return x + 1\n")
    made.define("def g(x):\n    return f(x) * 2\n")
    assert made.g(cresset.ones(1)).item() == 4


def test_a_callback_in_place_of_the_callers_variables():
    made = jit.CompilationUnit()
    made.define("def f(x):\n    return double(x)\n", rcb={"double": helper}.get)
    assert made.f(cresset.ones(1)).item() == 3


def test_values_cannot_be_used():
    with pytest.raises(RuntimeError, match="python value of type 'str' cannot be used as a value"):
        unit("def f():\n    return GLOBAL\n")
    with pytest.raises(RuntimeError, match="undefined value nowhere"):
        unit("def f():\n    return nowhere\n")


def test_callbacks_of_frames_and_closures():
    from cresset import _jit_internal

    local = 5
    find = _jit_internal.createResolutionCallbackFromFrame()
    assert find("local") == local and find("GLOBAL") == GLOBAL and find("len") is len and find("nowhere") is None

    def outer():
        captured = 7
        return lambda: captured

    find = _jit_internal.createResolutionCallbackFromClosure(outer())
    assert find("captured") == 7 and find("math") is math and find("nowhere") is None


def test_methods_from_texts_in_init_and_later():
    class Module(jit.ScriptModule):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(cresset.full((2,), 2.0))
            self.define("""
                def forward(self, x):
                    # type: (Tensor) -> Tensor
                    return self.scaled(helper(x))
                def scaled(self, x):
                    return x * self.weight
            """)

        @jit.script_method
        def both(self, x):
            return self.forward(x) + self.scaled(x)

    module = Module()
    x = cresset.ones(2)
    assert cresset.equal(module(x), 6 * x) and cresset.equal(module.both(x), 8 * x)
    module.define("def third(self, x):\n    return helper(self.both(x))\n")
    assert cresset.equal(module.third(x), 24 * x)
    with pytest.raises(RuntimeError, match="Can't redefine method: third on class"):
        module.define("def third(self, x):\n    return x\n")
    with pytest.raises(RuntimeError, match="undefined value nowhere"):
        module.define("def fourth(self, x):\n    return nowhere\n")
    module.define("def fourth(self, x: List[int]):\n    return len(x)\n")
    assert module.fourth([1, 2]) == 2 and List is not None


@pytest.mark.parametrize("make", [lambda: jit.trace(nn.Sequential(nn.ReLU()), cresset.ones(1)), lambda: jit.script(nn.Sequential(nn.ReLU()))],
                         ids=["trace", "script"])  # fmt: skip
def test_a_module_that_gets_methods_stays_a_container(make):
    module = make()
    module.define("def more(self, x: Tensor):\n    return self.forward(x) + 1\n")
    assert module.more(cresset.ones(1)).item() == 2
    assert len(list(module.children())) == 1


def three() -> int:
    return 3


def test_python_is_asked_of_a_name_once(monkeypatch):
    from cresset.jit import _definitions

    asked = []
    value = _definitions.Resolver.value
    monkeypatch.setattr(_definitions.Resolver, "value", lambda self, name: asked.append(name) or value(self, name))

    @jit.script
    def f(x: int) -> int:
        for i in range(three()):
            x = three() + three() * x
        return abs(x) + three()

    assert f(1) == 69 and len(asked) == len(set(asked)) and "three" in asked


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: _C.ScriptThing.operator(3), "a str was required; a int was given."),
        (lambda: _C.ScriptThing.constant(3), "ScriptThing.constant() takes 2 arguments; 1 were given."),
        (lambda: _C.ScriptThing.tuple((_C.ScriptThing.native("len"), ("native", "len"))), "a ScriptThing was required; a tuple was given."),
        (lambda: _C._jit_define("__torch__", [("def f(): pass", "", 1, None, {}, {}, "f")], None, None), "a ScriptDefinition was required; a tuple was given."),
        (lambda: _C.ScriptDefinition("def f(): pass", "", 1, None, [], {}, "f"), "ScriptDefinition() argument 5 must be dict, not list"),
    ],
)
def test_what_crosses_to_the_compiler_has_types(make, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        make()


def test_things_say_what_they_are():
    thing = _C.ScriptThing.statics(int, "why")
    assert (thing.kind, thing.parts, repr(thing)) == ("statics", (int, "why"), "ScriptThing.statics(<class 'int'>, 'why')")
