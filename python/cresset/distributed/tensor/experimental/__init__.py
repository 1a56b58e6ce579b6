"""Blocks and functions between plain tensors and DTensors."""

import contextlib

from .._state import dispatcher
from ._attention import context_parallel
from ._local_map import local_map
from ._register_sharding import register_sharding

__all__ = ["context_parallel", "implicit_replication", "local_map", "register_sharding"]


@contextlib.contextmanager
def implicit_replication():
    """A block in which plain tensors among the arguments of operators on DTensors count as whole on every rank."""
    before = dispatcher._allow_implicit_replication
    dispatcher._allow_implicit_replication = True
    try:
        yield
    finally:
        dispatcher._allow_implicit_replication = before
