"""Annotations that scripts have no type for, with lists inside."""

from typing import Callable

import pytest

import cresset


def test_callables():
    def call(f: Callable[[int], int]) -> int:
        return f(1)

    with pytest.raises(RuntimeError, match="Unknown type constructor Callable"):
        cresset.jit.script(call)
