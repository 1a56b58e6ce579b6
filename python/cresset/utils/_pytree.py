"""Trees of Python containers: flatten them into a list of leaves and a structure, map functions over the leaves.

tuple, list, dict, OrderedDict, defaultdict, deque, sizes, namedtuples and the named results of operators are nodes, everything else is a leaf;
`register_pytree_node` adds a class.
"""

import dataclasses
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any, Callable, NamedTuple, Protocol, runtime_checkable

from cresset._C import Size

__all__ = [
    "PyTreeSpec", "TreeSpec", "LeafSpec", "register_pytree_node", "register_dataclass", "register_constant", "tree_flatten", "tree_flatten_with_path", "tree_unflatten",
    "tree_iter", "tree_leaves", "tree_leaves_with_path", "tree_structure", "tree_map", "tree_map_with_path", "tree_map_", "tree_map_only",
    "tree_map_only_", "tree_all", "tree_any", "tree_all_only", "tree_any_only", "tree_is_leaf", "treespec_pprint", "treespec_dumps", "treespec_loads", "keystr", "key_get",
    "MappingKey", "SequenceKey", "GetAttrKey", "arg_tree_leaves", "is_namedtuple", "is_namedtuple_class", "is_structseq", "is_structseq_class",
]  # fmt: skip


@runtime_checkable
class KeyEntry(Protocol):
    """A step of a path: two of the same place are equal, and `get` takes it."""

    def __hash__(self): ...

    def __eq__(self, other): ...

    def __str__(self): ...

    def get(self, parent): ...


class SequenceKey(NamedTuple):
    """A step into a sequence."""

    idx: int

    def __str__(self):
        return f"[{self.idx!r}]"

    def get(self, sequence):
        return sequence[self.idx]


class MappingKey(NamedTuple):
    """A step into a mapping."""

    key: Any

    def __str__(self):
        return f"[{self.key!r}]"

    def get(self, mapping):
        return mapping[self.key]


class GetAttrKey(NamedTuple):
    """A step to an attribute."""

    name: str

    def __str__(self):
        return f".{self.name}"

    def get(self, obj):
        return getattr(obj, self.name)


class NodeDef(NamedTuple):
    """How instances of a class come apart and together."""

    type: type
    flatten_fn: Callable
    unflatten_fn: Callable
    flatten_with_keys_fn: Callable | None


SUPPORTED_NODES = {}


def is_namedtuple_class(cls):
    """Is cls made by collections.namedtuple or typing.NamedTuple?"""
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(getattr(cls, "_fields", None), tuple)
        and callable(getattr(cls, "_make", None))
    )


def is_namedtuple(obj):
    """Is obj a namedtuple, instance or class?"""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_instance(obj):
    """Is obj an instance of a namedtuple class?"""
    return is_namedtuple_class(type(obj))


def is_structseq_class(cls):
    """Is cls the class of an operator's named results?"""
    return isinstance(cls, type) and cls.__bases__ == (tuple,) and isinstance(getattr(cls, "n_fields", None), int) and hasattr(cls, "n_sequence_fields")


def is_structseq(obj):
    """Is obj an operator's named result, instance or class?"""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_instance(obj):
    """Is obj an instance of an operator's named result?"""
    return is_structseq_class(type(obj))


def _node_type(tree):
    kind = type(tree)
    if kind in SUPPORTED_NODES:
        return kind
    if is_namedtuple_class(kind):
        return namedtuple  # stands for every namedtuple class in the table of nodes; the context is the class
    if is_structseq_class(kind):
        return _structseq
    return kind


class _structseq:
    """Stands for every class of named results."""


def tree_is_leaf(tree, is_leaf=None):
    """Is tree no node?"""
    return (is_leaf is not None and is_leaf(tree)) or _node_type(tree) not in SUPPORTED_NODES


