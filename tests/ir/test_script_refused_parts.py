"""What is refused before it is compiled: PyTorch 2.13's words without a line before them, and what it marks."""

import cresset as torch
import pytest
from cresset.jit.frontend import NotSupportedError


def a_lambda(x):
    return lambda y: y


def an_import(x):
    import os

    return os


def a_yield(x):
    yield x


def expansion(x):
    return {**x}


def keywords(**k):
    return k


@pytest.mark.parametrize(
    "function, words, marks",
    [
        (a_lambda, "Lambda aren't supported:\n", "           ~ <---"), (an_import, "import statements aren't supported:\n", "    ~~~~~~ <---"),
        (a_yield, "Yield aren't supported:\n", "    ~ <---"), (expansion, "Dict expansion (e.g. `{**dict}`) is not supported:\n", "           ~ <---"),
        (keywords, "Compiled functions can't take variable number of arguments or use keyword-only arguments with defaults:\n", "              ~~ <---"),
    ],
)  # fmt: skip
def test_words_and_marks(function, words, marks):
    with pytest.raises(NotSupportedError) as caught:
        torch.jit.script(function)
    assert str(caught.value).startswith(words)
    assert any(line.startswith(marks) for line in str(caught.value).split("\n"))


def no_method(x):
    return x.nope()


def test_inferred_tensors_are_named_so():
    with pytest.raises(RuntimeError, match=r"'Tensor \(inferred\)' object has no attribute or method 'nope'"):
        torch.jit.script(no_method)
