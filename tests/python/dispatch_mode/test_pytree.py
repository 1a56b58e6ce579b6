"""Trees of containers."""

import dataclasses
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest

import cresset as torch
from cresset.utils import _pytree as pytree

Point = namedtuple("Point", "x y")
TREES = [
    1, None, (), [], {}, (1, 2), [1, [2, (3,)]], {"a": 1, "b": [2]}, OrderedDict(b=1, a=2), defaultdict(list, a=[1]), deque([1, 2], maxlen=3), Point(1, [2]),
    {"p": Point(1, 2), "d": deque([{}])},
]  # fmt: skip


@pytest.mark.parametrize("tree", TREES, ids=repr)
def test_round_trip(tree):
    leaves, spec = pytree.tree_flatten(tree)
    again = pytree.tree_unflatten(leaves, spec)
    assert again == tree and type(again) is type(tree)
    assert spec.num_leaves == len(leaves) and pytree.tree_structure(again) == spec
    assert pytree.tree_leaves(pytree.tree_map(repr, tree)) == [repr(x) for x in leaves]


def test_maps():
    assert pytree.tree_map(lambda a, b: a + b, {"a": 1, "b": (2,)}, {"b": (20,), "a": 10}) == {"a": 11, "b": (22,)}
    assert pytree.tree_map_only(int, str, [1, "x", 2.0]) == ["1", "x", 2.0]
    assert pytree.tree_map_only((int, float), lambda v: v * 2, [1, "x", 2.0]) == [2, "x", 4.0]
    assert pytree.tree_map_only(lambda v: v == 1, lambda v: 7, [1, 2]) == [7, 2]
    seen = []
    tree = [1, (2, 3)]
    assert pytree.tree_map_(seen.append, tree) is tree and seen == [1, 2, 3]
    assert pytree.tree_all(bool, [1, 2]) and pytree.tree_any(bool, [0, 2]) and pytree.tree_all_only(int, bool, [1, ""])
    assert pytree.tree_leaves([1, (2, 3)], is_leaf=lambda t: isinstance(t, tuple)) == [1, (2, 3)]
    values = torch.tensor([1.0, 3.0]).max(0)
    assert type(pytree.tree_map(lambda t: t, values)) is type(values)


def test_registered_classes():
    class Box:
        def __init__(self, inside):
            self.inside = inside

    pytree.register_pytree_node(Box, lambda b: ([b.inside], None), lambda children, _: Box(*children))
    try:
        assert pytree.tree_map(lambda v: v + 1, [Box(1)])[0].inside == 2
        with pytest.raises(ValueError, match="is already registered as pytree node"):
            pytree.register_pytree_node(Box, None, None)
        with pytest.raises(ValueError, match="flatten_with_keys_fn"):
            pytree.tree_leaves_with_path(Box(1))
    finally:
        pytree._deregister_pytree_node(Box)
    assert pytree.tree_is_leaf(Box(1))

    @dataclasses.dataclass
    class Pair:
        a: int
        b: int

    pytree.register_dataclass(Pair)
    assert pytree.tree_map(lambda v: v * 2, Pair(1, 2)) == Pair(2, 4)
    assert [pytree.keystr(p) for p, _ in pytree.tree_leaves_with_path(Pair(1, 2))] == [".a", ".b"]


def test_paths():
    tree = {"a": [1, 2], "b": Point(3, 4)}
    pairs, spec = pytree.tree_flatten_with_path(tree)
    assert [(pytree.keystr(p), v) for p, v in pairs] == [("['a'][0]", 1), ("['a'][1]", 2), ("['b'].x", 3), ("['b'].y", 4)]
    assert pytree.key_get(tree, pairs[1][0]) == 2 and spec == pytree.tree_structure(tree)
    assert pytree.tree_map_with_path(lambda path, v: (pytree.keystr(path), v), (5,)) == (("[0]", 5),)


def test_structures_print():
    assert repr(pytree.tree_structure([1, (2, 3)])) == "TreeSpec(list, None, [*,\n  TreeSpec(tuple, None, [*,\n    *])])"
    assert pytree.treespec_pprint(pytree.tree_structure({"a": [1]})) == "{'a': [*]}"


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: pytree.tree_unflatten([1], pytree.tree_structure([1, 2])), ValueError, "has length 1 but the spec refers to a pytree that holds 2 items"),
        (lambda: pytree.tree_unflatten([1], "x"), TypeError, "instance of PyTreeSpec"),
        (lambda: pytree.tree_map(max, [1], (1,)), ValueError, "Type mismatch"),
        (lambda: pytree.tree_map(max, [1], [1, 2]), ValueError, "Node arity mismatch; expected 1, but got 2"),
        (lambda: pytree.tree_map(max, {"a": 1}, {"b": 1}), ValueError, "Node keys mismatch"),
        (lambda: pytree.tree_map_only(3, str, [1]), TypeError, "must be a type, a tuple of types, or a callable"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()