class TreeSpec:
    """The structure of a tree: type and context of each node, `*` for leaves."""

    __slots__ = ("type", "_context", "_children", "num_nodes", "num_leaves", "num_children")

    def __init__(self, type, context, children):
        self.type, self._context, self._children = type, context, list(children)
        leaf = type is None
        self.num_nodes = 1 + sum(c.num_nodes for c in self._children)
        self.num_leaves = 1 if leaf else sum(c.num_leaves for c in self._children)
        self.num_children = len(self._children)

    @property
    def context(self):
        """What unflatten needs besides the children."""
        return self._context

    @property
    def children_specs(self):
        """Structures of the children."""
        return self._children

    def children(self):
        """Structures of the children, a list of its own."""
        return list(self._children)

    def child(self, index):
        """Structure of one child."""
        return self._children[index]

    def is_leaf(self):
        """Is this the structure of a leaf?"""
        return self.type is None

    def __eq__(self, other):
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return self.type is other.type and self._context == other._context and self._children == other._children

    def __hash__(self):
        context = tuple(self._context) if isinstance(self._context, list) else self._context
        try:
            return hash((self.type, context, tuple(self._children)))
        except TypeError:
            return hash((self.type, tuple(self._children)))

    def __repr__(self):
        if self.is_leaf():
            return "*"
        inner = ",\n".join(repr(c) for c in self._children).replace("\n", "\n  ")
        name = self._context.__name__ if self.type is _structseq else self.type.__name__
        return f"TreeSpec({name}, {None if self.type is _structseq else self._context!r}, [{inner}])"

    def unflatten(self, leaves):
        """A tree of this structure with other leaves."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that holds {self.num_leaves} items ({self})."
            )
        return self._build(iter(leaves))

    def _build(self, leaves):
        if self.is_leaf():
            return next(leaves)
        return SUPPORTED_NODES[self.type].unflatten_fn([c._build(leaves) for c in self._children], self._context)

    def flatten_up_to(self, tree):
        """The subtrees of `tree` at this structure's leaves; ValueError where the structures part."""
        out = []
        self._flatten_up_to(tree, out)
        return out

    def _flatten_up_to(self, tree, out):
        if self.is_leaf():
            out.append(tree)
            return
        kind = _node_type(tree)
        if kind is not self.type and not (kind in _DICTS and self.type in _DICTS):
            which = "Node type" if self.type in _BUILT_IN else "Type"
            raise ValueError(f"{which} mismatch; expected {self.type!r}, but got {type(tree)!r}.")
        if kind in _DICTS:
            keys = self._context[1] if self.type is defaultdict else self._context
            if len(keys) != len(tree):
                raise ValueError(f"Node arity mismatch; expected {len(keys)}, but got {len(tree)}.")
            if set(keys) != set(tree):
                missing, extra = set(keys) - set(tree), set(tree) - set(keys)
                raise ValueError(f"Node keys mismatch; missing key(s): {missing}; extra key(s): {extra}.")
            children = [tree[k] for k in keys]
        else:
            children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
            children = list(children)
            if len(children) != self.num_children:
                raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
            if self.type in _BUILT_IN:
                if context != self._context and self.type is not deque:  # the length that a deque may have does not count
                    raise ValueError(f"Node context mismatch for node type {self.type!r}; expected {self._context!r}, but got {context!r}.")
            elif context != self._context:
                raise ValueError(f"Node context mismatch for custom node type {self.type!r}.")
        for spec, child in zip(self._children, children):
            spec._flatten_up_to(child, out)


PyTreeSpec = TreeSpec


class LeafSpec(TreeSpec):
    """The structure of a leaf: calling it gives the one there is."""

    __slots__ = ()

    def __new__(cls):
        return _LEAF

    def __init__(self):
        pass


_LEAF = object.__new__(LeafSpec)
TreeSpec.__init__(_LEAF, None, None, [])


