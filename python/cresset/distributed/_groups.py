"""Process groups: the default one and those made of some of its ranks, backends by name, and which ranks are where."""

import atexit
import hashlib
import os
import warnings
from collections import namedtuple
from datetime import timedelta

import cresset
from cresset._C_distributed import PrefixStore, ProcessGroup, ProcessGroupGloo, Store

from .constants import default_pg_timeout
from .rendezvous import rendezvous

__all__ = [
    "Backend", "BackendConfig", "GroupMember", "destroy_process_group", "get_backend", "get_backend_config", "get_default_backend_for_device",
    "get_global_rank", "get_group_rank", "get_node_local_rank", "get_pg_count", "get_process_group_ranks", "get_rank", "get_world_size", "group",
    "init_process_group", "is_backend_available", "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available",
    "is_torchelastic_launched", "is_ucc_available", "is_xccl_available", "new_group", "new_subgroups", "new_subgroups_by_enumeration", "split_group",
]

_NOT_INITIALIZED = "Default process group has not been initialized, please make sure to call init_process_group."


class Backend(str):
    """The name of a backend, in small letters. `Backend.register_backend` adds one."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL, FAKE = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl", "fake"
    _BackendPlugin = namedtuple("_BackendPlugin", ["creator_fn", "extended_api"])
    _plugins = {}
    backend_list = [UNDEFINED, GLOO]
    default_device_backend_map = {"cpu": GLOO}
    backend_capability = {GLOO: ["cpu"]}
    backend_type_map = {
        UNDEFINED: ProcessGroup.BackendType.UNDEFINED, GLOO: ProcessGroup.BackendType.GLOO, NCCL: ProcessGroup.BackendType.NCCL,
        XCCL: ProcessGroup.BackendType.XCCL, UCC: ProcessGroup.BackendType.UCC, MPI: ProcessGroup.BackendType.MPI,
    }

    def __new__(cls, name):
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        value = getattr(Backend, name.upper(), Backend.UNDEFINED)
        return str.__new__(cls, name.lower() if value == Backend.UNDEFINED else value)

    @classmethod
    def register_backend(cls, name, func, extended_api=False, devices=None):
        """`func(store, rank, size, timeout)` makes the backend `name`, for these kinds of device (a str or a list; None: all).

        With `extended_api`, `func(options, pg_options)` with `options.store`, `.group_rank`, `.group_size`, `.timeout`, `.group_id` and
        `.global_ranks_in_group`. It returns a backend, or a ProcessGroup of its own.
        """
        if name != Backend.UCC or (name == Backend.UCC and is_ucc_available()):
            assert not hasattr(cls, name.upper()) or name in (Backend.NCCL, Backend.MPI, Backend.XCCL, Backend.FAKE), f"{name.upper()} c10d backend already exist"
        assert name.upper() not in cls._plugins, f"{name.upper()} c10d backend creator function already exist"
        setattr(cls, name.upper(), name.lower())
        cls.backend_list.append(name.lower())
        devices = [devices] if isinstance(devices, str) else list(devices or [])
        for device in devices:
            cls.default_device_backend_map[device] = name.lower()
        cls.backend_capability[name.lower()] = devices or ["cpu"]
        cls.backend_type_map.setdefault(name.lower(), ProcessGroup.BackendType.CUSTOM)
        cls._plugins[name.upper()] = cls._BackendPlugin(func, extended_api)


class BackendConfig:
    """Which backend serves which kind of device: of "gloo", "cpu:gloo,simulated:mine" or None."""

    def __init__(self, backend):
        text = str(backend).lower()
        if text in ("none", Backend.UNDEFINED):
            self.device_backend_map = {d: Backend(b) for d, b in Backend.default_device_backend_map.items()}
        elif ":" not in text:
            self.device_backend_map = {d: Backend(text) for d in Backend.backend_capability.get(text, ["cpu"])}
        else:
            self.device_backend_map = {}
            for pair in text.split(","):
                parts = pair.split(":")
                if len(parts) != 2:
                    raise ValueError(
                        f"Invalid device:backend pairing: {pair}. "
                        "To specify a device:backend mapping, provide a comma-separated list of device:backend pairs, e.g. 'cpu:gloo,cuda:custom_backend'."
                    )
                device, name = parts
                if device in self.device_backend_map:
                    raise ValueError(f"Duplicate device type {device} in backend string: {backend}. ")
                self.device_backend_map[device] = Backend(name)

    def __repr__(self):
        return ",".join(f"{device}:{name}" for device, name in self.device_backend_map.items())

    def get_device_backend_map(self):
        """Kinds of device to names of backends."""
        return self.device_backend_map


class _Options:
    """What a creator function with `extended_api` gets."""

    def __init__(self, store, rank, size, timeout, name, ranks):
        self.store, self.group_rank, self.group_size, self.timeout = store, rank, size, timeout
        self.group_id, self.global_ranks_in_group = name, ranks


class _Info:
    """What is known of a group beside the group itself."""

    def __init__(self, ranks, backend, config, store, timeout):
        self.ranks, self.backend, self.config, self.store, self.timeout = ranks, backend, config, store, timeout
        self.rank_of = {rank: place for place, rank in enumerate(ranks)}


class _World:
    """All groups of this process."""

    def __init__(self):
        self.default_pg, self.infos, self.count = None, {}, 0


_world = _World()


class GroupMember:
    """What new_group gives: a group for its members, NON_GROUP_MEMBER for others."""

    WORLD = None
    NON_GROUP_MEMBER = -100


class _WorldMeta(type):
    @property
    def WORLD(cls):
        return GroupMember.WORLD

    @WORLD.setter
    def WORLD(cls, value):
        GroupMember.WORLD = value


class group(metaclass=_WorldMeta):
    """`group.WORLD` is the default group, or None."""


# --- asking

def is_initialized():
    """Is there a default process group?"""
    return _world.default_pg is not None


def is_gloo_available():
    """True: this build has Gloo."""
    return True


def is_mpi_available():
    """False, until a backend of that name is registered."""
    return "MPI" in Backend._plugins


def is_nccl_available():
    """False, until a backend of that name is registered."""
    return "NCCL" in Backend._plugins


def is_ucc_available():
    """False, until a backend of that name is registered."""
    return "UCC" in Backend._plugins


def is_xccl_available():
    """False, until a backend of that name is registered."""
    return "XCCL" in Backend._plugins


def is_backend_available(backend):
    """Can groups be made with this backend?"""
    return backend.lower() == Backend.GLOO or backend.upper() in Backend._plugins


def is_torchelastic_launched():
    """Was this process started by the launcher?"""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def get_default_backend_for_device(device):
    """The name of the backend that serves this device where none is named. ValueError for a device without one."""
    kind = device.type if isinstance(device, cresset.device) else str(device).split(":")[0]
    if kind not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.default_device_backend_map[kind]


def _get_default_group():
    if _world.default_pg is None:
        raise ValueError(_NOT_INITIALIZED)
    return _world.default_pg


def _group_or_default(group):
    return _get_default_group() if group is None else group


def _rank_not_in_group(group):
    return group is not None and group == GroupMember.NON_GROUP_MEMBER


def _warn_not_in_group(what):
    warnings.warn(f"Running {what} on global rank {get_rank()} which does not belong to the given group.", stacklevel=3)


def _info(group):
    info = _world.infos.get(group)
    if info is None:
        raise ValueError("The given group is not registered")
    return info


def get_rank(group=None):
    """This process's rank in the group; -1 where it is no member."""
    if _rank_not_in_group(group):
        return -1
    default = _get_default_group()
    if group is None or group is default:
        return default.rank()
    return group.rank()


