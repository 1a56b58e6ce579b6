"""What scripts cannot say: the words, the line and the mark below it; and what a failed compilation leaves behind."""

from typing import Dict, List, Tuple

import pytest

import cresset
from cresset import _C
from cresset.jit import _definitions

# name: (source, the end of the message)
ERRORS = {
    "two types for a name": (
        """
def f(x: int):
    if x > 0:
        y = 1
    else:
        y = 2.0
    return y
""",
        """Type mismatch: y is set to type int in the true branch and type float in the false branch:
  File "<string>", line 3

def f(x: int):
    if x > 0:
    ~~~~~~~~~
        y = 1
        ~~~~~
    else:
    ~~~~~
        y = 2.0
        ~~~~~~~ <--- HERE
    return y
and was used here:
  File "<string>", line 7
    else:
        y = 2.0
    return y
           ~ <--- HERE
""",
    ),
    "only in the true branch": (
        """
def f(x: int):
    if x > 0:
        y = 1
    return y
""",
        """y is not defined in the false branch:
  File "<string>", line 3

def f(x: int):
    if x > 0:
    ~~~~~~~~~
        y = 1
        ~~~~~ <--- HERE
    return y
and was used here:
  File "<string>", line 5
    if x > 0:
        y = 1
    return y
           ~ <--- HERE
""",
    ),
    "only in the false branch": (
        "def f(x: int):\n    if x > 0:\n        pass\n    else:\n        y = 1\n    return y\n",
        """and was used here:
  File "<string>", line 6
    else:
        y = 1
    return y
           ~ <--- HERE
""",
    ),
    "another type in a branch": (
        "def f(x: int):\n    y = 1\n    if x > 0:\n        y = 2.0\n    return y\n",
        """
Variable 'y' previously had type int but is now being assigned to a value of type float
:
  File "<string>", line 4
    y = 1
    if x > 0:
        y = 2.0
        ~ <--- HERE
    return y
""",
    ),
    "another type in a loop": (
        "def f(x: int):\n    y = 1\n    while x > 0:\n        y = 'a'\n        x -= 1\n    return y\n",
        """
Variable 'y' previously had type int but is now being assigned to a value of type str
:
  File "<string>", line 4
    y = 1
    while x > 0:
        y = 'a'
        ~ <--- HERE
        x -= 1
    return y
""",
    ),
    "only in a loop": (
        "def f(x: int):\n    for i in range(3):\n        y = i\n    return y\n",
        """
undefined value y:
  File "<string>", line 4
    for i in range(3):
        y = i
    return y
           ~ <--- HERE
""",
    ),
    "unknown name": (
        "def f(x):\n    return undefined_name\n",
        """
undefined value undefined_name:
  File "<string>", line 2
def f(x):
    return undefined_name
           ~~~~~~~~~~~~~~ <--- HERE
""",
    ),
    "deleted name": (
        "def f(x):\n    del x\n    return x\n",
        """
undefined value x:
  File "<string>", line 3
def f(x):
    del x
    return x
           ~ <--- HERE
""",
    ),
    "result of another type": (
        "def f(x: int) -> float:\n    return x\n",
        """
Return value was annotated as having type float but is actually of type int:
  File "<string>", line 2
def f(x: int) -> float:
    return x
    ~~~~~~~~ <--- HERE
""",
    ),
    "two types of results": (
        "def f(x: int):\n    if x > 1:\n        return 1\n    return 'a'\n",
        """
Previous return statement returned a value of type int but this return statement returns a value of type str:
  File "<string>", line 4
    if x > 1:
        return 1
    return 'a'
    ~~~~~~~~~~ <--- HERE
""",
    ),
    "a path without result": (
        "def f(x: int) -> int:\n    if x > 1:\n        return 1\n",
        """
Function was not annotated as having type None, but does not return along all paths:
  File "<string>", line 1
def f(x: int) -> int:
~~~~~~~~~~~~~~~~~~~~~
    if x > 1:
    ~~~~~~~~~
        return 1
        ~~~~~~~~ <--- HERE
""",
    ),
    "annotation and value differ": (
        "def f(x: int):\n    y: int = 2.0\n    return y\n",
        """
Variable 'y' is annotated with type int but is being assigned to a value of type float:
  File "<string>", line 2
def f(x: int):
    y: int = 2.0
    ~ <--- HERE
    return y
""",
    ),
    "annotation of an outer name": (
        "def f(x: List[int]):\n    for i in range(3):\n        x: List[int] = []\n    return x\n",
        """
Attempting to declare and annotate the type of variable 'x' but it is already defined in an outer block:
  File "<string>", line 3
def f(x: List[int]):
    for i in range(3):
        x: List[int] = []
        ~ <--- HERE
    return x
""",
    ),
    "function in a variable of a branch": (
        "def f(x: int):\n    g = torch.relu\n    if x > 1:\n        g = torch.sigmoid\n    return x\n",
        """
Cannot re-assign 'g' to a value of type builtin because g is not a first-class value.  Only reassignments to first-class values are allowed:
  File "<string>", line 4
    g = torch.relu
    if x > 1:
        g = torch.sigmoid
        ~ <--- HERE
    return x
""",
    ),
    "arms of an expression": (
        "def f(x: int):\n    return x if x > 1 else 'a'\n",
        """
if-expression's true branch has type int but false branch has type str:
  File "<string>", line 2
def f(x: int):
    return x if x > 1 else 'a'
           ~~~~~~~~~~~~~~~~~~~ <--- HERE
""",
    ),
    "too few to unpack": (
        "def f(x: Tuple[int, int]):\n    a, b, c = x\n    return a\n",
        """
need 3 values to unpack but found only 2:
  File "<string>", line 2
def f(x: Tuple[int, int]):
    a, b, c = x
    ~~~~~~~ <--- HERE
    return a
""",
    ),
    "too many to unpack": (
        "def f(x: int):\n    a, b = x, 1, 2\n    return a\n",
        """
too many values to unpack: need 2 but found 3:
  File "<string>", line 2
def f(x: int):
    a, b = x, 1, 2
    ~~~~ <--- HERE
    return a
""",
    ),
    "index of a tuple": (
        "def f(t: Tuple[int, float], i: int):\n    return t[i]\n",
        """
Cannot index into a Tuple[int, float] with a non-integer literal because we cannot resolve the output type:
  File "<string>", line 2
def f(t: Tuple[int, float], i: int):
    return t[i]
           ~~~~ <--- HERE
""",
    ),
    "index beyond a tuple": (
        "def f(t: Tuple[int, int]):\n    return t[2]\n",
        """
Tuple index out of range. Tuple is length 2 and index is 2:
  File "<string>", line 2
def f(t: Tuple[int, int]):
    return t[2]
           ~~~~ <--- HERE
""",
    ),
    "ellipsis and tensors": (
        "def f(x, m):\n    return x[..., m]\n",
        """
Ellipses followed by tensor indexing is currently not supported:
  File "<string>", line 2
def f(x, m):
    return x[..., m]
           ~~~~~~~~~ <--- HERE
""",
    ),
    "elements of another type": (
        "def f(x: int):\n    y: List[int] = ['a']\n    return y\n",
        """
List type annotation `List[int]` did not match the types of the given list elements, which were unified to str:
  File "<string>", line 2
def f(x: int):
    y: List[int] = ['a']
                   ~~~~ <--- HERE
    return y
""",
    ),
    "keys of two types": (
        "def f(x: int):\n    return {'a': 1, 2: 3}\n",
        """
Dict keys must contain only a single type. Expected: str but found int instead:
  File "<string>", line 2
def f(x: int):
    return {'a': 1, 2: 3}
                    ~ <--- HERE
""",
    ),
    "no iterable": (
        "def f(x: int):\n    for i in x:\n        pass\n",
        """
'int' object is not iterable:
  File "<string>", line 2
def f(x: int):
    for i in x:
    ~~~~~~~~~~~
        pass
        ~~~~ <--- HERE
""",
    ),
    "no attribute": (
        "def f(x: int):\n    return x.foo\n",
        """
'int' object has no attribute or method 'foo'.:
  File "<string>", line 2
def f(x: int):
    return x.foo
           ~~~~~ <--- HERE
""",
    ),
    "attribute of a number": (
        "def f(x: int):\n    x.y = 3\n",
        """
Tried to set an attribute: y on a non-class: int:
  File "<string>", line 2
def f(x: int):
    x.y = 3
    ~~~~~~~ <--- HERE
""",
    ),
    "wrong argument": (
        "def f(x: int):\n    return torch.relu(x)\n",
        """
The original call is:
  File "<string>", line 2
def f(x: int):
    return torch.relu(x)
           ~~~~~~~~~~ <--- HERE
""",
    ),
    "wrong argument of a function": (
        "def g(y: List[float]):\n    return y\n\ndef f(x: int):\n    return g(x)\n",
        """
Expected a value of type 'List[float]' for argument 'y' but instead found type 'int'.
:
  File "<string>", line 5

def f(x: int):
    return g(x)
           ~ <--- HERE
""",
    ),
    "an item of a tuple changes": (
        "def f(x: Tuple[int, int]):\n    x[0] += 1\n    return x\n",
        """
'Tuple[int, int]' does not support augmented assignment to its items:
  File "<string>", line 2
def f(x: Tuple[int, int]):
    x[0] += 1
    ~~~~~~~~~ <--- HERE
    return x
""",
    ),
    "keys of a dict of pairs": (
        "def f(x: List[Union[int, str]], y: List[str]):\n    z: Dict[int, str] = dict(zip(x, y))\n    return z\n",
        """
Dicts may only contain homogeneous keys, but the type of the first generated key was Union[int, str]:
  File "<string>", line 2
def f(x: List[Union[int, str]], y: List[str]):
    z: Dict[int, str] = dict(zip(x, y))
                        ~~~~ <--- HERE
    return z
""",
    ),
    "a list where something else is annotated": (
        "def f(x: int):\n    y: Optional[int] = [x]\n    return y\n",
        """
Expected an annotation of type List but got Optional[int]:
  File "<string>", line 2
def f(x: int):
    y: Optional[int] = [x]
                       ~~ <--- HERE
    return y
""",
    ),
    "a dictionary where something else is annotated": (
        "def f(x: int):\n    y: List[int] = {k: x for k in range(x)}\n    return y\n",
        """
Expected an annotation of type Dict but got List[int]:
  File "<string>", line 2
def f(x: int):
    y: List[int] = {k: x for k in range(x)}
                   ~~~~~~~~~~~~~~~~~~~~~~~~ <--- HERE
    return y
""",
    ),
    "a dictionary where lists are annotated": (
        "def f(x: int):\n    y: Union[List[int], List[str]] = {x: x}\n    return y\n",
        """
Expected an Union type annotation with an inner Dict type, but got Union[List[int], List[str]]:
  File "<string>", line 2
def f(x: int):
    y: Union[List[int], List[str]] = {x: x}
                                     ~~~~~ <--- HERE
    return y
""",
    ),
    "no list of a union has these elements": (
        "def f(x: int):\n    y: Union[List[float], List[str]] = [x]\n    return y\n",
        """
Union type annotation `Union[List[float], List[str]]` can hold List[float] or List[str], but none of those types match the types of the given \
list elements, which were unified to int:
  File "<string>", line 2
def f(x: int):
    y: Union[List[float], List[str]] = [x]
                                       ~~ <--- HERE
    return y
""",
    ),
    "an empty dictionary of a union": (
        "def f(x: int):\n    y: Union[Dict[str, int], Dict[int, int]] = {}\n    return y\n",
        """
Cannot assign an empty dict to a variable annotated to be type Union[Dict[int, int], Dict[str, int]] because there are multiple possible Dict \
type candidates in the Union annotation:
  File "<string>", line 2
def f(x: int):
    y: Union[Dict[str, int], Dict[int, int]] = {}
                                               ~~ <--- HERE
    return y
""",
    ),
    "a list that has elements under another type": (
        "def f(x: int):\n    y = []\n    y.append(torch.ones(x))\n    z: List[int] = y\n    return z\n",
        """
Variable 'z' is annotated with type List[int] but is being assigned to a value of type List[Tensor]:
  File "<string>", line 4
    y = []
    y.append(torch.ones(x))
    z: List[int] = y
    ~ <--- HERE
    return z
""",
    ),
    "an exception as a value": (
        "def f(x: int):\n    y = ValueError('a')\n    return x\n",
        """
Python exception class 'ValueError' cannot be used as a value:
  File "<string>", line 2
def f(x: int):
    y = ValueError('a')
        ~~~~~~~~~~ <--- HERE
    return x
""",
    ),
    "__getitem__ without an index": (
        "def f(x):\n    return x.__getitem__()\n",
        """
__getitem__ expected exactly 1 argument, got 0:
  File "<string>", line 2
def f(x):
    return x.__getitem__()
           ~~~~~~~~~~~~~ <--- HERE
""",
    ),
    "recursion": (
        "def f(n: int) -> int:\n    return 1 if n < 2 else n * f(n - 1)\n",
        """
function 'f' is called recursively. Recursive calls are not supported:
  File "<string>", line 2
def f(n: int) -> int:
    return 1 if n < 2 else n * f(n - 1)
                               ~ <--- HERE
""",
    ),
    "raise of a number": (
        "def f(x: int):\n    raise x\n",
        """
exceptions must derive from BaseException:
  File "<string>", line 2
def f(x: int):
    raise x
    ~~~~~~~ <--- HERE
""",
    ),
    "break in an unrolled loop": (
        "def f(x: int):\n    for a in (1, 2.0):\n        break\n",
        """
Because we emit iteration over modulelists or tuples as unrolled loops, we do not support break or continue inside the body of these loops:
  File "<string>", line 3
def f(x: int):
    for a in (1, 2.0):
        break
        ~~~~~ <--- HERE
""",
    ),
    "break outside of a loop": (
        "def f(x: int):\n    break\n",
        """
SyntaxError: 'break' outside loop:
  File "<string>", line 2
def f(x: int):
    break
    ~~~~~ <--- HERE
""",
    ),
    "default of another type": (
        "def f(x=3):\n    return x\n",
        """
Expected a default value of type Tensor (inferred) on parameter "x".Because "x" was not annotated with an explicit type it is assumed to be type 'Tensor'.:
  File "<string>", line 1
def f(x=3):
~~~~~~~~~~~
    return x
    ~~~~~~~~ <--- HERE
""",
    ),
}