def register_pytree_node(
    cls, flatten_fn, unflatten_fn, *, serialized_type_name=None, to_dumpable_context=None, from_dumpable_context=None, flatten_with_keys_fn=None
):
    """Make instances of cls nodes: flatten_fn(x) → (children, context), unflatten_fn(children, context) → x."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    _treespec_text.register(cls, serialized_type_name, to_dumpable_context, from_dumpable_context)
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)


def _register_pytree_node(
    cls, flatten_fn, unflatten_fn, *, serialized_type_name=None, to_dumpable_context=None, from_dumpable_context=None, flatten_with_keys_fn=None
):
    """The older name of register_pytree_node, which also registers anew; it warns."""
    warnings.warn(
        "`torch.utils._pytree._register_pytree_node` is deprecated. Please use `torch.utils._pytree.register_pytree_node` instead.", FutureWarning, stacklevel=2
    )
    if cls in SUPPORTED_NODES:
        warnings.warn(f"{cls} is already registered as pytree node. Overwriting the previous registration.", stacklevel=2)
    _treespec_text.register(cls, serialized_type_name, to_dumpable_context, from_dumpable_context)
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)


def _deregister_pytree_node(cls):
    """Undo register_pytree_node."""
    SUPPORTED_NODES.pop(cls)


def register_dataclass(cls, *, field_names=None, drop_field_names=None, serialized_type_name=None):
    """Make a dataclass a node whose children are its fields."""
    if field_names is None and not dataclasses.is_dataclass(cls):
        raise ValueError(f"field_names must be specified with a list of all fields used to initialize {cls}, as it is not a dataclass.")
    names = field_names or [f.name for f in dataclasses.fields(cls) if f.init and f.name not in (drop_field_names or ())]

    def flatten(obj):
        present = [n for n in names if getattr(obj, n) is not None]
        absent = [n for n in names if getattr(obj, n) is None]
        return [getattr(obj, n) for n in present], [present, absent]

    def unflatten(children, context):
        return cls(**dict(zip(context[0], children)), **dict.fromkeys(context[1]))

    def with_keys(obj):
        children, context = flatten(obj)
        return [(GetAttrKey(n), c) for n, c in zip(context[0], children)], context

    register_pytree_node(cls, flatten, unflatten, serialized_type_name=serialized_type_name, flatten_with_keys_fn=with_keys)


def register_constant(cls):
    """Make instances of cls nodes without leaves: they belong to the structure. cls needs __eq__ and __hash__."""
    for name in ("__eq__", "__hash__"):
        if getattr(cls, name) in (getattr(object, name), None):
            raise TypeError(f"register_constant(cls) expects `cls` to have a non-default `{name}` implementation.")
    register_pytree_node(cls, lambda x: ([], x), lambda _, context: context, flatten_with_keys_fn=lambda x: ([], x))


def _sequence_keys(values):
    return [(SequenceKey(i), v) for i, v in enumerate(values)]


def _mapping_keys(d):
    return [(MappingKey(k), v) for k, v in d.items()]


PyTree = Any
Context = Any
_get_node_type = _node_type


def _dict_flatten(d):
    """The values of a dict, and its keys."""
    return list(d.values()), list(d)


def _dict_flatten_with_keys(d):
    """Pairs of the parts of paths and the values of a dict, and its keys."""
    return _mapping_keys(d), list(d)


def _dict_unflatten(values, keys):
    """The dict with these values and keys."""
    return dict(zip(keys, values))


_DICTS = (dict, OrderedDict, defaultdict)
for _definition in (
    NodeDef(tuple, lambda t: (list(t), None), lambda c, _: tuple(c), lambda t: (_sequence_keys(t), None)),
    NodeDef(Size, lambda t: (list(t), None), lambda c, _: tuple(c), lambda t: (_sequence_keys(t), None)),  # what comes back is a tuple
    NodeDef(list, lambda t: (t, None), lambda c, _: list(c), lambda t: (_sequence_keys(t), None)),
    NodeDef(dict, lambda d: (list(d.values()), list(d)), lambda c, k: dict(zip(k, c)), lambda d: (_mapping_keys(d), list(d))),
    NodeDef(OrderedDict, lambda d: (list(d.values()), list(d)), lambda c, k: OrderedDict(zip(k, c)), lambda d: (_mapping_keys(d), list(d))),
    NodeDef(
        defaultdict,
        lambda d: (list(d.values()), [d.default_factory, list(d)]),
        lambda c, k: defaultdict(k[0], zip(k[1], c)),
        lambda d: (_mapping_keys(d), [d.default_factory, list(d)]),
    ),
    NodeDef(deque, lambda d: (list(d), d.maxlen), lambda c, n: deque(c, maxlen=n), lambda d: (_sequence_keys(d), d.maxlen)),
    NodeDef(
        namedtuple,
        lambda t: (list(t), type(t)),
        lambda c, kind: kind(*c),
        lambda t: ([(GetAttrKey(n), v) for n, v in zip(t._fields, t)], type(t)),
    ),
    NodeDef(_structseq, lambda t: (list(t), type(t)), lambda c, kind: kind(c), lambda t: (_sequence_keys(t), type(t))),
):
    SUPPORTED_NODES[_definition.type] = _definition
_BUILT_IN = frozenset(SUPPORTED_NODES)


def _parts_of(kind):
    node = SUPPORTED_NODES[kind]
    return node.flatten_fn, node.unflatten_fn, node.flatten_with_keys_fn


# For classes of one's own that are nodes as these are.
_tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys = _parts_of(tuple)
_list_flatten, _list_unflatten, _list_flatten_with_keys = _parts_of(list)
_ordereddict_flatten, _ordereddict_unflatten, _ordereddict_flatten_with_keys = _parts_of(OrderedDict)
_defaultdict_flatten, _defaultdict_unflatten, _defaultdict_flatten_with_keys = _parts_of(defaultdict)
_deque_flatten, _deque_unflatten, _deque_flatten_with_keys = _parts_of(deque)
_namedtuple_flatten, _namedtuple_unflatten, _namedtuple_flatten_with_keys = _parts_of(namedtuple)


def _flatten(tree, leaves, is_leaf):
    kind = _node_type(tree)
    definition = SUPPORTED_NODES.get(kind)
    if definition is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return _LEAF
    children, context = definition.flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(c, leaves, is_leaf) for c in children])


def tree_flatten(tree, is_leaf=None):
    """(leaves, structure)"""
    leaves = []
    spec = _flatten(tree, leaves, is_leaf)
    return leaves, spec


def tree_unflatten(leaves, treespec):
    """The tree of a structure with given leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"tree_unflatten(leaves, treespec): Expected `treespec` to be instance of PyTreeSpec but got item of type {type(treespec)}.")
    return treespec.unflatten(leaves)


