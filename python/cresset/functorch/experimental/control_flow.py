"""Branches and loops as functions."""

from cresset import cond
from cresset._higher_order_ops.map import map

__all__ = ["cond", "map"]