UNSUPPORTED = {
    "def f(x):\n    def g(y):\n        return y\n    return g(x)\n": "function definitions aren't supported",
    "def f(x):\n    return (lambda y: y)(x)\n": "Lambda aren't supported",
    "def f(x):\n    try:\n        x = 1\n    except Exception:\n        pass\n    return x\n": "try blocks aren't supported",
    "def f(x):\n    global y\n    return x\n": "global variables aren't supported",
    "def f(x):\n    import math\n    return x\n": "import statements aren't supported",
    "def f(x):\n    class A: pass\n    return x\n": "class definitions aren't supported",
    "def f(x):\n    return (yield x)\n": "Yield aren't supported",
    "def f(x):\n    return {1, 2}\n": "Set aren't supported",
    "def f(x):\n    return (y := x)\n": "NamedExpr aren't supported",
    "def f(x):\n    while x > 0:\n        x -= 1\n    else:\n        x = 1\n    return x\n": "else branches of while loops aren't supported",
    "def f(x):\n    for i in x:\n        x -= 1\n    else:\n        x = 1\n    return x\n": "else branches of for loops aren't supported",
    "def f(x, *args):\n    return x\n": "Compiled functions can't take variable number of arguments",
    "def f(x, **args):\n    return x\n": "Compiled functions can't take variable number of arguments",
    "def f(x):\n    return f'{x!r}'\n": "Don't support conversion in JoinedStr",
    "def f(x):\n    return f'{x:3}'\n": "Don't support formatting in JoinedStr",
    "def f(x: List[int]):\n    a, *b = x\n    return a\n": "cannot statically infer the expected size of a list in this context",
    "def f(x: List[int]):\n    x[0:1] = [1]\n    return x\n": "Sliced expression not yet supported for subscripted assignment",
    "def f(x: List[bool]):\n    x[0] = None\n    return x\n": "Could not match type NoneType to t in argument 'el'",
    "def f(x: List[bool]):\n    x.append(1)\n    return x\n": "Could not match type int to t in argument 'el'",
    "def f(x: int):\n    with x:\n        pass\n": "With item",
    "def f(x):\n    raise\n": "raise without an exception is not supported",
}