def get_world_size(group=None):
    """How many ranks the group has; -1 where this process is no member."""
    if _rank_not_in_group(group):
        return -1
    return _group_or_default(group).size()


def get_node_local_rank(fallback_rank=None):
    """LOCAL_RANK, which the launcher sets, else `fallback_rank`; RuntimeError without either."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError("LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, assuming you are not running in a multi-device context and want the code to run locally instead.")


def get_process_group_ranks(group):
    """The ranks in the default group of a group's members, in order."""
    return list(_info(_group_or_default(group)).ranks)


def get_group_rank(group, global_rank):
    """The rank in the group of a rank of the default group. ValueError where it is no member."""
    if group is GroupMember.WORLD:
        return global_rank
    if group not in _world.infos:
        raise ValueError(f"Group {group} is not registered, please create group with torch.distributed.new_group API")
    ranks = _world.infos[group].rank_of
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks[global_rank]


def get_global_rank(group, group_rank):
    """The rank in the default group of a rank of the group. ValueError where there is none."""
    if group is GroupMember.WORLD:
        return group_rank
    if group not in _world.infos:
        raise ValueError(f"Group {group} is not registered, please create group with torch.distributed.new_group API")
    ranks = _world.infos[group].ranks
    if not 0 <= group_rank < len(ranks):
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return ranks[group_rank]


def get_backend(group=None):
    """The name of the group's backend."""
    pg = _group_or_default(group)
    if _rank_not_in_group(pg):
        raise ValueError("Invalid process group specified")
    return Backend(_info(pg).backend)


