"""The file `.metadata`: a pickle with PyTorch's names. Nothing of it runs: a closed list of names gives records, which are checked and become Metadata."""

import functools
import io
import pickle
from pathlib import PurePosixPath

import cresset

from . import metadata as _md
from ._storage_info import _StorageInfo
from .metadata import BytesStorageMetadata, ChunkStorageMetadata, Metadata, MetadataIndex, StorageMeta, TensorProperties, TensorStorageMetadata

__all__ = ["read_metadata", "write_metadata"]

_METADATA = "torch.distributed.checkpoint.metadata"
_SHARDED = "torch.distributed._shard.sharded_tensor.metadata"  # where older files name the classes of TensorProperties
_STORAGE = "torch.distributed.checkpoint.filesystem"


def write_metadata(metadata, file):
    """Write a Metadata as PyTorch reads it."""
    from cresset.serialization._names import pickler_class

    pickler_class(pickle)(file, 4).dump(metadata)


class _Record:
    """An object of the pickle: its class's name and its state, which is all that a file can say of it."""

    __slots__ = ("state",)
    kind = None

    def __new__(cls, *args):
        if args:
            raise pickle.UnpicklingError(f"{cls.kind}: a record without arguments was required")
        record = super().__new__(cls)
        record.state = {}
        return record

    def __setstate__(self, state):
        self.state = state


class _Made:
    """What a file may call. A file cannot change it."""

    __slots__ = ("function",)

    def __init__(self, function):
        object.__setattr__(self, "function", function)

    def __call__(self, *args):
        return self.function(*args)

    def __setattr__(self, name, value):
        raise pickle.UnpicklingError("a file may not change what it calls")

    def __setstate__(self, state):
        raise pickle.UnpicklingError("a file may not change what it calls")


def _record(name):
    return type("_Record", (_Record,), {"__slots__": (), "kind": name})


def _size(*args):
    numbers = args[0] if args else ()
    if not isinstance(numbers, (tuple, list)) or not all(type(n) is int for n in numbers):
        raise pickle.UnpicklingError("Size: a tuple of whole numbers was required")
    return cresset.Size(numbers)


def _layout(name):
    return {"torch.strided": cresset.strided, "torch.sparse_coo": cresset.sparse_coo, "torch.sparse_csr": cresset.sparse_csr}[name]


def _member(formats, owner, name):
    if owner is not formats or name not in _md._MEM_FORMAT_ENCODING.__members__:
        raise pickle.UnpicklingError("getattr: a memory format was required")
    return _md._MEM_FORMAT_ENCODING[name]


def _path(*parts):
    return str(PurePosixPath(*map(str, parts)))


def _table():
    table = {
        (_METADATA, name): _record(name)
        for name in ("Metadata", "MetadataIndex", "TensorStorageMetadata", "BytesStorageMetadata", "ChunkStorageMetadata", "TensorProperties", "StorageMeta")
    }
    table[_SHARDED, "TensorProperties"] = table[_METADATA, "TensorProperties"]
    table[_STORAGE, "_StorageInfo"] = _record("_StorageInfo")
    formats = _Made(lambda code: _md._MEM_FORMAT_ENCODING(code))
    table[_METADATA, "_MEM_FORMAT_ENCODING"] = table[_SHARDED, "MEM_FORMAT_ENCODING"] = formats
    table["builtins", "getattr"] = _Made(functools.partial(_member, formats))  # enumerations as some versions of Python write them
    table["torch", "Size"], table["torch.serialization", "_get_layout"] = _Made(_size), _Made(_layout)
    for module in ("pathlib", "pathlib._local"):
        for name in ("PosixPath", "PurePosixPath", "WindowsPath"):
            table[module, name] = _Made(_path)
    for value in vars(cresset._C).values():
        if isinstance(value, cresset.dtype):
            table["torch", str(value).rpartition(".")[2]] = value
    return table


class _Reader(pickle.Unpickler):
    def __init__(self, file):
        super().__init__(file)
        self.table = _table()

    def find_class(self, module, name):
        if (module, name) not in self.table:
            raise pickle.UnpicklingError(f".metadata: the file names {module}.{name}, which is not part of a checkpoint's metadata. Nothing was loaded for it.")
        return self.table[module, name]

    def persistent_load(self, pid):
        raise pickle.UnpicklingError(".metadata: a persistent id, which no checkpoint's metadata has")


def _need(condition, what):
    if not condition:
        raise pickle.UnpicklingError(f".metadata: {what}")


def _state(value, kind):
    _need(isinstance(value, _Record) and value.kind == kind, f"{kind} was required; {getattr(value, 'kind', type(value).__name__)} was given")
    state = value.state
    if kind != "TensorProperties":
        _need(isinstance(state, dict) and all(type(key) is str for key in state), f"the state of {kind} is no dictionary")
    return state


