"""How rings of attention run."""

from dataclasses import dataclass
from enum import Enum

__all__ = []


class _RotateMethod(Enum):
    """Do keys and values go from rank to rank, or are all of them gathered at once?"""

    ALL_TO_ALL = 1
    ALL_GATHER = 2


class _CausalBehavior(Enum):
    """What causal attention needs of a block: nothing, all, or its lower triangle."""

    SKIP = None
    NOT_IS_CAUSAL = False
    IS_CAUSAL = True


@dataclass
class _ContextParallelOptions:
    convert_to_f32: bool = True
    enable_load_balance: bool = True
    rotate_method: _RotateMethod = _RotateMethod.ALL_GATHER


_cp_options = _ContextParallelOptions()


def set_rotate_method(rotate_method):
    """Keys and values of all ranks are gathered at once ("allgather", as at first), or go around ("alltoall"), which needs less memory.

    NotImplementedError for other words.
    """
    methods = {"allgather": _RotateMethod.ALL_GATHER, "alltoall": _RotateMethod.ALL_TO_ALL}
    if rotate_method not in methods:
        raise NotImplementedError(f"Context Parallel does not support using {rotate_method} for kv shards rotation")
    _cp_options.rotate_method = methods[rotate_method]


def _is_causal_behavior(rank, world_size, i, is_causal):
    """What a rank does with the keys that come to it in step `i`, those of rank (rank - i) modulo world_size."""
    if not is_causal:
        return _CausalBehavior.NOT_IS_CAUSAL
    if i == 0:
        return _CausalBehavior.IS_CAUSAL
    if rank >= i or _cp_options.enable_load_balance:
        return _CausalBehavior.NOT_IS_CAUSAL
    return _CausalBehavior.SKIP
