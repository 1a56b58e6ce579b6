"""Structures of trees as text (`treespec_dumps`, `treespec_loads`): JSON, as PyTorch writes it, with the protocol's number in front."""

import enum
import importlib
import json
from collections import OrderedDict, defaultdict, deque, namedtuple

from . import _pytree
from ._pytree import TreeSpec

_PROTOCOL = 1
_LEAF = {"type": None, "context": None, "children_spec": []}


def _write_enum(value):
    if isinstance(value, enum.Enum):
        return {"__enum__": True, "fqn": f"{type(value).__module__}:{type(value).__qualname__}", "name": value.name}
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _read_enum(facts):
    if "__enum__" not in facts:
        return facts
    module, _, name = facts["fqn"].partition(":")
    kind = importlib.import_module(module)
    for part in name.split("."):
        kind = getattr(kind, part)
    return kind[facts["name"]]


def _write_namedtuple(kind):
    if kind not in _namedtuples:
        raise NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {kind} because we didn't register a serializated_type_name. Please register using "
            "`_register_namedtuple`."
        )
    return _namedtuples[kind]


def _read_namedtuple(name):
    for kind, known in _namedtuples.items():
        if known == name:
            return kind
    raise NotImplementedError(f"Can't deserialize TreeSpec of namedtuple class {name} because we couldn't find a serializated name.")


def _write_defaultdict(context):
    factory, keys = context
    return {"default_factory_module": factory.__module__, "default_factory_name": factory.__qualname__, "dict_context": keys}


def _read_defaultdict(facts):
    factory = getattr(importlib.import_module(facts["default_factory_module"]), facts["default_factory_name"])
    return [factory, facts["dict_context"]]


_namedtuples: dict = {}  # class -> name in text
# type -> (name, context -> what json can write, the way back); None: the context itself, as JSON in a string
_known: dict = {
    tuple: ("builtins.tuple", None, None),
    _pytree.Size: ("torch.Size", None, None),
    list: ("builtins.list", None, None),
    dict: ("builtins.dict", None, None),
    OrderedDict: ("collections.OrderedDict", None, None),
    deque: ("collections.deque", None, None),
    defaultdict: ("collections.defaultdict", _write_defaultdict, _read_defaultdict),
    namedtuple: ("collections.namedtuple", _write_namedtuple, _read_namedtuple),
}


def register(cls, name, write, read):
    """How nodes of cls are written; ValueError for one direction only."""
    if (write is None) != (read is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    if name is not None:
        _known[cls] = (name, write, read)


def register_namedtuple(cls, *, serialized_type_name):
    """Names a namedtuple class in texts."""
    _namedtuples[cls] = serialized_type_name


def _write(spec):
    if spec.is_leaf():
        return _LEAF
    if spec.type not in _known:
        raise NotImplementedError(
            f"No registered serialization name for {spec.type} found. Please update your _register_pytree_node call with a `serialized_type_name` kwarg."
        )
    name, write, _ = _known[spec.type]
    if write is None:
        context = json.dumps(spec.context, default=_write_enum)
    else:
        context = write(spec.context)
    return {"type": name, "context": context, "children_spec": [_write(child) for child in spec.children()]}


def _read(facts):
    if facts["type"] is None:
        return _pytree.LeafSpec()
    for kind, (name, _, read) in _known.items():
        if name == facts["type"]:
            break
    else:
        raise NotImplementedError(f"Deserializing {facts['type']} in pytree is not registered.")
    context = json.loads(facts["context"], object_hook=_read_enum) if read is None else read(facts["context"])
    return TreeSpec(kind, context, [_read(child) for child in facts["children_spec"]])


def _check(protocol):
    if protocol != _PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{_PROTOCOL}]")


def treespec_dumps(treespec, protocol=None):
    """The text of a structure. NotImplementedError for types without a name in texts, TypeError for contexts that JSON cannot write."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}.")
    _check(_PROTOCOL if protocol is None else protocol)
    return json.dumps((_PROTOCOL, _write(treespec)), default=_write_enum)


def treespec_loads(serialized):
    """The structure that a text of `treespec_dumps` describes. ValueError for another protocol."""
    protocol, facts = json.loads(serialized)
    _check(protocol)
    return _read(facts)