def _whole(value, what, below=2**62):
    _need(type(value) is int and 0 <= value < below, f"{what} is no whole number that a file can have")
    return value


def _shape(value, what):
    _need(isinstance(value, (tuple, list)) and all(type(n) is int and 0 <= n < 2**62 for n in value), f"{what} is no size")
    return cresset.Size(value)


def _properties(value):
    state = _state(value, "TensorProperties")
    if isinstance(state, dict):
        state = tuple(state.get(key) for key in ("dtype", "layout", "requires_grad", "memory_format", "pin_memory"))
    _need(isinstance(state, tuple) and len(state) == 5, "TensorProperties: five values were required")
    dtype, layout, requires_grad, form, pinned = state
    _need(isinstance(dtype, cresset.dtype) and isinstance(layout, cresset.layout), "TensorProperties: a dtype and a layout were required")
    made = TensorProperties(dtype=dtype, layout=layout, requires_grad=bool(requires_grad), pin_memory=bool(pinned))
    if isinstance(form, _md._MEM_FORMAT_ENCODING):
        made.memory_format = next(key for key, code in _md._FORMATS.items() if code is form)
    return made


def _value(record):
    if isinstance(record, _Record) and record.kind == "BytesStorageMetadata":
        return BytesStorageMetadata()
    state = _state(record, "TensorStorageMetadata")
    size, chunks = _shape(state.get("size"), "size"), []
    _need(isinstance(state.get("chunks"), list), "chunks are no list")
    for chunk in state["chunks"]:
        box = _state(chunk, "ChunkStorageMetadata")
        made = ChunkStorageMetadata(_shape(box.get("offsets"), "offsets"), _shape(box.get("sizes"), "sizes"))
        _need(len(made.offsets) == len(made.sizes) == len(size), "a chunk has another number of dimensions than its tensor")
        chunks.append(made)
    return TensorStorageMetadata(_properties(state.get("properties")), size, chunks)


def _index(record):
    state = _state(record, "MetadataIndex")
    _need(type(state.get("fqn")) is str, "a MetadataIndex has no name")
    offset, hint = state.get("offset"), state.get("index")
    return MetadataIndex(state["fqn"], None if offset is None else _shape(offset, "offset"), None if hint is None else _whole(hint, "index"))


def _place(record):
    state = _state(record, "_StorageInfo")
    path, transforms = state.get("relative_path"), state.get("transform_descriptors")
    _need(type(path) is str, "a _StorageInfo has no path")
    _need(transforms is None or isinstance(transforms, (list, tuple)) and all(type(t) is str for t in transforms), "transform_descriptors are no texts")
    return _StorageInfo(path, _whole(state.get("offset"), "offset"), _whole(state.get("length"), "length"), transforms)


def _text(value):
    return None if value is None else str(value)


def _storage_meta(record):
    state = _state(record, "StorageMeta")
    modules = state.get("modules") or []
    return StorageMeta(_text(state.get("checkpoint_id")), _text(state.get("save_id")), _text(state.get("load_id")), [str(m) for m in modules])


def _plain(value, depth=0):
    """A value of numbers, texts and containers, which is what planners add."""
    _need(depth < 64, "planner_data is nested too deeply")
    if value is None or type(value) in (bool, int, float, str, bytes, cresset.Size):
        return value
    if type(value) in (list, tuple):
        return type(value)(_plain(v, depth + 1) for v in value)
    _need(type(value) is dict, f"planner_data holds {getattr(value, 'kind', type(value).__name__)}")
    return {_plain(k, depth + 1): _plain(v, depth + 1) for k, v in value.items()}


def read_metadata(data):
    """The Metadata of the bytes of a file. pickle.UnpicklingError for anything else."""
    try:
        record = _Reader(io.BytesIO(data)).load()
        state = _state(record, "Metadata")
        values, places = state.get("state_dict_metadata"), state.get("storage_data")
        _need(isinstance(values, dict) and all(type(key) is str for key in values), "state_dict_metadata is no dictionary")
        _need(places is None or isinstance(places, dict), "storage_data is no dictionary")
        return Metadata(
            {name: _value(value) for name, value in values.items()},
            planner_data=_plain(state.get("planner_data")),
            storage_data=None if places is None else {_index(index): _place(place) for index, place in places.items()},
            storage_meta=None if state.get("storage_meta") is None else _storage_meta(state["storage_meta"]),
            version=_text(state.get("version")),
        )
    except pickle.UnpicklingError:
        raise
    except Exception as error:
        raise pickle.UnpicklingError(f".metadata: the file is damaged ({type(error).__name__}: {error})") from None