def failure(source, unit=None):
    with pytest.raises(RuntimeError) as error:
        (unit or _C.CompilationUnit()).define(source)
    return str(error.value)


@pytest.mark.parametrize("name", ERRORS)
def test_error(name):
    source, expected = ERRORS[name]
    message = failure(source)
    assert message.endswith(expected), message


@pytest.mark.parametrize("source", UNSUPPORTED)
def test_unsupported(source):
    message = failure(source)
    assert UNSUPPORTED[source] in message and "<--- HERE" in message


def test_calls_that_led_there():
    """A function is compiled because another calls it: the error tells both places."""
    message = failure("def f(x):\n    return g(x) + 1\n\ndef g(x):\n    return x.unknown(2)\n")
    assert message == (
        """
'Tensor (inferred)' object has no attribute or method 'unknown'.:
  File "<string>", line 5

def g(x):
    return x.unknown(2)
           ~~~~~~~~~ <--- HERE
'g' is being compiled since it was called from 'f'
  File "<string>", line 2
def f(x):
    return g(x) + 1
           ~~~ <--- HERE

def g(x):
"""
    )


def test_a_failure_leaves_the_unit_as_it_was():
    unit = _C.CompilationUnit("def ok(x: int):\n    return x + 1\n")
    failure("def fine(x: int):\n    return x\n\ndef bad(x: int):\n    return y\n", unit)
    assert [f.name for f in unit.get_functions()] == ["ok"]
    unit.define("def fine(x: int):\n    return x\n\ndef bad(x: int):\n    return x * 2\n")
    assert unit.bad(4) == 8
    assert "already defined" in failure("def ok(x: int):\n    return x\n", unit)
    assert unit.ok(1) == 2


