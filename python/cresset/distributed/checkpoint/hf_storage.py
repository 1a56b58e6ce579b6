"""Folders of safetensors files, as model hubs have them, as checkpoints: each rank reads its parts from mapped files, or writes them."""

import dataclasses
import json
import os

import cresset

from .filesystem import FileSystemReader, FileSystemWriter, _done, _for_file
from .metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from .planner import LoadItemType
from .storage import WriteResult

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]

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
        return Metadata(
            found, storage_data=places, storage_meta=StorageMeta(checkpoint_id=str(self.path), load_id=self.load_id)
        )

    @staticmethod
    def _add(found, index, value):
        """A chunk of a tensor, whose size is the end of its last chunk."""
        if len(index.offset) != value.dim():
            raise ValueError(
                f"{index.fqn}: offsets of {value.dim()} dimensions were required; {tuple(index.offset)} was given."
            )
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


class HuggingFaceStorageWriter(FileSystemWriter):
    """Writes tensors into safetensors files: `fqn_to_index_mapping` says which of them has which number of file (1 to n; all 1 without it).

    Whole tensors go into model-0000i-of-0000n.safetensors, which model.safetensors.index.json lists; each file is written by one rank, so several ranks need
    DefaultSavePlanner(dedup_save_to_lowest_rank=True). With `save_distributed` each rank writes the parts it has into files of its own, and notes where
    they begin. Values that are no tensors are a ValueError. Each file is replaced as a whole; a save that is killed may leave files of two.
    NotImplementedError for `enable_consolidation`.
    """

    def __init__(
        self,
        path,
        fqn_to_index_mapping=None,
        thread_count=1,
        save_distributed=False,
        enable_consolidation=False,
        thread_count_consolidation=1,
    ):
        if enable_consolidation:
            raise NotImplementedError(
                "HuggingFaceStorageWriter: enable_consolidation is not part of Cresset. Load the parts and save whole tensors."
            )
        super().__init__(path, thread_count=thread_count)
        self.fqn_to_index_mapping, self.save_distributed = fqn_to_index_mapping, save_distributed

    @property
    def metadata_path(self):
        """The list of files."""
        return self.fs.concat_path(self.path, "model.safetensors.index.json")

    def _file_of(self, name, rank):
        mapping = self.fqn_to_index_mapping or {}
        if mapping and name not in mapping:
            raise ValueError(f"{name}: a number of a file was required in fqn_to_index_mapping.")
        file = f"model-{mapping.get(name, 1):05d}-of-{max(mapping.values(), default=1):05d}{_SUFFIX}"
        return f"shard-{rank + 1:05d}-{file}" if self.save_distributed else file

    def prepare_global_plan(self, plans):
        writer_of = {}
        for rank, plan in enumerate(plans):
            for item in plan.items:
                if item.tensor_data is None:
                    raise ValueError(f"{item.index.fqn}: a tensor was required; safetensors files hold nothing else.")
                if not self.save_distributed and tuple(item.tensor_data.chunk.sizes) != tuple(item.tensor_data.size):
                    raise ValueError(
                        f"{item.index.fqn}: whole tensors were required; it is in parts. Give save_distributed=True."
                    )
                if writer_of.setdefault(self._file_of(item.index.fqn, rank), rank) != rank:
                    raise ValueError(
                        "HuggingFaceStorageWriter: one rank for each file was required. Give save_distributed=True or DefaultSavePlanner(dedup_save_to_lowest_rank=True)."
                    )
        return [dataclasses.replace(plan, storage_data=rank) for rank, plan in enumerate(plans)]

    def write_data(self, plan, planner):
        return _done(lambda: self._write_files(plan, planner))

    def _write_files(self, plan, planner):
        files = {}
        for item in plan.items:
            files.setdefault(self._file_of(item.index.fqn, plan.storage_data), []).append(item)
        results = []
        for name, items in files.items():
            tensors = [_for_file(planner.resolve_data(item)).contiguous() for item in items]
            with self._replaced(name) as stream:
                _write_safetensors(stream, items, tensors)
            results += [WriteResult(item.index, t.nbytes, name) for item, t in zip(items, tensors)]
        self._sync_folder()
        return results

    def finish(self, metadata, results):
        if self.save_distributed:
            return
        written = [result for some in results for result in some]
        index = {
            "metadata": {"total_size": sum(r.size_in_bytes for r in written)},
            "weight_map": {r.index.fqn: r.storage_data for r in written},
        }
        with self._replaced("model.safetensors.index.json") as stream:
            stream.write(json.dumps(index, indent=2).encode())
        self._sync_folder()


def _write_safetensors(stream, items, tensors):
    """A file of the format: the header's length, the header, the values in its order."""
    offsets = {item.index.fqn: {"saved_offsets": list(item.index.offset)} for item in items}
    header, end = {"__metadata__": {"DCP_SHARDING_INFO": json.dumps(offsets), "DCP_VERSION": "1.0", "format": "pt"}}, 0
    if len(offsets) != len(items):
        raise ValueError(
            "HuggingFaceStorageWriter: one part of each tensor on a rank was required; a rank has several."
        )
    for item, tensor in zip(items, tensors):
        code = cresset._C._safetensors_code(tensor.dtype)
        if not code:
            raise ValueError(
                f"{item.index.fqn}: a dtype that safetensors files have was required; {tensor.dtype} was given."
            )
        header[item.index.fqn] = {
            "dtype": code,
            "shape": list(tensor.shape),
            "data_offsets": [end, end + tensor.nbytes],
        }
        end += tensor.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # values begin at a multiple of 8 bytes
    stream.write(len(text).to_bytes(8, "little") + text)
    for tensor in tensors:
        if tensor.nbytes:
            stream.write(memoryview(tensor.reshape(-1).view(cresset.uint8)))
