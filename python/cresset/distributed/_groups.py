"""Process groups: the default one and those made of some of its ranks, backends by name, and which ranks are where."""

import atexit
import hashlib
import importlib.util
import os
import warnings
from collections import namedtuple
from datetime import timedelta

import cresset
from cresset._C_distributed import DebugLevel, PrefixStore, ProcessGroup, ProcessGroupGloo, Store, _ProcessGroupWrapper, get_debug_level

from . import _cluster
from ._store_barrier import _store_based_barrier
from ._world import GroupMember, _register_process_group, current, forget, group
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
    backend_capability = {GLOO: ["cpu", "cuda"], NCCL: ["cuda"], XCCL: ["xpu"], UCC: ["cpu", "cuda"], MPI: ["cpu", "cuda"]}
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
            cls.default_device_backend_map.setdefault(device, name.lower())
        cls.backend_capability[name.lower()] = devices or ["cpu", "cuda"]
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


# --- asking

def is_initialized():
    """Is there a default process group?"""
    return current().default_pg is not None


def is_gloo_available():
    """True: this build has Gloo."""
    return True


def is_mpi_available():
    """Is mpi4py here (pip install mpi4py, beside Open MPI or MPICH), or was a backend of that name registered?"""
    return "MPI" in Backend._plugins or importlib.util.find_spec("mpi4py") is not None


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
    return backend.lower() == Backend.GLOO or backend.upper() in Backend._plugins or backend.lower() == Backend.MPI and is_mpi_available()


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
    pg = current().default_pg
    if pg is None:
        raise ValueError(_NOT_INITIALIZED)
    return pg


def _group_or_default(group):
    return _get_default_group() if group is None else group


def _rank_not_in_group(group):
    return group is not None and group == GroupMember.NON_GROUP_MEMBER


def _warn_not_in_group(what):
    rank = -1 if current().default_pg is None else get_rank()
    warnings.warn(f"Running {what} on global rank {rank} which does not belong to the given group.", stacklevel=3)


def _ranks_of(group):
    """{rank in the default group: rank in the group}. ValueError for a group that is not known."""
    ranks = current().pg_group_ranks.get(group)
    if ranks is None:
        raise ValueError(f"Group {group} is not registered, please create group with torch.distributed.new_group API")
    return ranks


def _timeout_of(group):
    return getattr(group, "_timeout", default_pg_timeout)


def _get_default_store():
    """The store of the default group. ValueError where there is none."""
    return current().pg_map[_get_default_group()][1]


def _get_process_group_store(pg):
    """The store that the group's ranks share."""
    return current().pg_map[pg][1]


def _get_process_group_name(pg):
    """The name that all ranks know the group by, "None" for an unknown one."""
    return current().pg_names.get(pg, "None")


def _get_group_size(group):
    """The number of ranks."""
    return _group_or_default(group).size()


