"""Refusals in PyTorch's words, and which Python classes errors of compilation have (texts: PyTorch 2.13)."""

import re
from typing import Any, Dict

import pytest

import cresset as torch
from cresset import jit, nn
from cresset.jit.frontend import FrontendError

TEXTS = {
    "augmented assignment": ("def f(x):\n    a, b += x\n    return a\n", "augmented assignment can only have one LHS expression"),
    "iterables side by side": ("def f(x: int):\n    for i, j in [2, 3], [5, 6]:\n        x += i\n    return x\n", "List of iterables is not supported currently"),
    "range of a float": ("def f():\n    for i in range(1, .5):\n        print(i)\n", "all inputs of range must be ints, found float in argument 1"),
    "a tuple of any types": ("def f(t: Any):\n    if isinstance(t, tuple):\n        a, b = t\n", "Provided tuple is not fully defined/refined including its element types"),
    "too few members": ("def f(t: Tuple[int, int]):\n    a, b, c = t\n", "need 3 values to unpack but found only 2"),
    "a tensor": ("def f(x):\n    a, b = x\n", "Tensor (inferred) cannot be used as a tuple"),
    "types in a comment": ("def f(a):\n    # type: (int, int) -> int\n    return a\n", "Number of type annotations (2) did not match the number of function parameters (1):"),
    "comments of parameters and a full one": ("def f(a,  # type: int\n      b):\n    # type: (int, int) -> int\n    return a\n", "Return type line"),
    "comments of some parameters": ("def f(a,  # type: int\n      b):\n    # type: (...) -> int\n    return a\n", "Number of type annotations (1) did not match the number of function parameters (2)"),
    "an operation as a type": ("def f(x: Tuple[3 + 4, Tensor]):\n    return x\n", "Expression of type + cannot be used in a type expression"),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_words(name):
    source, text = TEXTS[name]
    with pytest.raises(RuntimeError, match=re.escape(text)):
        jit.CompilationUnit(source)


MARKS = [("x.tolist()", "x.tolist("), ('x["hi"]', 'x["hi"]'), ("x.foo()", "x.foo"), ("torch.foo(x)", "torch.foo"), ('x + "ab"', 'x + "ab"'), ('-"ab"', '-"ab"')]


@pytest.mark.parametrize("expression, marked", MARKS)
def test_marks_in_programs_that_are_texts(expression, marked):
    with pytest.raises(RuntimeError) as error:
        jit.CompilationUnit(f"def f(x):\n    y = {expression}\n    return y\n")
    line, mark = [pair for pair in zip(str(error.value).split("\n"), str(error.value).split("\n")[1:]) if "<--- HERE" in pair[1]][0]
    start = mark.index("~")
    assert line[start : start + mark.count("~")] == marked


def raises_text(x: int):
    raise Exception("ab")


def test_marks_of_texts_in_functions_leave_out_the_quote():
    """As torch 2.13: 19 characters of the statement here, 20 in a program that is a text."""
    with pytest.raises(Exception, match=r"\n    ~{19} <--- HERE"):
        jit.script(raises_text)(1)
    with pytest.raises(Exception, match=r"\n    ~{20} <--- HERE"):
        jit.CompilationUnit('def f(x: int):\n    raise Exception("ab")\n').f(1)


def divided(a: int, b: int):
    return divmod(a, b)


def test_divmod():
    with pytest.raises(RuntimeError, match="^ZeroDivisionError: integer division or modulo by zero"):
        jit.script(divided)(1, 0)


@jit.ignore
class Ignored:
    pass


class Instantiates(nn.Module):
    def forward(self, x):
        return Ignored()


def test_classes_that_stay_in_python():
    with pytest.raises(FrontendError, match="Cannot instantiate class 'Ignored' in a script function(.|\n)*def forward"):
        jit.script(Instantiates())


def inner(x: int) -> int:
    return x + 10


def middle(x):
    return inner("hello")


def outer(x):
    return middle(x)


def test_the_calls_that_led_to_an_error():
    with pytest.raises(RuntimeError, match="Expected a value of type 'int'(.|\n)*'middle' is being compiled since it was called from 'outer'"):
        jit.script(outer)


@jit.script
class Bare:
    def __init__(self):
        self.x = 1

    def foo(self, y: int):
        return self.x + y


def asked():
    a = Bare()
    return hasattr(a, "foo"), hasattr(a, "x"), hasattr(a, "bla"), hasattr(Bare, "foo"), hasattr(Bare, "a")


def test_hasattr_of_classes():
    assert jit.script(asked)() == asked() == (True, True, False, True, False)


@jit.script
class TwoArguments:
    def __init__(self):
        self.count = 1

    def __enter__(self, incr: int):
        self.count += incr

    def __exit__(self, type: Any, value: Any, tb: Any):
        pass


def entered() -> int:
    with TwoArguments():
        pass
    return 1


def test_managers_with_other_arguments():
    with pytest.raises(RuntimeError, match="__enter__ must have only one argument and one return value"):
        jit.script(entered)


class Commented(jit.ScriptModule):
    @jit.ignore
    def pair(self, x, y):
        # type: (Tensor, Tensor) -> Tuple[Tensor, Tensor]
        return x + y, y

    @jit.script_method
    def forward(self, x):
        y, z = self.pair(x, x)
        return y + z


def test_types_in_comments_of_ignored_methods():
    assert Commented()(torch.ones(1)).item() == 3


class Typed(jit.ScriptModule):
    def __init__(self):
        super().__init__()
        self.scale = jit.Attribute(0.5, float)
        self.names = jit.Attribute({}, Dict[str, int])
        assert self.scale > 0.0

    @jit.script_method
    def forward(self, x):
        return x * self.scale + len(self.names)


def test_attributes_with_types_in_init():
    module = Typed()
    assert module(torch.ones(1)).item() == 0.5 and module.names == {}


class WithProperty(nn.Module):
    __jit_ignored_attributes__ = ["ignored"]

    @property
    def ignored(self):
        raise ValueError("must not be asked")

    @jit.ignore
    def call(self):
        return self.ignored


def test_ignored_properties():
    assert isinstance(jit.script(WithProperty()).call(), property)


def summed_backward(x):
    x.sum().backward()


def gradients(x, y):
    return torch.autograd.grad([x.sum()], [y])


def test_code_with_gradients():
    assert "torch.autograd.backward(torch.sum(x))" in jit.script(summed_backward).code
    assert "torch.autograd.grad([torch.sum(x)], [y])" in jit.script(gradients).code


def test_signatures():
    def commented(a, b):
        # type: (int, Tensor) -> Tensor
        return b

    def annotated(a: int, b) -> torch.Tensor:
        return b

    def neither(a):
        return a

    def called(a):
        # type: print("Hello") -> Tensor # noqa: F723
        return a

    text = lambda signature: ([str(t) for t in signature[0]], str(signature[1]))
    assert text(jit.annotations.get_signature(commented, None, 1, False)) == (["int", "Tensor"], "Tensor")
    assert text(jit.annotations.get_signature(annotated, None, 1, False)) == (["int", "Tensor"], "Tensor")
    assert text(jit.annotations.get_signature(annotated, None, 1, True)) == (["Tensor"], "Tensor")
    assert jit.annotations.get_signature(neither, None, 1, False) is None
    with pytest.raises(RuntimeError, match="Type annotation should not contain calls, but 'print\\(\"Hello\"\\)' does"):
        jit.annotations.get_signature(called, None, 1, False)


def test_fusers_are_names():
    with jit.fuser("fuser1"):
        pass
    with pytest.raises(Exception, match="unrecognized fuser option \\(name: bad\\)"):
        with jit.fuser("bad"):
            pass


def test_dictionaries_of_scripts_and_other_keys():
    scripted: Any = jit.script({1: 2})
    for ask in (lambda: scripted["key"], lambda: "key" in scripted):
        with pytest.raises(KeyError):
            ask()
