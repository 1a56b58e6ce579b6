"""Branches and loops as functions."""

from cresset import cond
from cresset._higher_order_ops.map import _stack_pytree, _unstack_pytree, map

__all__ = ["_stack_pytree", "_unstack_pytree", "cond", "map"]
