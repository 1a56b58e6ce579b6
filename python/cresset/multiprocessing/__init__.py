"""Python's multiprocessing, whose queues and pipes pass tensors on without copying: both processes see the same memory.

A tensor that is sent moves to shared memory (as `share_memory_` does) and only a handle travels. With the sharing strategy
"file_descriptor" the handle is an open file, so that nothing can be left behind; with "file_system" it is a name in /dev/shm, which the last
user removes unless it is killed. Tensors on devices travel by value.
"""

import multiprocessing
from multiprocessing import *  # noqa: F403

from .reductions import init_reductions
from .spawn import ENV_VAR_PARALLEL_START, ProcessContext, ProcessExitedException, ProcessRaisedException, SpawnContext, spawn, start_processes

__all__ = [
    "get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy", "spawn", "start_processes", "ProcessContext",
    "ProcessExitedException", "ProcessRaisedException", "SpawnContext", "ENV_VAR_PARALLEL_START", *multiprocessing.__all__,
]  # fmt: skip

_STRATEGIES = {"file_descriptor", "file_system"}
_strategy = "file_descriptor"


def get_all_sharing_strategies():
    """The sharing strategies of this system, a set."""
    return set(_STRATEGIES)


def get_sharing_strategy():
    """The current sharing strategy."""
    return _strategy


def set_sharing_strategy(new_strategy):
    """Choose how memory is shared from now on: "file_descriptor" or "file_system"; memory that is shared already stays as it is."""
    global _strategy
    assert new_strategy in _STRATEGIES, f"a sharing strategy of {sorted(_STRATEGIES)} was required; given: {new_strategy!r}"
    _strategy = new_strategy


init_reductions()


def _set_thread_name(name):
    """Give this thread a name that the system shows: its first 15 characters."""
    with open("/proc/thread-self/comm", "w") as file:
        file.write(name[:15])


def _get_thread_name():
    """The name of this thread that the system shows."""
    with open("/proc/thread-self/comm") as file:
        return file.read().rstrip("\n")
