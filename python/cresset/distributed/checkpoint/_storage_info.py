"""Where an item of a checkpoint is stored; files name the class as part of `filesystem`."""

from dataclasses import dataclass
from typing import Optional, Sequence

__all__ = []


@dataclass
class _StorageInfo:
    """Where an item is: bytes [offset, offset + length) of a file of the folder."""

    relative_path: str
    offset: int
    length: int
    transform_descriptors: Optional[Sequence[str]] = None

    def __getstate__(self):
        return {k: v for k, v in self.__dict__.items() if k != "transform_descriptors" or v is not None}


_StorageInfo.__module__ = f"{__package__}.filesystem"
