"""Loading: `load` fills a state_dict from a checkpoint, whatever number of ranks wrote it."""

import warnings

from ._storage_utils import _storage_setup
from .default_planner import DefaultLoadPlanner, _EmptyStateDictLoadPlanner
from .stateful import Stateful
from .utils import _all_gather_keys, _positional_once, _Steps, _use_dist

__all__ = ["load", "load_state_dict"]


@_positional_once
def load(state_dict, *, checkpoint_id=None, storage_reader=None, planner=None, process_group=None, no_dist=False):
    """Fill a state_dict, in place, from a checkpoint; all ranks of the group call it together.

    Its tensors get the values of theirs, sharded ones those of their parts, however many ranks saved them; Stateful objects get their state through
    `load_state_dict`, other values are replaced. CheckpointException, on all ranks, for what the checkpoint lacks, for other sizes and for
    files that are damaged. No code of the checkpoint runs.
    """
    use_dist = _use_dist(no_dist, "load")
    reader = _storage_setup(storage_reader, checkpoint_id, reader=True)
    keys = _all_gather_keys(state_dict, process_group) if use_dist else set(state_dict)
    mine = [key for key in sorted(keys, key=str) if key in state_dict]
    values = {key: state_dict[key].state_dict() if isinstance(state_dict[key], Stateful) else state_dict[key] for key in mine}
    _load(values, reader, process_group, 0, use_dist, planner)
    for key in mine:
        if isinstance(state_dict[key], Stateful):
            state_dict[key].load_state_dict(values[key])
        else:
            state_dict[key] = values[key]


def load_state_dict(state_dict, storage_reader, process_group=None, coordinator_rank=0, no_dist=False, planner=None):
    """The older form of load, with a coordinator of one's choice; Stateful values are not given their state."""
    warnings.warn("'load_state_dict' is deprecated and will be removed in future versions. Please use 'load' instead.", FutureWarning, stacklevel=2)
    storage_reader.reset()
    _load(state_dict, storage_reader, process_group, coordinator_rank, not no_dist, planner)


def _load(state_dict, reader, group, coordinator_rank, use_dist, planner):
    steps = _Steps(group, use_dist, coordinator_rank)
    planner = DefaultLoadPlanner() if planner is None else planner

    def local_step():
        metadata = reader.read_metadata()
        planner.set_up_planner(state_dict, metadata, steps.is_coordinator)
        reader.set_up_storage_reader(metadata, steps.is_coordinator)
        return reader.prepare_local_plan(planner.create_local_plan())

    def global_step(all_plans):
        return reader.prepare_global_plan(planner.create_global_plan(all_plans))

    plan = steps.reduce_scatter("plan", local_step, global_step)

    def read():
        reader.read_data(planner.finish_plan(plan), planner).wait()

    steps.all_gather("read", read)


def _load_state_dict(state_dict, storage_reader, process_group=None, coordinator_rank=0, no_dist=False, planner=None):
    """load without Stateful values, whose reader is prepared already: what libraries that bring their own planner call."""
    _load(state_dict, storage_reader, process_group, coordinator_rank, not no_dist, planner)


def _load_state_dict_from_keys(keys=None, *, checkpoint_id=None, storage_reader=None, process_group=None):
    """A new state_dict of what the checkpoint has: all, or what lies at or below one of `keys`."""
    use_dist = _use_dist(False, "load")
    reader = _storage_setup(storage_reader, checkpoint_id, reader=True)
    state_dict = {}
    _load(state_dict, reader, process_group, 0, use_dist, _EmptyStateDictLoadPlanner(keys=keys or None))
    return state_dict