def test_raise_and_assert_at_run_time():
    unit = _C.CompilationUnit(
        """
def f(n: int):
    assert n > 0, f"n is {n}"
    if n == 1:
        raise ValueError("one", n)
    if n == 2:
        raise NotImplementedError
    assert n != 3
    return n
"""
    )
    assert unit.f(4) == 4
    for n, words in {0: "AssertionError: n is 0", 1: "one, 1)", 3: "AssertionError: "}.items():
        with pytest.raises(RuntimeError) as error:
            unit.f(n)
        assert words in str(error.value) and "in f" in str(error.value)
    with pytest.raises(RuntimeError):
        unit.f(2)


# ---- classes that programs match, named as in PyTorch

REFUSED = {
    "lambda": ("g = lambda y: y", "UnsupportedNodeError", "Lambda aren't supported"),
    "try": ("try:\n        pass\n    except Exception:\n        pass", "UnsupportedNodeError", "try blocks aren't supported"),
    "yield": ("yield x", "UnsupportedNodeError", "Yield aren't supported"),
    "class": ("class A: pass", "UnsupportedNodeError", "class definitions aren't supported"),
    "def": ("def g(y):\n        return y", "UnsupportedNodeError", "function definitions aren't supported"),
    "global": ("global z", "UnsupportedNodeError", "global variables aren't supported"),
    "import": ("import os", "UnsupportedNodeError", "import statements aren't supported"),
    "set": ("y = {1, 2}", "UnsupportedNodeError", "Set aren't supported"),
    "set comprehension": ("y = {a for a in [1]}", "UnsupportedNodeError", "SetComp aren't supported"),
    "walrus": ("z = (y := 3)", "UnsupportedNodeError", "NamedExpr aren't supported"),
    "else of for": ("for i in [1]:\n        pass\n    else:\n        pass", "NotSupportedError", "else branches of for loops aren't supported"),
    "else of while": ("while False:\n        pass\n    else:\n        pass", "NotSupportedError", "else branches of while loops aren't supported"),
    "keyword expansion": ("torch.add(x, **{'other': x})", "NotSupportedError", "keyword-arg expansion is not supported"),
    "format": ("y = f'{1.5:.2f}'", "NotSupportedError", "Don't support formatting in JoinedStr"),
    "conversion": ("y = f'{1.5!r}'", "NotSupportedError", "Don't support conversion in JoinedStr"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_classes_of_errors(name):
    from cresset.jit import frontend

    statement, cls, words = REFUSED[name]
    source = f"def f(x):\n    {statement}\n    return x\n"
    with pytest.raises(getattr(frontend, cls), match=words) as error:
        cresset.jit.CompilationUnit(source)
    assert type(error.value).__name__ == cls and isinstance(error.value, (frontend.FrontendError, RuntimeError))


def _inner(x):
    g = lambda y: y  # noqa: E731
    return g(x)


def _anything(*x):
    return x


def _outer(x):
    return _inner(x)


def test_classes_of_errors_in_what_is_called():
    from cresset.jit.frontend import NotSupportedError, UnsupportedNodeError

    with pytest.raises(UnsupportedNodeError, match="Lambda aren't supported"):
        cresset.jit.script(_outer)
    with pytest.raises(NotSupportedError, match="variable number of arguments"):
        cresset.jit.script(_anything)
    with pytest.raises(cresset.jit.Error) as error:
        cresset.jit.CompilationUnit("def f(x):\n    raise ValueError('a')\n    return x\n").f(cresset.ones(1))
    assert not isinstance(error.value, NotSupportedError)


FAILURES = {
    IndexError: "def f(x: List[int]):\n    return x[5]\n",
    KeyError: "def f(x: List[int]):\n    return {1: 2}[7]\n",
    ZeroDivisionError: "def f(x: List[int]):\n    return 1 // x[0]\n",
    ValueError: "def f(x: List[int]):\n    return x.index(9)\n",
}


@pytest.mark.parametrize("kind", FAILURES)
def test_what_fails_at_run_time_is_a_runtime_error_of_its_kind(kind):
    with pytest.raises(RuntimeError) as error:
        cresset.jit.CompilationUnit(FAILURES[kind]).f([0])
    assert isinstance(error.value, kind) and type(error.value).__name__ == kind.__name__
    assert "\nThe following operation failed in the TorchScript interpreter." in str(error.value)
    assert "\\n" not in str(error.value)  # the words, where KeyError's own would quote them


def mutable_list(x: List[int] = [1]):  # noqa: B006
    return x


def mutable_inside(x: Tuple[int, List[int]] = (1, [2])):  # noqa: B006
    return x


@pytest.mark.parametrize("function, kind", [(mutable_list, "list"), (mutable_inside, "tuple")])
def test_mutable_defaults(function, kind):
    """Python keeps one object for all calls, which scripts would not; PyTorch refuses them, too."""
    with pytest.raises(RuntimeError, match="Mutable default parameters are not supported") as caught:
        cresset.jit.script(function)
    text = str(caught.value)
    assert f"Found <class '{kind}'> on parameter x:\n" in text and f"line {function.__code__.co_firstlineno}\ndef {function.__name__}" in text


def test_mutable_defaults_of_methods():
    class Table:
        def __init__(self, d: Dict[int, int] = {1: 2}):  # noqa: B006
            self.d = d

    with pytest.raises(RuntimeError, match="Mutable default parameters are not supported"):
        cresset.jit.script(Table)


class Bare:
    def __init__(self) -> None:
        pass


class Pairs:
    def __init__(self) -> None:
        pass

    def __bool__(self):
        return (1, 2)


# {what is done with an object of a class: what PyTorch says of it}
WITHOUT_METHOD = {
    "n + 1": "has no attribute or method '__add__'", "-n": "has no attribute or method '__neg__'", "n < n": "has no attribute or method '__lt__'",
    "n == n": "has no attribute or method '__eq__'", "n[0]": "has no attribute or method '__getitem__'", "n()": "has no attribute or method '__call__'",
    "len(n)": "has no attribute or method '__len__'", "1 in n": "has no attribute or method '__contains__'", "1 if Pairs() else 2": "expected a bool expression for condition but found Tuple[int, int]",
}  # fmt: skip


@pytest.mark.parametrize("code", WITHOUT_METHOD)
def test_objects_without_the_method(code):
    names, source = {"Bare": Bare, "Pairs": Pairs}, f"def f():\n    n = Bare()\n    return {code}\n"
    with pytest.raises(RuntimeError) as caught:
        _C._jit_define("__torch__", [_definitions.definitions_of_text(source, names.__getitem__)["f"]], None, None)
    assert WITHOUT_METHOD[code] in str(caught.value), caught.value


def deletes():
    n = Bare()
    del n["a"]


def sets_in_a_tuple():
    a = (1, 2)
    a[0] = 3
    return a


def sorts():
    return sorted([Bare(), Bare()])


@pytest.mark.parametrize("function, words", [
    (deletes, "Class does not define __delitem__"), (sets_in_a_tuple, "Tuple[int, int] does not support subscripted assignment"),
], ids=lambda x: getattr(x, "__name__", ""))  # fmt: skip
def test_words_of_statements(function, words):
    with pytest.raises(RuntimeError) as caught:
        cresset.jit.script(function)
    assert words in str(caught.value)


def test_what_has_no_order():
    with pytest.raises(RuntimeError, match="To sort a list of .*Bare it must define a __lt__ method with two inputs of type .* that returns a bool"):
        cresset.jit.script(sorts)()


@pytest.mark.parametrize(
    ("annotation", "value", "words"),
    [
        ("List[int]", '[y + "!" for y in ["a"]]', "List type annotation `List[int]` did not match the types of the given list elements, which were unified to str:"),
        ("Union[List[Tensor], int]", '[y + "!" for y in ["a"]]',
         "List type annotation `List[Tensor]` did not match the types of the given list elements, which were unified to str:"),
        ("Dict[int, str]", 'dict([("a", 1), ("b", 2)])', "Dict type annotation `Dict[int, str]` did not match the type of an actual key type `str`\n"
         "Dict type annotation `Dict[int, str]` did not match the type of an actual value type `int`\n:"),
        ("Dict[str, str]", "dict(a=1, b=2)", "Dict type annotation `Dict[str, str]` did not match the type of an actual value type `int`\n:"),
        ("Dict[int, int]", '{y : 1 for y in ["a"]}', "Dict type annotation `Dict[int, int]` did not match the type of an actual key type `str`\n:"),
        ("Dict[str, str]", "dict(d)", "Variable 'x' is annotated with type Dict[str, str] but is being assigned to a value of type Dict[str, int]:"),
    ],
)  # fmt: skip
def test_containers_that_do_not_fit_their_annotations(annotation, value, words):
    with pytest.raises(RuntimeError) as e:
        cresset.jit.CompilationUnit(f"def fn(d: Dict[str, int]):\n    x: {annotation} = {value}\n    return x\n")
    assert words in str(e.value)
