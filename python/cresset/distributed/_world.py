"""The groups of this process: the default one, names, ranks and tags of all, and groups by name for operators.

`distributed_c10d._world` is the place where they are kept. It may be replaced by an object with the same attributes: one that keeps them
for each thread makes threads ranks.
"""

import sys
import threading
import weakref

__all__ = ["GroupMember", "group"]


class _World:
    """All groups. Keys are groups: names and stores, names, {rank in the default group: rank in the group}, "cpu:gloo"."""

    def __init__(self):
        self.default_pg = None
        self.pg_map, self.pg_names, self.pg_group_ranks, self.pg_backend_config = {}, {}, {}, {}
        self.group_count = 0
        self.tags_to_pg, self.pg_to_tag, self.pg_coalesce_state = {}, {}, {}


_home = sys.modules[__name__]  # distributed_c10d puts itself here
_world = _World()


def current():
    """Where the groups are kept now."""
    return _home._world


class _DefaultGroup(type):
    @property
    def WORLD(cls):
        return current().default_pg

    @WORLD.setter
    def WORLD(cls, value):
        current().default_pg = value


class GroupMember(metaclass=_DefaultGroup):
    """What new_group gives: a group for its members, NON_GROUP_MEMBER for others. `WORLD` is the default group, or None."""

    NON_GROUP_MEMBER = -100


class group(metaclass=_DefaultGroup):
    """`group.WORLD` is the default group, or None."""


def forget(pg):
    """Take a group out of all tables."""
    world = current()
    name = world.pg_names.get(pg)
    for table in (world.pg_map, world.pg_names, world.pg_group_ranks, world.pg_backend_config, world.pg_coalesce_state):
        table.pop(pg, None)
    tag = world.pg_to_tag.pop(pg, None)
    if tag is not None:
        for key in {tag, ""} & set(world.tags_to_pg):
            if pg in world.tags_to_pg[key]:
                world.tags_to_pg[key].remove(pg)
    if name is not None:
        _unregister_process_group(name)


# --- groups by name

_isolated = False  # each thread has names of its own
_shared_names, _names_of_thread = {}, threading.local()


def _names():
    if not _isolated:
        return _shared_names
    if not hasattr(_names_of_thread, "names"):
        _names_of_thread.names = {}
    return _names_of_thread.names


def _set_thread_isolation_mode(enable):
    """Has each thread groups of its own under a name?"""
    global _isolated
    _isolated = bool(enable)


def _register_process_group(group_name, group):
    """Let `_resolve_process_group(group_name)` find the group, as long as it lives."""
    _names()[group_name] = weakref.ref(group)


def _unregister_process_group(group_name):
    """Forget a name; nothing where it is unknown."""
    _names().pop(group_name, None)


def _unregister_all_process_groups():
    """Forget all names."""
    _names().clear()


def _resolve_process_group(group_name):
    """The group of that name. RuntimeError where there is none."""
    held = _names().get(group_name)
    found = held() if held is not None else None
    if found is None:
        raise RuntimeError(f"Could not resolve the process group registered under the name {group_name}")
    return found
