"""From checkpoints to files of `save`, and back."""

import dataclasses
import os
from pathlib import Path

import cresset
from cresset import distributed as dist
from cresset.futures import Future

from ._nested_dict import flatten_state_dict
from .default_planner import DefaultLoadPlanner, _EmptyStateDictLoadPlanner
from .filesystem import FileSystemReader, FileSystemWriter
from .metadata import Metadata, TensorProperties, TensorStorageMetadata
from .planner import LoadItemType
from .planner_helpers import _create_chunk_list, _is_tensor, _size_of
from .state_dict_loader import _load, _load_state_dict  # noqa: F401
from .state_dict_saver import _save
from .storage import StorageReader

__all__ = ["BroadcastingTorchSaveReader", "DynamicMetaLoadPlanner", "dcp_to_torch_save", "torch_save_to_dcp"]


class BroadcastingTorchSaveReader(StorageReader):
    """Reads a file of `save` as if it were a checkpoint: the coordinator reads it and sends each tensor to all ranks.

    To be used with DynamicMetaLoadPlanner, since the file has no Metadata. Only tensors are read.
    """

    def __init__(self, checkpoint_id=None, coordinator_rank=0):
        self.checkpoint_id, self.coordinator_rank = checkpoint_id, coordinator_rank

    def read_metadata(self, *args, **kwargs):
        return Metadata(state_dict_metadata={})

    def read_data(self, plan, planner):
        values = {}
        if self.is_coordinator:
            assert self.checkpoint_id is not None
            values = flatten_state_dict(cresset.load(self.checkpoint_id, map_location="cpu", weights_only=True))[0]
        for item in plan.items:
            if item.type == LoadItemType.BYTE_IO:
                raise RuntimeError(f"Non-tensor value identified at {item.storage_index.fqn}. At this time {type(self).__name__} only supports loading Tensors.")
        several = dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
        for item in plan.items:
            self._fill(item, values, planner, several)
        future = Future()
        future.set_result(None)
        return future

    def _fill(self, item, values, planner, several):
        name = item.storage_index.fqn
        size = planner.metadata.state_dict_metadata[name].size
        value = values[name].detach() if self.is_coordinator else cresset.empty(size, dtype=planner.metadata.state_dict_metadata[name].properties.dtype)
        if several:
            value = value.to(planner.metadata.state_dict_metadata[name].properties.dtype).contiguous()
            dist.broadcast(value, src=self.coordinator_rank)
        for dim, (begin, length) in enumerate(zip(item.storage_offsets, item.lengths)):
            value = value.narrow(dim, begin, length)
        target = planner.resolve_tensor(item).detach()
        assert target.size() == value.size(), f"req {item.storage_index} mismatch sizes, {target.size()} vs {value.size()}"
        target.copy_(value)
        planner.commit_tensor(item, target)

    def set_up_storage_reader(self, metadata, is_coordinator, *args, **kwargs):
        self.is_coordinator = is_coordinator
        if self.is_coordinator and dist.is_available() and dist.is_initialized():
            assert dist.get_rank() == self.coordinator_rank
        assert self.checkpoint_id is not None

    def prepare_local_plan(self, plan):
        return plan

    def prepare_global_plan(self, global_plan):
        return global_plan

    def reset(self, checkpoint_id=None):
        if checkpoint_id is not None:
            self.checkpoint_id = checkpoint_id

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        return os.path.isfile(checkpoint_id)


class DynamicMetaLoadPlanner(DefaultLoadPlanner):
    """Makes the Metadata of the state_dict to fill: for readers of files that have none. Each tensor is one chunk."""

    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False):
        super().set_up_planner(state_dict, metadata, is_coordinator)
        found = {}
        for name, value in self.state_dict.items():
            if not _is_tensor(value):
                raise RuntimeError(f"Non-tensor value identified at {name}. At this time {type(self).__name__} only supports loading Tensors.")
            size = _size_of(value)
            whole = dataclasses.replace(_create_chunk_list(cresset.empty(0))[0], offsets=cresset.Size([0] * len(size)), sizes=size)
            found[name] = TensorStorageMetadata(TensorProperties(dtype=value.dtype), size, [whole])
        self.metadata = Metadata(state_dict_metadata=found)


def dcp_to_torch_save(dcp_checkpoint_dir, torch_save_path):
    """Write all of a checkpoint into one file, as `save` does; in one process that holds it all."""
    state_dict = {}
    _load(state_dict, FileSystemReader(dcp_checkpoint_dir), None, 0, False, _EmptyStateDictLoadPlanner())
    cresset.save(state_dict, torch_save_path)


def torch_save_to_dcp(torch_save_path, dcp_checkpoint_dir):
    """Make a checkpoint of a file of `save`; in one process that holds it all. Only what load(weights_only=True) reads."""
    state_dict = cresset.load(torch_save_path, map_location="cpu", weights_only=True)
    _save(state_dict, FileSystemWriter(dcp_checkpoint_dir), None, 0, False, None)


def _main():
    """`python -m cresset.distributed.checkpoint.format_utils torch_to_dcp SOURCE TARGET`, or dcp_to_torch."""
    import argparse

    parser = argparse.ArgumentParser(description="Converts between checkpoints and files of save.")
    parser.add_argument("mode", choices=["torch_to_dcp", "dcp_to_torch"])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    options = parser.parse_args()
    if not options.source.exists():
        parser.error(f"{options.source} does not exist.")
    (torch_save_to_dcp if options.mode == "torch_to_dcp" else dcp_to_torch_save)(options.source, options.target)


if __name__ == "__main__":
    _main()
