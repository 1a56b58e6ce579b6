"""Folders of safetensors files, as model hubs have them, read as checkpoints: each rank reads its parts from mapped files."""

import json
import os

import cresset

from .filesystem import FileSystemReader, _done
from .metadata import ChunkStorageMetadata, Metadata, MetadataIndex, StorageMeta, TensorProperties, TensorStorageMetadata
from .planner import LoadItemType

__all__ = ["HuggingFaceStorageReader"]

_SUFFIX = ".safetensors"


class HuggingFaceStorageReader(FileSystemReader):
    """Reads the tensors of all *.safetensors files of a folder, and parts of tensors in the files of PyTorch's HuggingFaceStorageWriter.

    ValueError for a tensor, or a part of one, that two files have. `thread_count` is without effect: files are mapped, and a rank touches only
    what it needs.
    """

    def __init__(self, path, thread_count=1):
        super().__init__(path)
        self.thread_count = thread_count

    def _open(self, name):
        values = cresset.load(os.path.join(self.path, name), mmap=True)
        if not isinstance(values, dict) or not all(isinstance(v, cresset.Tensor) for v in values.values()):
            raise ValueError(f"{name}: a file of tensors with names was required.")
        return values

    def read_metadata(self, *args, **kwargs):
        """FileNotFoundError for a folder without such files."""
        names = sorted(n for n in os.listdir(self.path) if n.endswith(_SUFFIX))
        if not names:
            raise FileNotFoundError(f"{self.path}: files that end in {_SUFFIX} were required; there are none.")
        found, places = {}, {}
        for name in names:
            values = self._open(name)
            offsets = _offsets_of(os.path.join(self.path, name))
            for key, value in values.items():
                index = MetadataIndex(key, offsets.get(key, [0] * value.dim()))
                if index in places:
                    raise ValueError(f"{key}: one file was required to have it; {places[index]} and {name} do.")
                places[index] = name
                self._add(found, index, value)
        return Metadata(found, storage_data=places, storage_meta=StorageMeta(checkpoint_id=str(self.path), load_id=self.load_id))

    @staticmethod
    def _add(found, index, value):
        """A chunk of a tensor, whose size is the end of its last chunk."""
        if len(index.offset) != value.dim():
            raise ValueError(f"{index.fqn}: offsets of {value.dim()} dimensions were required; {tuple(index.offset)} was given.")
        md = found.setdefault(index.fqn, TensorStorageMetadata(TensorProperties(dtype=value.dtype), value.size(), []))
        ends = [o + n for o, n in zip(index.offset, value.shape)]
        if len(md.size) != len(ends):
            raise ValueError(f"{index.fqn}: parts of one number of dimensions were required.")
        md.size = cresset.Size(map(max, md.size, ends))
        md.chunks.append(ChunkStorageMetadata(index.offset, value.size()))

    def read_data(self, plan, planner):
        return _done(lambda: self._fill(plan, planner))

    def _fill(self, plan, planner):
        files = {}
        for item in plan.items:
            if item.type == LoadItemType.BYTE_IO:
                raise ValueError(f"{item.storage_index.fqn}: a tensor was required; these files hold nothing else.")
            files.setdefault(self.storage_data[item.storage_index], []).append(item)
        for name, items in files.items():
            values = self._open(name)
            for item in items:
                part = values[item.storage_index.fqn]
                for dim, (begin, length) in enumerate(zip(item.storage_offsets, item.lengths)):
                    part = part.narrow(dim, begin, length)
                target = planner.resolve_tensor(item).detach()
                target.copy_(part)
                planner.commit_tensor(item, target)


def _offsets_of(path):
    """Name -> where the part of a tensor that a file has begins, as PyTorch's writer notes it in the header."""
    with open(path, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))  # load() has checked it
    told = json.loads((header.get("__metadata__") or {}).get("DCP_SHARDING_INFO", "{}"))
    offsets = {name: facts["saved_offsets"] for name, facts in told.items()}
    if not all(isinstance(o, list) and all(type(n) is int and n >= 0 for n in o) for o in offsets.values()):
        raise ValueError(f"{os.path.basename(path)}: saved_offsets are no lists of whole numbers.")
    return offsets
