"""What a checkpoint says of itself: tensors with their chunks, where each chunk is stored, and who saved it."""

import os
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Dict, List, Optional, Sequence, Union

import cresset

from .stateful import StatefulT

__all__ = ["BytesStorageMetadata", "ChunkStorageMetadata", "Metadata", "MetadataIndex", "StorageMeta", "TensorProperties", "TensorStorageMetadata"]

STATE_DICT_TYPE = Dict[str, Union[StatefulT, Any]]


@dataclass
class ChunkStorageMetadata:
    """A box of a tensor: where it begins and how large it is, in elements of each dimension."""

    offsets: "cresset.Size"
    sizes: "cresset.Size"


class _MEM_FORMAT_ENCODING(Enum):
    """Memory formats as numbers, which pickles can hold."""

    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2

    def __reduce_ex__(self, protocol):
        """By value, whatever the version of Python."""
        return (type(self), (self.value,))


_FORMATS = {
    cresset.contiguous_format: _MEM_FORMAT_ENCODING.TORCH_CONTIGUOUS_FORMAT,
    cresset.channels_last: _MEM_FORMAT_ENCODING.TORCH_CHANNELS_LAST,
    cresset.preserve_format: _MEM_FORMAT_ENCODING.TORCH_PRESERVE_FORMAT,
}


@dataclass
class TensorProperties:
    """What is needed to make a tensor, beside its size."""

    dtype: "cresset.dtype" = field(default_factory=cresset.get_default_dtype)
    layout: "cresset.layout" = field(default=cresset.strided)
    requires_grad: bool = False
    memory_format: "cresset.memory_format" = field(default=cresset.contiguous_format)
    pin_memory: bool = False

    def __getstate__(self):
        if self.memory_format not in _FORMATS:
            raise RuntimeError(f"TensorProperties: contiguous_format, channels_last or preserve_format was required; {self.memory_format} was given.")
        return (self.dtype, self.layout, self.requires_grad, _FORMATS[self.memory_format], self.pin_memory)

    def __setstate__(self, state):
        self.dtype, self.layout, self.requires_grad, code, self.pin_memory = state
        self.memory_format = next(key for key, value in _FORMATS.items() if value == code)

    @staticmethod
    def create_from_tensor(tensor):
        """Those of a tensor; its memory format is contiguous_format."""
        return TensorProperties(
            dtype=tensor.dtype, layout=tensor.layout, requires_grad=tensor.requires_grad,
            memory_format=cresset.contiguous_format, pin_memory=tensor.is_pinned(),
        )  # fmt: skip


@dataclass
class TensorStorageMetadata:
    """A tensor of the checkpoint; `chunks` cover it without overlaps."""

    properties: TensorProperties
    size: "cresset.Size"
    chunks: List[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """A value of the checkpoint that is no tensor."""


STORAGE_TYPES = Union[TensorStorageMetadata, BytesStorageMetadata]


@dataclass
class StorageMeta:
    """Which checkpoint this is, and which save and load it belongs to."""

    checkpoint_id: Union[str, os.PathLike, None] = None
    save_id: Optional[str] = None
    load_id: Optional[str] = None
    modules: List[str] = field(default_factory=list)


@dataclass
class Metadata:
    """A whole checkpoint: its values by name, and what planner and storage need to find them again."""

    state_dict_metadata: Dict[str, STORAGE_TYPES]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: Optional[StorageMeta] = None
    version: Optional[str] = None


@dataclass(frozen=True)
class MetadataIndex:
    """A value of a checkpoint, or the chunk of a tensor that begins at `offset`; `index`, its place in the list of chunks, is a hint and not compared."""

    fqn: str
    offset: Optional["cresset.Size"] = None
    index: Optional[int] = field(hash=False, compare=False, default=None)

    def __init__(self, fqn: str, offset: Optional[Sequence[int]] = None, index: Optional[int] = None):
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "offset", None if offset is None else cresset.Size(offset))
