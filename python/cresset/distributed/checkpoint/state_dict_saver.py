"""Saving: `save`, and `async_save`, which copies and goes on in a thread."""

import inspect
import threading
import warnings
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum

from cresset import distributed as dist

from ._storage_utils import _storage_setup
from .default_planner import DefaultSavePlanner
from .staging import AsyncStager, DefaultStager, StagingOptions
from .stateful import Stateful
from .utils import _positional_once, _Steps, _use_dist

__all__ = ["AsyncCheckpointerType", "AsyncSaveResponse", "async_save", "save", "save_state_dict"]


class AsyncCheckpointerType(Enum):
    """Where async_save writes: in a thread. PROCESS is refused."""

    THREAD = "thread"
    PROCESS = "process"


@dataclass
class AsyncSaveResponse:
    """What async_save gives when its stager copies in the background: the copy is made; the checkpoint is complete."""

    staging_completion: Future
    upload_completion: Future


def _stateful_to_state_dict(state_dict):
    """The state_dict with the states of its Stateful values."""
    return {key: value.state_dict() if isinstance(value, Stateful) else value for key, value in state_dict.items()}


@_positional_once
def save(state_dict, *, checkpoint_id=None, storage_writer=None, planner=None, process_group=None, no_dist=False, use_collectives=True):
    """Save a dictionary of tensors, Stateful objects (modules, optimizers) and other values; all ranks of the group call it together.

    A tensor that several ranks have is written by one of them, a sharded one (DTensor, ShardedTensor) by those that have its parts. The
    checkpoint counts when all ranks have written; its Metadata is the result. `checkpoint_id` is a folder, or what the `storage_writer`
    takes. CheckpointException, on all ranks, when a rank fails. Values that are no tensors are pickled.
    """
    if not use_collectives:
        raise NotImplementedError("save: use_collectives=False, a checkpoint of parts that each rank loads alone, is not part of Cresset.")
    use_dist = _use_dist(no_dist, "save")
    writer = _storage_setup(storage_writer, checkpoint_id, reader=False)
    return _save(_stateful_to_state_dict(state_dict), writer, process_group, 0, use_dist, planner)


def save_state_dict(state_dict, storage_writer, process_group=None, coordinator_rank=0, no_dist=False, planner=None):
    """The older form of save, with a coordinator of one's choice; Stateful values are not asked for their state."""
    warnings.warn("'save_state_dict' is deprecated and will be removed in future versions.Please use 'save' instead.", FutureWarning, stacklevel=2)
    storage_writer.reset()
    return _save(state_dict, storage_writer, process_group, coordinator_rank, not no_dist, planner)


def _set_up(planner, state_dict, storage_meta, is_coordinator):
    if "storage_meta" in inspect.signature(planner.set_up_planner).parameters:
        planner.set_up_planner(state_dict=state_dict, storage_meta=storage_meta, is_coordinator=is_coordinator)
        return
    warnings.warn(
        "The function definition for SavePlanner.set_up_planner has been updated to include the storage_meta argument. "
        "Please update your implementation to include this parameter.",
        stacklevel=4,
    )
    planner.set_up_planner(state_dict, is_coordinator)


def _save(state_dict, writer, group, coordinator_rank, use_dist, planner):
    steps = _Steps(group, use_dist, coordinator_rank)
    planner = DefaultSavePlanner() if planner is None else planner
    metadata = None

    def local_step():
        _set_up(planner, state_dict, writer.storage_meta(), steps.is_coordinator)
        writer.set_up_storage_writer(steps.is_coordinator)
        return writer.prepare_local_plan(planner.create_local_plan())

    def global_step(all_plans):
        nonlocal metadata
        all_plans, metadata = planner.create_global_plan(all_plans)
        return writer.prepare_global_plan(all_plans)

    plan = steps.reduce_scatter("plan", local_step, global_step)

    def write():
        writing = writer.write_data(planner.finish_plan(plan), planner)
        writing.wait()
        return writing.value()

    def finish(results):
        writer.finish(metadata=metadata, results=results)
        return metadata

    return steps.all_reduce("write", write, finish)


def _has_cpu_backend(group):
    return "cpu" in dist.get_backend_config(group)


@_positional_once
def async_save(state_dict, *, checkpoint_id=None, storage_writer=None, planner=None, process_group=None,
               async_checkpointer_type=AsyncCheckpointerType.THREAD, async_stager=None, no_dist=False, use_collectives=True):  # fmt: skip
    """save in a thread: a concurrent.futures.Future of it. Tensors are copied first, so that they may change when async_save returns.

    Ranks plan and finish together in the background: give it a `process_group` of its own (`new_group()`), which no other thread uses meanwhile.
    With a DefaultStager the copy, too, is made in the background, and the result is an AsyncSaveResponse.
    """
    if async_checkpointer_type != AsyncCheckpointerType.THREAD:
        raise NotImplementedError(f"async_save: AsyncCheckpointerType.THREAD was required; {async_checkpointer_type} is not part of Cresset.")
    if not no_dist and dist.is_available() and dist.is_initialized():
        assert _has_cpu_backend(process_group), "A CPU backend must be enabled for async save; try initializing process group with 'cpu:gloo,cuda:nccl'"
    writer = _storage_setup(storage_writer, checkpoint_id, reader=False)
    stager = async_stager if async_stager is not None else writer if isinstance(writer, AsyncStager) else DefaultStager(StagingOptions(use_async_staging=False))
    staged = stager.stage(_stateful_to_state_dict(state_dict))

    def upload():
        values = staged.result() if isinstance(staged, Future) else staged
        return save(
            values, checkpoint_id=checkpoint_id, storage_writer=writer, planner=planner, process_group=process_group, no_dist=no_dist,
            use_collectives=use_collectives,
        )  # fmt: skip

    uploaded = _in_thread(upload)
    if isinstance(staged, Future):
        copied = Future()
        staged.add_done_callback(lambda done: copied.set_exception(done.exception()) if done.exception() else copied.set_result(None))
        return AsyncSaveResponse(staging_completion=copied, upload_completion=uploaded)
    if stager.should_synchronize_after_execute:
        stager.synchronize_staging()
    return uploaded


def _in_thread(function):
    """A Future of a call in a thread that a program waits for before it ends."""
    future = Future()

    def run():
        try:
            future.set_result(function())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="checkpoint", daemon=False).start()
    return future
