"""Trees of containers."""

import dataclasses
import enum
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
        (lambda: pytree.tree_map(max, [1], (1,)), ValueError, "Node type mismatch"),
        (lambda: pytree.tree_map(max, [1], [1, 2]), ValueError, "Node arity mismatch; expected 1, but got 2"),
        (lambda: pytree.tree_map(max, {"a": 1}, {"b": 1}), ValueError, "Node keys mismatch"),
        (lambda: pytree.tree_map_only(3, str, [1]), TypeError, "must be a type, a tuple of types, or a callable"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


class Colour(enum.Enum):
    RED = 1


def test_structures_as_text():
    """The text is PyTorch's own: recorded with 2.13."""
    pytree._register_namedtuple(Point, serialized_type_name="tests.Point")
    spec = pytree.tree_structure(OrderedDict(a=(1, [2]), b=defaultdict(int, {"k": Point(1, {1: 2})}), c=deque([1], maxlen=3)))
    leaf = '{"type": null, "context": null, "children_spec": []}'
    text = (
        '[1, {"type": "collections.OrderedDict", "context": "[\\"a\\", \\"b\\", \\"c\\"]", "children_spec": [{"type": "builtins.tuple", "context": "null", '
        f'"children_spec": [{leaf}, {{"type": "builtins.list", "context": "null", "children_spec": [{leaf}]}}]}}, '
        '{"type": "collections.defaultdict", "context": {"default_factory_module": "builtins", "default_factory_name": "int", "dict_context": ["k"]}, '
        f'"children_spec": [{{"type": "collections.namedtuple", "context": "tests.Point", "children_spec": [{leaf}, {{"type": "builtins.dict", "context": "[1]", '
        f'"children_spec": [{leaf}]}}]}}]}}, {{"type": "collections.deque", "context": "3", "children_spec": [{leaf}]}}]}}]'
    )
    assert pytree.treespec_dumps(spec) == text and pytree.treespec_loads(text) == spec
    keys = pytree.treespec_dumps(pytree.tree_structure({Colour.RED: 1}))
    assert f'{{\\"__enum__\\": true, \\"fqn\\": \\"{__name__}:Colour\\", \\"name\\": \\"RED\\"}}' in keys


def test_registered_contexts_as_text():
    class Box:
        pass

    pytree.register_pytree_node(
        Box, lambda b: ([1], "kept"), lambda c, context: Box(), serialized_type_name="tests.Box", to_dumpable_context=str.upper, from_dumpable_context=str.lower
    )
    spec = pytree.tree_structure(Box())
    assert '"context": "KEPT"' in pytree.treespec_dumps(spec, 1) and pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    pytree._deregister_pytree_node(Box)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: pytree.treespec_dumps("x"), TypeError, "Expected `treespec` to be an instance of PyTreeSpec"),
        (lambda: pytree.treespec_dumps(pytree.tree_structure(1), -1), ValueError, r"Unknown protocol -1. Available protocols: \[1\]"),
        (lambda: pytree.treespec_loads('[2, {"type": null, "context": null, "children_spec": []}]'), ValueError, "Unknown protocol 2"),
        (lambda: pytree.treespec_loads('[1, {"type": "zz", "context": null, "children_spec": []}]'), NotImplementedError, "Deserializing zz in pytree"),
        (lambda: pytree.treespec_dumps(pytree.tree_structure(namedtuple("Q", "a")(1))), NotImplementedError, "Please register using `_register_namedtuple`"),
        (lambda: pytree.treespec_dumps(pytree.tree_structure(torch.ones(2).max(0))), NotImplementedError, "No registered serialization name"),
        (lambda: pytree.register_pytree_node(Colour, None, None, to_dumpable_context=str), ValueError, "Both to_dumpable_context and from_dumpable_context"),
    ],
)
def test_errors_of_texts(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_leaves_are_leaf_specs():
    assert isinstance(pytree.tree_structure(1), pytree.LeafSpec) and pytree.LeafSpec() is pytree.tree_structure(2)
    assert not isinstance(pytree.tree_structure([1]), pytree.LeafSpec)
    assert pytree.TreeSpec(namedtuple, Point, [pytree.LeafSpec(), pytree.LeafSpec()]) == pytree.tree_structure(Point(1, 2))


@pytest.mark.parametrize(
    "tree, like, expected",
    [
        (1, (), []), (1, (0, [0, [0]], 0), [1, 1, 1, 1]), (([1, 2, 3], 4), ([0, [0, 0], 0], [0, 0]), [1, 2, 2, 3, 4, 4]), ([1], (0,), None),
        ({"a": 1, "b": 2}, {"a": 0}, None), ((1, [2, 3]), (0, [0, 0, 0]), None), ((1, 2), 0, None),
    ],
)  # fmt: skip
def test_leaves_are_broadcast(tree, like, expected):
    assert pytree._broadcast_to_and_flatten(tree, pytree.tree_structure(like)) == expected


def test_the_older_name_registers_anew_and_warns():
    class Box:
        pass

    with pytest.warns(FutureWarning, match="torch.utils._pytree._register_pytree_node"):
        pytree._register_pytree_node(Box, lambda b: ([1], None), lambda c, _: Box())
    with pytest.warns(UserWarning, match="already registered"):
        pytree._register_pytree_node(Box, lambda b: ([1, 2], None), lambda c, _: Box())
    assert pytree.tree_leaves(Box()) == [1, 2]
    pytree._deregister_pytree_node(Box)
