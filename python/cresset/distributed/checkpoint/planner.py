"""Plans: what each rank writes or reads; and planners, which make them and have the data."""

import abc
import operator
from dataclasses import dataclass
from enum import Enum, auto
from functools import reduce
from typing import Any, List, Optional

from .metadata import ChunkStorageMetadata, MetadataIndex, TensorProperties

__all__ = [
    "BytesIOWriteData", "LoadItemType", "LoadPlan", "LoadPlanner", "ReadItem", "SavePlan", "SavePlanner", "TensorWriteData", "WriteItem", "WriteItemType",
]


class WriteItemType(Enum):
    """A whole tensor, a part of one, or bytes."""

    TENSOR = auto()
    SHARD = auto()
    BYTE_IO = auto()


class LoadItemType(Enum):
    """A tensor or bytes."""

    TENSOR = auto()
    BYTE_IO = auto()


@dataclass(frozen=True)
class BytesIOWriteData:
    """How many bytes there are."""

    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """The chunk to write, and the tensor that it is part of."""

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: "cresset.Size"  # noqa: F821


@dataclass(frozen=True)
class WriteItem:
    """One thing to write."""

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: Optional[BytesIOWriteData] = None
    tensor_data: Optional[TensorWriteData] = None

    def tensor_storage_size(self):
        """Bytes of the whole tensor; None for what is no tensor."""
        if self.tensor_data is None:
            return None
        return reduce(operator.mul, self.tensor_data.size, 1) * self.tensor_data.properties.dtype.itemsize


@dataclass(frozen=True)
class ReadItem:
    """One thing to read: `lengths` elements at `storage_offsets` of a stored chunk go to `dest_offsets` of a chunk of the state_dict."""

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: "cresset.Size"  # noqa: F821
    storage_index: MetadataIndex
    storage_offsets: "cresset.Size"  # noqa: F821
    lengths: "cresset.Size"  # noqa: F821


@dataclass(frozen=True)
class SavePlan:
    """What one rank writes."""

    items: List[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclass
class LoadPlan:
    """What one rank reads."""

    items: List[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


class SavePlanner(abc.ABC):
    """Makes plans for save, and has the data. Called in this order, on all ranks but for create_global_plan, which the coordinator calls."""

    @abc.abstractmethod
    def set_up_planner(self, state_dict, storage_meta=None, is_coordinator=False):
        """Begin a save of `state_dict`."""

    @abc.abstractmethod
    def create_local_plan(self):
        """The SavePlan of this rank."""

    @abc.abstractmethod
    def create_global_plan(self, all_plans):
        """(plans, Metadata) of all ranks' plans."""

    @abc.abstractmethod
    def finish_plan(self, new_plan):
        """This rank's part of the global plan, to be carried out."""

    @abc.abstractmethod
    def resolve_data(self, write_item):
        """The tensor, or the io.BytesIO, of an item; called from several threads."""



class LoadPlanner:
    """Makes plans for load, and has the tensors to fill. Called in this order, as those of SavePlanner."""

    @abc.abstractmethod
    def set_up_planner(self, state_dict, metadata=None, is_coordinator=False):
        """Begin a load into `state_dict`."""

    @abc.abstractmethod
    def create_local_plan(self):
        """The LoadPlan of this rank."""

    @abc.abstractmethod
    def create_global_plan(self, global_plan):
        """The plans of all ranks."""

    @abc.abstractmethod
    def finish_plan(self, central_plan):
        """This rank's part of the global plan, to be carried out."""

    @abc.abstractmethod
    def load_bytes(self, read_item, value):
        """Take the io.BytesIO of an item."""

    def resolve_bytes(self, read_item):
        """The io.BytesIO to read an item into."""
        raise NotImplementedError("LoadPlanner.resolve_bytes is not implemented")

    @abc.abstractmethod
    def resolve_tensor(self, read_item):
        """The tensor to read an item into; it may be another one than that of the state_dict."""

    @abc.abstractmethod
    def commit_tensor(self, read_item, tensor):
        """The tensor of resolve_tensor has its values."""
