"""Names for annotations: what save and load take."""

import os
from typing import IO, Any, Callable, Dict, Optional, Union

import cresset

__all__ = ["FILE_LIKE", "MAP_LOCATION", "STORAGE", "FileLike", "StorageType"]

FileLike = Union[str, os.PathLike, IO[bytes]]
FILE_LIKE = FileLike
STORAGE = Any
MAP_LOCATION = Optional[Union[Callable[[Any, str], Any], cresset.device, str, Dict[str, str]]]


class StorageType:
    """What has a pickle_storage_type(): classes of storages, for annotations."""

    def pickle_storage_type(self):
        """Name of the legacy class."""
        raise NotImplementedError("StorageType.pickle_storage_type: a class of storages has it.")
