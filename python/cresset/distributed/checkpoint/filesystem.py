"""Checkpoints as folders of files: `.metadata`, and files of tensors and bytes, some for each rank.

A checkpoint becomes a new one when `.metadata` is replaced, which happens last: files are written under a name that ends in `.tmp`, brought to
the disk and renamed. Files of the checkpoint that was there keep their names until then, so a save that is killed leaves it as it was.
"""

import io
import os
import re
import uuid
import warnings
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

import cresset
from cresset.futures import Future

from ._metadata_file import read_metadata, write_metadata
from ._storage_info import _StorageInfo
from .metadata import StorageMeta
from .planner import LoadItemType, WriteItemType
from .staging import BlockingAsyncStager
from .storage import StorageReader, StorageWriter, WriteResult
from .utils import _create_file_view

__all__ = ["FileSystem", "FileSystemBase", "FileSystemReader", "FileSystemWriter", "SerializationFormat"]

_METADATA = ".metadata"
DEFAULT_SUFFIX = ".distcp"
_OURS = re.compile(r"__\d+_([0-9a-f]{8}_)?\d+\.distcp(\.tmp)?|\.metadata\.tmp")


@dataclass
class _StoragePrefix:
    """How names of this rank's files begin."""

    prefix: str


class SerializationFormat(Enum):
    """How items are written."""

    TORCH_SAVE = "torch_save"
    SAFETENSORS = "safetensors"


class FileSystemBase(ABC):
    """A file system that checkpoints can be stored in."""

    @contextmanager
    @abstractmethod
    def create_stream(self, path, mode):
        """An open file."""

    @abstractmethod
    def concat_path(self, path, suffix):
        """A name in a folder."""

    @abstractmethod
    def rename(self, path, new_path):
        """Give a file another name; a file that has it is replaced."""

    @abstractmethod
    def init_path(self, path):
        """A path as the other methods take it."""

    @abstractmethod
    def mkdir(self, path):
        """Make a folder, and those above it."""

    @classmethod
    @abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        """Is this a path of this file system?"""

    @abstractmethod
    def exists(self, path):
        """Is there such a file?"""

    @abstractmethod
    def rm_file(self, path):
        """Remove a file."""