def _get_pg_default_device(group=None):
    """The device for what has none: that of the group's only kind of device, else the CPU's."""
    kinds = _group_or_default(group)._device_types
    return kinds[0] if len(kinds) == 1 else cresset.device("cpu")


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
    """LOCAL_RANK, or what mpirun or srun say of it, else `fallback_rank`; RuntimeError without any."""
    if (rank := _cluster.variable("LOCAL_RANK")) is not None:
        return int(rank)
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank` to work, assuming you are "
        "not running in a multi-device context and want the code to run locally instead."
    )


def get_process_group_ranks(group):
    """The ranks in the default group of a group's members, in order."""
    return list(_ranks_of(_group_or_default(group)))


def get_group_rank(group, global_rank):
    """The rank in the group of a rank of the default group. ValueError where it is no member."""
    if group is GroupMember.WORLD:
        return global_rank
    ranks = _ranks_of(group)
    if global_rank not in ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return ranks[global_rank]


def get_global_rank(group, group_rank):
    """The rank in the default group of a rank of the group. ValueError where there is none."""
    if group is GroupMember.WORLD:
        return group_rank
    for global_rank, place in _ranks_of(group).items():
        if place == group_rank:
            return global_rank
    raise ValueError(f"Group rank {group_rank} is not part of group {group}")


def get_backend(group=None):
    """The name of the group's backend."""
    pg = _group_or_default(group)
    if _rank_not_in_group(pg):
        raise ValueError("Invalid process group specified")
    if pg not in current().pg_map:
        raise ValueError("The given group is not registered")
    return Backend(current().pg_map[pg][0])


def get_backend_config(group=None):
    """Devices and backends of the group, as "cpu:gloo"."""
    return current().pg_backend_config[_group_or_default(group)]


def get_pg_count():
    """How many groups there are."""
    return current().group_count


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
    if name == Backend.MPI and is_mpi_available():
        return _mpi().MpiGroup(rank, size, ranks, group_name, timeout)
    if name != Backend.GLOO:
        if name in (Backend.NCCL, Backend.UCC, Backend.MPI, Backend.XCCL):
            raise RuntimeError(f"Distributed package doesn't have {name.upper()} built in")
        raise ValueError(f"Unknown backend type {name}: Backend.register_backend adds one.")
    if options is None:
        options = ProcessGroupGloo._Options()
        options._timeout = timeout
    options.global_ranks_in_group, options.group_name = ranks, group_name
    return ProcessGroupGloo(store, rank, size, options)


def _mpi():
    """The module, whose import starts MPI."""
    return importlib.import_module("cresset.distributed._mpi")


def _made(kind, made, store, rank, size, timeout):
    """With TORCH_DISTRIBUTED_DEBUG=DETAIL a backend that compares the calls of all ranks first; a group written in Python stays as it is."""
    if get_debug_level() != DebugLevel.DETAIL or isinstance(made, ProcessGroup) or kind == Backend.FAKE or size == 1:
        return made
    return _create_process_group_wrapper(made, kind, store, rank, size, timeout)


def _create_process_group_wrapper(wrapped_pg, store_prefix, store, rank, world_size, timeout=default_pg_timeout):
    """A backend that compares, before each collective of `wrapped_pg`, the calls of all ranks, by connections of its own.

    RuntimeError on all ranks when they differ, and one that names the missing ranks when some do not come within the timeout.
    """
    assert is_gloo_available(), "ProcessGroupWrapper unsupported without GLOO backend"
    compared = PrefixStore(f"wrapper/{store_prefix}", store)
    return _ProcessGroupWrapper(wrapped_pg, ProcessGroupGloo(compared, rank, world_size, timeout))


def _make_group(name, ranks, rank, backend, store, timeout, options, description, tag=None):
    """The group of these ranks of the world, with a backend for each kind of device; `rank` is this process's place among them."""
    config = BackendConfig(backend)
    store = PrefixStore(f"{name}/", store)
    pg, made = ProcessGroup(store, rank, len(ranks)), {}
    for device in config.device_backend_map:
        cresset.device(device)  # a device's package, loaded by the first use of its name, may bring the backend
    for device, kind in config.device_backend_map.items():
        if kind not in made:
            backend_store = PrefixStore(f"{kind}/", store)
            new = _make_backend(kind, backend_store, rank, len(ranks), timeout, options, ranks, name)
            made[kind] = _made(kind, new, backend_store, rank, len(ranks), timeout)
        if isinstance(made[kind], ProcessGroup):
            pg = made[kind]
            break
        pg._register_backend(cresset.device(device), Backend.backend_type_map.get(kind, ProcessGroup.BackendType.CUSTOM), made[kind])
    first = next(iter(config.device_backend_map.values()))
    if made and not isinstance(made[first], ProcessGroup):
        pg._set_default_backend(Backend.backend_type_map.get(first, ProcessGroup.BackendType.CUSTOM))
    pg._set_group_name(name)
    pg._set_group_desc(description or "undefined")
    pg._timeout = timeout
    text = str(backend).lower()
    _enter(pg, name, ranks, first if text in ("none", Backend.UNDEFINED) or ":" in text else text, config, store, tag)
    return pg


def _enter(pg, name, ranks, backend, config, store, tag):
    """Put a group into all tables. `tag`: what programs find it by, with its ranks."""
    world = current()
    world.pg_map[pg], world.pg_names[pg], world.pg_backend_config[pg] = (backend, store), name, str(config)
    world.pg_group_ranks[pg] = {rank: place for place, rank in enumerate(ranks)}
    _register_process_group(name, pg)
    world.pg_to_tag[pg] = f"user:{tag}" if tag else f"ptd:{name}"
    world.tags_to_pg.setdefault(world.pg_to_tag[pg], []).append(pg)
    if not tag:
        world.tags_to_pg.setdefault("", []).append(pg)


def init_process_group(
    backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, store=None, group_name="", pg_options=None, device_id=None, _ranks=None
):
    """Join the default process group: every process makes the same call, and it returns when all have come.

    `backend` is "gloo", "mpi" (whose processes mpirun starts, and knows ranks of), a registered name, "cpu:gloo,device:name", or None for the default of each device. Processes find each other by
    `init_method` ("env://", the default; "tcp://host:port"; "file:///path", with `rank` and `world_size`) or by a `store`. `timeout` (a
    timedelta, 30 minutes by default) is for this and all collectives. ValueError for a second call.
    """
    if current().default_pg is not None:
        raise ValueError("trying to initialize the default process group twice!")
    assert store is None or init_method is None, "Cannot specify both init_method and store."
    timeout = _checked_timeout(default_pg_timeout if timeout is None else timeout)
    if backend == Backend.MPI and "MPI" not in Backend._plugins and is_mpi_available():
        if world_size != -1 or rank != -1:
            warnings.warn(f"For MPI backend, world_size ({world_size}) and rank ({rank}) are ignored since they are assigned by the MPI runtime.", stacklevel=2)
        store, rank, world_size = _mpi().rendezvous(timeout)
        store = PrefixStore("default_pg", store)
    elif store is not None:
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
    name = group_name or _next_name()
    kinds = "undefined" if backend is None else backend
    GroupMember.WORLD = pg = _make_group(name, list(range(world_size)), rank, kinds, store, timeout, pg_options, "default_pg")
    if os.environ.get("TORCH_DIST_INIT_BARRIER") == "1":
        _store_based_barrier(rank, store, pg.group_name, world_size, timeout)


def destroy_process_group(group=None):
    """Leave a group; without one all groups, the default one last. AssertionError where there is none."""
    if _rank_not_in_group(group):
        return
    if group is None and not is_initialized():
        raise AssertionError("Process group cannot be None")
    pg = _get_default_group() if group is None else group
    world = current()
    if pg not in world.pg_map:
        raise ValueError("Invalid process group specified")
    everything = group is None or pg is world.default_pg
    for each in list(world.pg_map)[::-1] if everything else [pg]:
        forget(each)
        each.shutdown()
    if everything:
        GroupMember.WORLD = None
        world.group_count = 0


@atexit.register
def _leave_all():
    for pg in list(current().pg_map)[::-1]:
        forget(pg)
        try:
            pg.shutdown()
        except Exception:  # the process ends
            pass
    GroupMember.WORLD = None


def _next_name():
    """Names count groups, so that all ranks agree."""
    world = current()
    name = str(world.group_count)
    world.group_count += 1
    return name


def _name_of_ranks(ranks):
    """A name that the members find without the other ranks."""
    digest = hashlib.sha1(bytes("_".join(map(str, ranks)), "utf-8")).hexdigest()
    seen = sum(1 for name in current().pg_names.values() if name.startswith(digest))
    return digest + (f"_{seen}" if seen else "")


def _abort_process_group(group=None):
    """End the connections of a group, or of all, without waiting: calls under way fail."""
    pg = _group_or_default(group)
    if _rank_not_in_group(pg):
        raise ValueError("Invalid process group specified or has been destroyed.")
    everything = group is None or pg is GroupMember.WORLD
    for each in list(current().pg_map)[::-1] if everything else [pg]:
        forget(each)
        each.abort()
    if everything:
        GroupMember.WORLD = None
        current().group_count = 0


def _checked_ranks(ranks, sort):
    size = _get_default_group().size()
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
    it gives GroupMember.NON_GROUP_MEMBER, or None with `use_local_synchronization`. What is not given is as in the default group.
    """
    return _new_group_with_tag(ranks, timeout, backend, pg_options, None, use_local_synchronization, group_desc, sort_ranks)


def _new_group_with_tag(
    ranks=None, timeout=None, backend=None, pg_options=None, pg_tag=None, use_local_synchronization=False, group_desc=None, sort_ranks=True
):
    """new_group; with a tag, the group of that tag and these ranks where there is one already."""
    default = _get_default_group()
    ranks = _checked_ranks(ranks, sort_ranks)
    name = _name_of_ranks(ranks) if use_local_synchronization else _next_name()
    if default.rank() not in ranks:
        return None if use_local_synchronization else GroupMember.NON_GROUP_MEMBER
    if pg_tag and (there := _find_pg_by_ranks_and_tag(pg_tag, ranks)) is not None:
        return there
    backend = current().pg_backend_config[default] if backend is None else backend
    timeout = _checked_timeout(_timeout_of(default) if timeout is None else timeout)
    return _make_group(name, ranks, ranks.index(default.rank()), backend, _get_default_store(), timeout, pg_options, group_desc, pg_tag)


def _get_group_tag(pg):
    """The tag that the group was made with, or one that only it has."""
    return current().pg_to_tag[pg].removeprefix("user:")


def _find_pg_by_ranks_and_tag(tag, ranks):
    """The group with this tag and these ranks, or None."""
    key = f"user:{tag}" if tag and not tag.startswith(("ptd:", "user:")) else tag
    for pg in current().tags_to_pg.get(key, ()):
        if sorted(current().pg_group_ranks[pg]) == sorted(ranks):
            return pg
    return None


def _find_or_create_pg_by_ranks_and_tag(tag, ranks, stride):
    """This rank's group of `stride` neighbours in `ranks` with this tag; it is made where there is none. ValueError for an empty tag then."""
    if len(ranks) % stride:
        raise ValueError(f"ranks: a number of ranks that {stride} divides was required; {len(ranks)} were given.")
    parts = [sorted(ranks[i : i + stride]) for i in range(0, len(ranks), stride)]
    mine = next((part for part in parts if get_rank() in part), None)
    if mine is None:
        raise RuntimeError(f"rank {get_rank()} is none of the ranks {ranks}.")
    found = _find_pg_by_ranks_and_tag(tag, mine)
    if found is None and tag == "":
        raise ValueError("Cannot automatically create PG with empty tag")
    return found if found is not None else _new_group_with_tag(mine, pg_tag=tag)


def _resolve_group_name_by_ranks_and_tag(ranks, tag):
    """The name of the group with this tag and these ranks. ValueError where there is none."""
    found = _find_pg_by_ranks_and_tag(tag, ranks)
    if found is None:
        raise ValueError(f"no group with the tag {tag!r} has the ranks {ranks}.")
    return found.group_name


def split_group(parent_pg=None, split_ranks=None, timeout=None, pg_options=None, group_desc=None, backend=None):
    """The one of several groups of a group's ranks that this process belongs to, or None. All of the parent's ranks make the call."""
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    parent = _group_or_default(parent_pg)
    everybody = get_process_group_ranks(parent)
    mine = None
    for ranks in split_ranks:
        made = new_group([everybody[r] for r in ranks], timeout, backend, pg_options, use_local_synchronization=True, group_desc=group_desc)
        mine = made if made is not None else mine
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