def get_backend_config(group=None):
    """Devices and backends of the group, as "cpu:gloo"."""
    return str(_info(_group_or_default(group)).config)


def _get_group_name(group):
    """The name of a group, which operators of graphs carry instead of it."""
    return group.group_name


def _resolve_process_group(name):
    """The group of a name, or a group that is given as itself. RuntimeError where there is none."""
    if isinstance(name, ProcessGroup):
        return name
    for pg in _world.infos:
        if pg.group_name == name:
            return pg
    raise RuntimeError(f"Could not resolve the process group registered under the name {name}")


def _get_group_size_by_name(name):
    """How many ranks the group of a name has."""
    return _resolve_process_group(name).size()


def get_pg_count():
    """How many groups there are."""
    return _world.count


# --- making

def _checked_timeout(timeout):
    if not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    return timeout


def _make_backend(name, store, rank, size, timeout, options, ranks, group_name):
    plugin = Backend._plugins.get(name.upper())
    if plugin is not None:
        if plugin.extended_api:
            return plugin.creator_fn(_Options(store, rank, size, timeout, group_name, ranks), options)
        return plugin.creator_fn(store, rank, size, timeout)
    if name != Backend.GLOO:
        if name in (Backend.NCCL, Backend.UCC, Backend.MPI, Backend.XCCL):
            raise RuntimeError(f"Distributed package doesn't have {name.upper()} built in")
        raise ValueError(f"Unknown backend type {name}: Backend.register_backend adds one.")
    if options is None:
        options = ProcessGroupGloo._Options()
        options._timeout = timeout
    options.global_ranks_in_group, options.group_name = ranks, group_name
    return ProcessGroupGloo(store, rank, size, options)


def _make_group(name, ranks, rank, backend, store, timeout, options, description):
    """The group of these ranks of the world, with a backend for each kind of device; `rank` is this process's place among them."""
    config = BackendConfig(backend)
    store = PrefixStore(f"{name}/", store)
    pg, made = ProcessGroup(store, rank, len(ranks)), {}
    for device, kind in config.device_backend_map.items():
        if kind not in made:
            made[kind] = _make_backend(kind, PrefixStore(f"{kind}/", store), rank, len(ranks), timeout, options, ranks, name)
        if isinstance(made[kind], ProcessGroup):
            pg = made[kind]
            break
        pg._register_backend(cresset.device(device), Backend.backend_type_map.get(kind, ProcessGroup.BackendType.CUSTOM), made[kind])
    first = next(iter(config.device_backend_map.values()))
    if made and not isinstance(made[first], ProcessGroup):
        pg._set_default_backend(Backend.backend_type_map.get(first, ProcessGroup.BackendType.CUSTOM))
    pg._set_group_name(name)
    pg._set_group_desc(description or "undefined")
    text = str(backend).lower()
    _world.infos[pg] = _Info(list(ranks), first if text in ("none", Backend.UNDEFINED) or ":" in text else text, config, store, timeout)
    _world.count += 1
    return pg


def init_process_group(
    backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, store=None, group_name="", pg_options=None, device_id=None, _ranks=None
):
    """Join the default process group: every process makes the same call, and it returns when all have come.

    `backend` is "gloo", a registered name, "cpu:gloo,device:name", or None for the default of each device. Processes find each other by
    `init_method` ("env://", the default; "tcp://host:port"; "file:///path", with `rank` and `world_size`) or by a `store`. `timeout` (a
    timedelta, 30 minutes by default) is for this and all collectives. ValueError for a second call.
    """
    if _world.default_pg is not None:
        raise ValueError("trying to initialize the default process group twice!")
    assert store is None or init_method is None, "Cannot specify both init_method and store."
    timeout = _checked_timeout(default_pg_timeout if timeout is None else timeout)
    if store is not None:
        assert world_size > 0, "world_size must be positive if using store"
        assert rank >= 0, "rank must be non-negative if using store"
    else:
        store, rank, world_size = next(rendezvous(init_method or "env://", rank, world_size, timeout=timeout))
        store.set_timeout(timeout)
        store = PrefixStore("default_pg", store)
    if not isinstance(store, Store):
        raise TypeError(f"init_process_group: store: a Store was required; a {type(store).__name__} was given.")
    if isinstance(backend, str) and ":" not in backend and not is_backend_available(backend):
        _make_backend(Backend(backend), None, rank, world_size, timeout, pg_options, [], "")
    GroupMember.WORLD = _world.default_pg = _make_group(
        group_name or "0", list(range(world_size)), rank, "undefined" if backend is None else backend, store, timeout, pg_options, "default_pg"
    )
    _world.store = store


