"""torch.export._tree_utils: trees that are alike by a rule, and keyword arguments in the order of a tree. Words are PyTorch 2.13's."""

import collections

import pytest

from cresset.export._tree_utils import is_equivalent, reorder_kwargs
from cresset.utils._pytree import tree_structure


def test_trees_that_are_alike():
    def same(type1, context1, type2, context2):
        return type1 is None is type2 or type1 is not None is not type2 and issubclass(type2, dict) and context1 == context2

    one = tree_structure({"a": 1, "b": {"c": 2}})
    assert is_equivalent(one, tree_structure(collections.OrderedDict(a=1, b=collections.OrderedDict(c=2))), same)
    assert not is_equivalent(one, tree_structure(collections.OrderedDict(b={"c": 2}, a=1)), same)
    assert not is_equivalent(one, tree_structure({"a": 1, "b": {"c": [2]}}), same)


def test_keyword_arguments_in_order():
    spec = tree_structure(((), {"a": 1, "b": 2}))
    assert list(reorder_kwargs({"b": 2, "a": 3}, spec).items()) == [("a", 3), ("b", 2)]
    with pytest.raises(ValueError, match=r"keyword mismatch: Got the following keywords \['a', 'c'\] but expected \['a', 'b'\]"):
        reorder_kwargs({"a": 1, "c": 2}, spec)
