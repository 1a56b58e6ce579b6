"""Operators in terms of simpler ones: tables {overload: function} for make_fx, aot_function and export.

    table = get_decompositions([torch.ops.aten.silu, torch.ops.aten.addcmul])
    graph = make_fx(f, decomposition_table=table)(x)

Composite operators come apart without a table. Elementary ones (`add`, `exp`, `mm`) have no entry: there is nothing below them here.
"""

from collections import defaultdict
from functools import lru_cache

from cresset._ops import OpOverload, OpOverloadPacket
from cresset.utils import _pytree as pytree

from . import decompositions  # fills the table
from ._rules import CORE
from ._tables import add, decomposition_table, global_decomposition_table, meta_table, pre_autograd_decomposition_table

__all__ = [
    "decomposition_table", "pre_autograd_decomposition_table", "meta_table", "register_decomposition", "get_decompositions",
    "core_aten_decompositions", "remove_decompositions", "global_decomposition_table", "decompositions",
]  # fmt: skip


def register_decomposition(aten_op, registry=None, *, type="post_autograd", unsafe=False):
    """Decorator: the function takes the operator apart. aten_op: an overload, a packet (all its overloads), or a list or tree of them.

    registry: a dict in place of the table of that type ("post_autograd", "pre_autograd", "meta").
    """
    if type not in global_decomposition_table:
        raise AssertionError(f"type must be one of {sorted(global_decomposition_table)}, got {type}")

    def register(function):
        table = global_decomposition_table[type] if registry is None else registry
        pytree.tree_map_(lambda op: add(op, function, table), aten_op)
        return function

    return register


def get_decompositions(aten_ops, type="post_autograd"):
    """{overload: function} of these overloads, and of all overloads of these packets; those without an entry are left out."""
    if type not in global_decomposition_table:
        raise AssertionError(f"type must be one of {sorted(global_decomposition_table)}, got {type}")
    registry = global_decomposition_table[type]
    of_packet = defaultdict(list)
    for op in registry:
        if isinstance(op, OpOverload):
            of_packet[op.overloadpacket].append(op)
    found = {}
    for op in aten_ops:
        if isinstance(op, OpOverloadPacket):
            found.update((overload, registry[overload]) for overload in of_packet.get(op, ()))
        elif op in registry:
            found[op] = registry[op]
    return found


def remove_decompositions(decompositions, aten_ops):
    """Take these overloads, and all overloads of these packets, out of a table."""
    for op in aten_ops:
        for overload in [getattr(op, name) for name in op.overloads()] if isinstance(op, OpOverloadPacket) else [op]:
            decompositions.pop(overload, None)


@lru_cache(None)
def _core():
    return {op: function for op, function in decomposition_table.items() if op in CORE}


def core_aten_decompositions():
    """The table that leaves core operators: what is in it is not one of them."""
    return dict(_core())


def _core_aten_decompositions_post_autograd():
    return core_aten_decompositions()