def destroy_process_group(group=None):
    """Leave a group; without one all groups, the default one last. ValueError where there is none."""
    if _rank_not_in_group(group):
        return
    pg = _get_default_group() if group is None else group
    if pg not in _world.infos:
        raise ValueError("Invalid process group specified")
    going = list(_world.infos)[::-1] if group is None or pg is _world.default_pg else [pg]
    for each in going:
        del _world.infos[each]
        each.shutdown()
    if _world.default_pg in going:
        GroupMember.WORLD = _world.default_pg = None
        _world.count = 0


@atexit.register
def _leave_all():
    for pg in list(_world.infos)[::-1]:
        try:
            pg.shutdown()
        except Exception:  # the process ends
            pass
    _world.infos.clear()
    GroupMember.WORLD = _world.default_pg = None


def _checked_ranks(ranks, sort):
    size = _world.default_pg.size()
    if ranks is None:
        return list(range(size))
    ranks = sorted(ranks) if sort else list(ranks)
    if len(ranks) > size:
        raise ValueError("the new group's world size should be less or equal to the world size set by init_process_group")
    for rank in ranks:
        if rank < 0 or rank >= size:
            raise ValueError("The new group's rank should be within the world_size set by init_process_group")
    if len(set(ranks)) != len(ranks):
        raise ValueError("ranks of a new group must be different")
    return ranks


def new_group(
    ranks=None, timeout=None, backend=None, pg_options=None, use_local_synchronization=False, group_desc=None, device_id=None, sort_ranks=True
):
    """A group of some ranks of the default one (all, without `ranks`).

    All processes make the same calls in the same order, members or not; with `use_local_synchronization` the members alone. For others
    it gives GroupMember.NON_GROUP_MEMBER. What is not given is as in the default group.
    """
    default = _get_default_group()
    info = _info(default)
    ranks = _checked_ranks(ranks, sort_ranks)
    backend = str(info.config) if backend is None else backend
    if use_local_synchronization:
        digest = hashlib.sha1(bytes("_".join(map(str, ranks)), "utf-8")).hexdigest()
        seen = sum(1 for pg in _world.infos if pg.group_name.startswith(digest))
        name = digest + (f"_{seen}" if seen else "")
    else:
        name = str(_world.count)
    if default.rank() not in ranks:
        if not use_local_synchronization:
            _world.count += 1  # names count groups, here too
        return GroupMember.NON_GROUP_MEMBER
    timeout = _checked_timeout(info.timeout if timeout is None else timeout)
    pg = _make_group(name, ranks, ranks.index(default.rank()), backend, _world.store, timeout, pg_options, group_desc)
    if use_local_synchronization:
        _world.count -= 1
    return pg


def split_group(parent_pg=None, split_ranks=None, timeout=None, pg_options=None, group_desc=None, backend=None):
    """The one of several groups of a group's ranks that this process belongs to, or None. All of the parent's ranks make the call."""
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    parent = _group_or_default(parent_pg)
    everybody = get_process_group_ranks(parent)
    mine = None
    for ranks in split_ranks:
        made = new_group([everybody[r] for r in ranks], timeout, backend, pg_options, use_local_synchronization=True, group_desc=group_desc)
        if made != GroupMember.NON_GROUP_MEMBER:
            mine = made
    return mine


def new_subgroups_by_enumeration(ranks_per_subgroup_list, timeout=None, backend=None, pg_options=None, group_desc=None):
    """Groups without common ranks: (this process's one, all)."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    every = [rank for ranks in ranks_per_subgroup_list for rank in ranks]
    if len(set(every)) != len(every):
        raise ValueError("The rank of a subgroup appears in another one: subgroups must not overlap")
    groups = [new_group(ranks, timeout, backend, pg_options, group_desc=group_desc) for ranks in ranks_per_subgroup_list]
    mine = next((g for g in groups if g != GroupMember.NON_GROUP_MEMBER), None)
    return mine, groups


def new_subgroups(group_size=None, group=None, timeout=None, backend=None, pg_options=None, group_desc=None):
    """Groups of `group_size` neighbours each: (this process's one, all). ValueError where the world does not divide so."""
    size = get_world_size()
    if group_size is None:
        group_size = int(os.environ.get("LOCAL_WORLD_SIZE", size))
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if size < group_size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({size})")
    if size % group_size != 0:
        raise ValueError(f"The world size ({size}) must be divisible by group_size={group_size}")
    return new_subgroups_by_enumeration([list(range(i, i + group_size)) for i in range(0, size, group_size)], timeout, backend, pg_options, group_desc)
