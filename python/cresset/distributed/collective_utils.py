"""A value that one rank makes for all, or each rank for all: with its errors, which all ranks get."""

from . import _groups, _objects

__all__ = ["SyncPayload", "all_gather", "broadcast"]


class SyncPayload:
    """What a rank tells the others: the name of a stage, whether it went well, its value or its error."""

    def __init__(self, stage_name, success, payload, exception=None):
        self.stage_name, self.success, self.payload, self.exception = stage_name, success, payload, exception


def _outcome(data_or_fn, stage_name):
    if not callable(data_or_fn):
        return SyncPayload(stage_name, True, data_or_fn)
    try:
        return SyncPayload(stage_name, True, data_or_fn())
    except Exception as error:
        return SyncPayload(stage_name, False, None, error)


def _failure(sync, stage_name, rank=None):
    where = "" if rank is None else f" on rank {rank}"
    return RuntimeError(f"Stage {stage_name or sync.stage_name} failed{where}: {type(sync.exception).__name__}: {sync.exception}")


def broadcast(data_or_fn, *, success=True, stage_name=None, rank=0, pg=None):
    """What rank `rank` has, or what its function returns, on all ranks; other ranks' functions are not called.

    An error there, or `success=False`, is a RuntimeError on all ranks. Without a group: this process's value.
    """
    if not success and data_or_fn is not None:
        raise AssertionError("Data or Function is expected to be None if not successful")
    mine = None
    if pg is None or pg.rank() == rank:
        mine = _outcome(data_or_fn, stage_name) if success else SyncPayload(stage_name, False, None, RuntimeError("it was not successful"))
    if pg is not None:
        held = [mine]
        _objects.broadcast_object_list(held, group=pg, group_src=rank)
        mine = held[0]
    if not mine.success:
        raise _failure(mine, stage_name, None if pg is None else rank) from mine.exception
    return mine.payload


def all_gather(data_or_fn, stage_name=None, pg=None):
    """What all ranks have, or what their functions return, in the order of ranks. RuntimeError on all ranks when one failed."""
    mine = _outcome(data_or_fn, stage_name)
    everyone = [mine]
    if pg is not None:
        everyone = [None] * _groups.get_world_size(pg)
        _objects.all_gather_object(everyone, mine, group=pg)
    for rank, sync in enumerate(everyone):
        if not sync.success:
            raise _failure(sync, stage_name, None if pg is None else rank) from sync.exception
    return [sync.payload for sync in everyone]
