"""Where checkpoints are stored: the interfaces of writers and readers."""

import abc
from dataclasses import dataclass
from typing import Any

from .metadata import MetadataIndex

__all__ = ["StorageReader", "StorageWriter", "WriteResult"]


@dataclass(frozen=True)
class WriteResult:
    """What was written: an item, its bytes, and what the storage needs to find it."""

    index: MetadataIndex
    size_in_bytes: int
    storage_data: Any


class StorageWriter(abc.ABC):
    """Writes the plans of a save. Called in this order; prepare_global_plan and finish by the coordinator only."""

    @abc.abstractmethod
    def reset(self, checkpoint_id=None):
        """A save to `checkpoint_id` begins; None keeps the one there was."""

    @abc.abstractmethod
    def set_up_storage_writer(self, is_coordinator, *args, **kwargs):
        """Get ready."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan):
        """The local plan, with what the storage adds."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans):
        """All ranks' plans, with what the storage adds."""

    @abc.abstractmethod
    def write_data(self, plan, planner):
        """Write; a Future of a list of WriteResult."""

    @abc.abstractmethod
    def finish(self, metadata, results):
        """Every rank has written, with these results by rank: the checkpoint becomes one that can be loaded."""

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        """Is this a place that the writer can write to?"""

    def storage_meta(self):
        """The StorageMeta of this save, or None."""
        return None


class StorageReader(abc.ABC):
    """Reads the plans of a load. Called in this order; prepare_global_plan by the coordinator only."""

    @abc.abstractmethod
    def reset(self, checkpoint_id=None):
        """A load of `checkpoint_id` begins; None keeps the one there was."""

    @abc.abstractmethod
    def read_metadata(self, *args, **kwargs):
        """The Metadata of the checkpoint."""

    @abc.abstractmethod
    def set_up_storage_reader(self, metadata, is_coordinator, *args, **kwargs):
        """Get ready."""

    @abc.abstractmethod
    def prepare_local_plan(self, plan):
        """The local plan, with what the storage adds."""

    @abc.abstractmethod
    def prepare_global_plan(self, plans):
        """All ranks' plans, with what the storage adds."""

    @abc.abstractmethod
    def read_data(self, plan, planner):
        """Read into what the planner has; a Future of None."""

    @classmethod
    @abc.abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        """Is this a place that the reader can read from?"""
