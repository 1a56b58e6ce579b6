"""Classes of modules as types in scripts; the errors were asked of PyTorch 2.13."""

from typing import Dict, List

import pytest

import cresset
from cresset import jit, nn


class Inner(nn.Module):
    def forward(self):
        return 1


class NamesInner(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self):
        found: List[Inner] = [self.inner]
        one: Inner = self.inner
        return found, one.forward()


def test_a_class_of_modules_is_a_type_where_a_module_of_it_is_there():
    m = jit.script(NamesInner())
    assert str(m.forward.schema.returns[0].type) == f"Tuple[List[__torch__.{__name__}.Inner], int]"
    assert m()[1] == 1


class Unscripted(nn.Module):
    pass


@pytest.mark.parametrize("annotation", [List[Unscripted], Dict[str, Unscripted], Dict[Unscripted, str], Dict[str, cresset.jit.ScriptModule]])
def test_a_class_of_modules_that_nothing_has(annotation):
    def f(x):
        return 1

    f.__annotations__["x"] = annotation
    with pytest.raises(ValueError, match="^Unknown type annotation: '<class '.*'>' at"):
        jit.script(f)