def tree_iter(tree, is_leaf=None):
    """Iterates over the leaves."""
    return iter(tree_leaves(tree, is_leaf))


def tree_leaves(tree, is_leaf=None):
    """The leaves."""
    return tree_flatten(tree, is_leaf)[0]


def arg_tree_leaves(*args, **kwargs):
    """The leaves of a call's arguments."""
    return tree_leaves((args, kwargs))


def tree_structure(tree, is_leaf=None):
    """The structure."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func, tree, *rests, is_leaf=None):
    """A tree of the same structure with func(leaf, *leaves of the others)."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten([func(*items) for items in zip(leaves, *(spec.flatten_up_to(r) for r in rests))])


def tree_map_(func, tree, *rests, is_leaf=None):
    """Calls func on the leaves; gives the tree itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def _only(kinds, func):
    if isinstance(kinds, (type, tuple)) or hasattr(kinds, "__args__"):
        return lambda x: func(x) if isinstance(x, kinds) else x
    if callable(kinds):
        return lambda x: func(x) if kinds(x) else x
    raise TypeError("Argument must be a type, a tuple of types, or a callable.")


def tree_map_only(type_or_types_or_pred, func, tree, is_leaf=None):
    """tree_map over the leaves of some types, or for which a predicate holds; the others stay."""
    return tree_map(_only(type_or_types_or_pred, func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred, func, tree, is_leaf=None):
    """tree_map_ over the leaves of some types."""
    return tree_map_(_only(type_or_types_or_pred, func), tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None):
    """Does pred hold for all leaves?"""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None):
    """Does pred hold for a leaf?"""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(type_or_types, pred, tree, is_leaf=None):
    """Does pred hold for all leaves of some types?"""
    return all(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(type_or_types, pred, tree, is_leaf=None):
    """Does pred hold for a leaf of some types?"""
    return any(pred(x) for x in tree_leaves(tree, is_leaf) if isinstance(x, type_or_types))


def _with_path(tree, path, is_leaf):
    kind = _node_type(tree)
    definition = SUPPORTED_NODES.get(kind)
    if definition is None or (is_leaf is not None and is_leaf(tree)):
        yield path, tree
        return
    if definition.flatten_with_keys_fn is None:
        raise ValueError(f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a flatten_with_keys_fn argument to register_pytree_node.")
    for key, child in definition.flatten_with_keys_fn(tree)[0]:
        yield from _with_path(child, (*path, key), is_leaf)


def tree_leaves_with_path(tree, is_leaf=None):
    """[(path, leaf)]"""
    return list(_with_path(tree, (), is_leaf))


def tree_flatten_with_path(tree, is_leaf=None):
    """([(path, leaf)], structure)"""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func, tree, *rests, is_leaf=None):
    """tree_map with func(path, leaf, *leaves of the others)."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    return spec.unflatten([func(*pair, *others) for pair, *others in zip(pairs, *(spec.flatten_up_to(r) for r in rests))])


def keystr(path):
    """A path as Python writes it: "[0].name['key']"."""
    return "".join(map(str, path))


def key_get(obj, path):
    """What lies at a path."""
    for key in path:
        obj = key.get(obj)
    return obj


def treespec_pprint(treespec):
    """The structure as a tree of leaves written `*`."""

    class Star:
        def __repr__(self):
            return "*"

    return repr(treespec.unflatten([Star()] * treespec.num_leaves))


def _broadcast_to_and_flatten(tree, treespec, is_leaf=None):
    """The leaves of `tree` at the leaves of a structure: a leaf of the tree stands for all that is below it there. None where the two part."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf() or _node_type(tree) is not treespec.type:
        return None
    children, context = SUPPORTED_NODES[treespec.type].flatten_fn(tree)
    children = list(children)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    parts = [_broadcast_to_and_flatten(child, spec, is_leaf) for child, spec in zip(children, treespec.children())]
    return None if None in parts else [leaf for part in parts for leaf in part]


from . import _treespec_text  # noqa: E402
from ._treespec_text import register_namedtuple as _register_namedtuple, treespec_dumps, treespec_loads  # noqa: E402,F401