class FileSystem(FileSystemBase):
    """The machine's file system."""

    @contextmanager
    def create_stream(self, path, mode):
        with open(path, mode) as stream:
            yield stream

    def concat_path(self, path, suffix):
        return Path(path) / suffix

    def init_path(self, path):
        return path if isinstance(path, Path) else Path(path)

    def rename(self, path, new_path):
        os.replace(path, new_path)

    def mkdir(self, path):
        Path(path).mkdir(parents=True, exist_ok=True)

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        if isinstance(checkpoint_id, Path):
            return True
        if "://" in str(checkpoint_id):
            return False
        return any(p.exists() and os.access(p, os.W_OK) for p in Path(checkpoint_id).parents)

    def exists(self, path):
        return Path(path).exists()

    def rm_file(self, path):
        Path(path).unlink()

    def ls(self, path):
        """Paths of what a folder holds."""
        return [str(p) for p in Path(path).iterdir()]

    def sync_folder(self, path):
        """Bring a folder's names to the disk."""
        folder = os.open(path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _generate_uuid():
    return str(uuid.uuid4())


def _sync(stream):
    stream.flush()
    try:
        os.fsync(stream.fileno())
    except (AttributeError, OSError):
        if hasattr(os, "sync"):
            os.sync()


def _item_size(item):
    size = item.tensor_data.properties.dtype.itemsize
    for n in item.tensor_data.chunk.sizes:
        size *= n
    return size


def _split_by_size_and_type(bins, items):
    """Items in `bins` lists with about as many bytes each."""
    if bins == 1:
        return [items]
    parts, sizes = [[] for _ in range(bins)], [0] * bins
    tensors = [i for i in items if i.type != WriteItemType.BYTE_IO]
    for n, item in enumerate(i for i in items if i.type == WriteItemType.BYTE_IO):
        parts[n % bins].append(item)
    for item in sorted(tensors, key=_item_size, reverse=True):
        least = min(range(bins), key=sizes.__getitem__)
        parts[least].append(item)
        sizes[least] += _item_size(item)
    return parts


def _done(function):
    """A Future of what a function gives, or of its error."""
    future = Future()
    try:
        future.set_result(function())
    except Exception as error:
        future.set_exception(error)
    return future


class _Appended:
    """A file as `save` sees it: the bytes behind those that are there."""

    def __init__(self, stream):
        self.stream, self.length = stream, 0

    def write(self, data):
        self.length += memoryview(data).nbytes
        return self.stream.write(data)

    def flush(self):
        pass


def _for_file(tensor):
    """The tensor's own values on the CPU: a view does not take its whole storage along."""
    tensor = tensor.detach()
    if tensor.device.type != "cpu":
        return tensor.cpu()
    return tensor if tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size() else tensor.clone()


class _InFolder:
    """What reads or writes the folder `path` of a FileSystem."""

    def __init__(self, path):
        super().__init__()
        self.fs = FileSystem()
        self.path = self.fs.init_path(path)

    def _move_to(self, checkpoint_id):
        if checkpoint_id:
            self.path = self.fs.init_path(checkpoint_id)

    @property
    def checkpoint_id(self):
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        return FileSystem.validate_checkpoint_id(checkpoint_id)


class _FileSystemWriter(_InFolder, StorageWriter):
    """Writes a checkpoint into a folder of a FileSystemBase; see FileSystemWriter."""

    def __init__(self, path, single_file_per_rank=True, sync_files=True, thread_count=1, per_thread_copy_ahead=10_000_000, overwrite=True,
                 _extensions=None, serialization_format=SerializationFormat.TORCH_SAVE, *args, **kwargs):  # fmt: skip
        if _extensions:
            raise NotImplementedError("FileSystemWriter: files whose bytes pass through extensions are not part of Cresset.")
        if serialization_format != SerializationFormat.TORCH_SAVE:
            raise NotImplementedError(f"FileSystemWriter: SerializationFormat.TORCH_SAVE was required; {serialization_format} was given.")
        if thread_count < 1:
            raise ValueError(f"FileSystemWriter: a thread_count of at least 1 was required; {thread_count} was given.")
        super().__init__(path)
        self.single_file_per_rank, self.sync_files, self.thread_count = single_file_per_rank, sync_files, thread_count
        self.per_thread_copy_ahead, self.overwrite = per_thread_copy_ahead, overwrite
        self.save_id = _generate_uuid()

    def reset(self, checkpoint_id=None):
        self._move_to(checkpoint_id)
        self.save_id = _generate_uuid()

    def storage_meta(self):
        return StorageMeta(checkpoint_id=self.checkpoint_id, save_id=self.save_id)

    @property
    def metadata_path(self):
        """The file that makes the folder a checkpoint."""
        return self.fs.concat_path(self.path, _METADATA)

    def set_up_storage_writer(self, is_coordinator, *args, **kwargs):
        self.is_coordinator = is_coordinator

    def prepare_local_plan(self, plan):
        self.fs.mkdir(self.path)
        if self.fs.exists(self.metadata_path):
            if not self.overwrite:
                raise RuntimeError(f"Checkpoint already exists and self.overwrite={self.overwrite}.")
            if getattr(self, "is_coordinator", True):
                warnings.warn(f"Detected an existing checkpoint in {self.metadata_path}, overwriting since self.overwrite={self.overwrite}.", stacklevel=2)
        return plan

    def prepare_global_plan(self, plans):
        """Names of files that no file of the checkpoint in the folder has."""
        again = f"{self.save_id[:8]}_" if self.fs.exists(self.metadata_path) else ""
        return [replace(plan, storage_data=_StoragePrefix(f"__{rank}_{again}")) for rank, plan in enumerate(plans)]

    def write_data(self, plan, planner):
        if self.single_file_per_rank:
            parts = [part for part in _split_by_size_and_type(self.thread_count, plan.items) if part]
        else:
            parts = [[item] for item in plan.items]
        prefix = plan.storage_data.prefix
        named = [(f"{prefix}{n}{DEFAULT_SUFFIX}", part) for n, part in enumerate(parts)]
        return _done(lambda: self._write_all(named, planner))

    def _write_all(self, named, planner):
        if self.thread_count == 1 or len(named) < 2:
            results = [self._write_file(name, items, planner) for name, items in named]
        else:
            with ThreadPoolExecutor(self.thread_count) as pool:
                results = list(pool.map(lambda job: self._write_file(*job, planner), named))
        self._sync_folder()
        return [result for some in results for result in some]

    def _sync_folder(self):
        if self.sync_files and hasattr(self.fs, "sync_folder"):
            self.fs.sync_folder(self.path)

    def _write_file(self, name, items, planner):
        items = sorted(items, key=lambda item: item.type != WriteItemType.BYTE_IO)
        with self._replaced(name) as stream:
            results, place = [], 0
            for item in items:
                length = self._write_item(stream, item, planner.resolve_data(item))
                results.append(WriteResult(item.index, length, _StorageInfo(name, place, length)))
                place += length
        return results

    @staticmethod
    def _write_item(stream, item, data):
        """Bytes written."""
        if item.type == WriteItemType.BYTE_IO:
            return stream.write(data.getbuffer())
        if not isinstance(data, cresset.Tensor):
            raise TypeError(f"{item.index.fqn}: a tensor was required from resolve_data; a {type(data).__name__} was given.")
        out = _Appended(stream)
        cresset.save(_for_file(data), out)
        return out.length

    @contextmanager
    def _replaced(self, name):
        """A file that has its name when the block ends, and has reached the disk."""
        path, new = self.fs.concat_path(self.path, name), self.fs.concat_path(self.path, name + ".tmp")
        with self.fs.create_stream(new, "wb") as stream:
            yield stream
            if self.sync_files:
                _sync(stream)
        self.fs.rename(new, path)

    def finish(self, metadata, results):
        places = {result.index: result.storage_data for some in results for result in some}
        metadata = replace(metadata, storage_data=places, storage_meta=self.storage_meta())
        with self._replaced(_METADATA) as stream:
            write_metadata(metadata, stream)
        self._sync_folder()
        self._remove_unused({place.relative_path for place in places.values()})

    def _remove_unused(self, used):
        """Files of saves that were replaced or killed."""
        if not hasattr(self.fs, "ls"):
            return
        for path in self.fs.ls(self.path):
            name = os.path.basename(path)
            if _OURS.fullmatch(name) and name not in used:
                try:
                    self.fs.rm_file(path)
                except OSError:
                    pass


class FileSystemWriter(_FileSystemWriter, BlockingAsyncStager):
    """Writes a checkpoint into the folder `path`, which is made.

    A rank's items go into `thread_count` files, each written by a thread, or into a file each where `single_file_per_rank` is false.
    `sync_files` brings files to the disk before the checkpoint counts. With `overwrite` a checkpoint in the folder is replaced when the new one is
    complete; RuntimeError without. `cache_staged_state_dict` keeps the copy that async_save makes for the next one.
    """

    def __init__(self, path, single_file_per_rank=True, sync_files=True, thread_count=1, per_thread_copy_ahead=10_000_000,
                 cache_staged_state_dict=False, overwrite=True, _extensions=None, serialization_format=SerializationFormat.TORCH_SAVE):  # fmt: skip
        _FileSystemWriter.__init__(
            self, path, single_file_per_rank, sync_files, thread_count, per_thread_copy_ahead, overwrite, _extensions, serialization_format
        )
        BlockingAsyncStager.__init__(self, cache_staged_state_dict=cache_staged_state_dict)

    def stage(self, state_dict):
        """A copy of the values on the CPU."""
        self.per_thread_copy_ahead = 0
        return super().stage(state_dict)


class FileSystemReader(_InFolder, StorageReader):
    """Reads the checkpoint in the folder `path`. No code of it runs: what is no tensor is read as load(weights_only=True) does."""

    def __init__(self, path, _extension_registry=None):
        super().__init__(path)
        self.storage_data, self.load_id = {}, _generate_uuid()

    def reset(self, checkpoint_id=None):
        self.storage_data = {}
        self._move_to(checkpoint_id)
        self.load_id = _generate_uuid()

    def read_metadata(self, *args, **kwargs):
        """FileNotFoundError for a folder without a complete checkpoint, pickle.UnpicklingError for a file that is no metadata."""
        with self.fs.create_stream(self.fs.concat_path(self.path, _METADATA), "rb") as file:
            metadata = read_metadata(file.read())
        if metadata.storage_meta is None:
            metadata.storage_meta = StorageMeta()
        metadata.storage_meta.load_id = self.load_id
        return metadata

    def set_up_storage_reader(self, metadata, is_coordinator, *args, **kwargs):
        assert metadata.storage_data is not None, "the metadata does not say where things are stored"
        self.storage_data = metadata.storage_data

    def prepare_local_plan(self, plan):
        return plan

    def prepare_global_plan(self, plans):
        return plans

    def read_data(self, plan, planner):
        return _done(lambda: self._read_all(plan, planner))

    def _place_of(self, index):
        place = self.storage_data[index]
        path = place.relative_path
        if os.path.isabs(path) or ".." in Path(path).parts:
            raise ValueError(f"{index.fqn}: a file of the checkpoint's folder was required; {path!r} was given.")
        if place.transform_descriptors:
            raise NotImplementedError(f"{index.fqn}: its bytes have passed through {list(place.transform_descriptors)}, which is not part of Cresset.")
        return place

    def _read_all(self, plan, planner):
        files = {}
        for item in plan.items:
            place = self._place_of(item.storage_index)
            items = files.setdefault(place.relative_path, {}).setdefault((place.offset, place.length), [])
            items.append(item)
        for name, stored in files.items():
            with self.fs.create_stream(self.fs.concat_path(self.path, name), "rb") as stream:
                for (offset, length), items in sorted(stored.items()):
                    _read_items(_create_file_view(stream, offset, length), items, planner)


def _read_items(view, items, planner):
    """Items that are stored as one."""
    if items[0].type == LoadItemType.BYTE_IO:
        data = view.read()
        for item in items:
            planner.load_bytes(item, io.BytesIO(data))
        return
    stored = cresset.load(view, map_location="cpu", weights_only=True)
    for item in items:
        if not isinstance(stored, cresset.Tensor) or any(o + n > s for o, n, s in zip(item.storage_offsets, item.lengths, stored.shape)):
            raise ValueError(f"{item.storage_index.fqn}: the file has another value than .metadata says.")
        part = stored
        for dim, (begin, length) in enumerate(zip(item.storage_offsets, item.lengths)):
            part = part.narrow(dim, begin, length)
        target = planner.resolve_tensor(item).detach()
        if target.shape != part.shape:
            raise AssertionError(f"req {item.storage_index} mismatch sizes {target.shape} vs {part.shape}")
        target.copy_(part)
        planner.commit_tensor(item, target)
