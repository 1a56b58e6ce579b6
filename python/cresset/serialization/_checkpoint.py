"""PyTorch's checkpoints: a zip file of a pickle, `data.pkl`, and the bytes of each storage that it mentions, `data/KEY`."""

import io
import sys

import cresset

from ._errors import damaged
from ._locations import location_tag, mapped_device, restorer
from ._names import pickler_class, unpickler_class
from ._options import _serialization_tls, byte_order

__all__ = ["StorageTable", "read_checkpoint", "write_checkpoint"]


def storage_facts(storage):
    """(class that files name, elements, dtype) of a storage object."""
    if isinstance(storage, cresset.storage.TypedStorage):
        untyped, dtype = storage.untyped(), storage.dtype
        if not cresset.storage.has_legacy_class(dtype):
            raise KeyError(f"dtype {dtype} is not recognized")
        return cresset.storage.legacy_class(dtype), untyped.nbytes() // dtype.itemsize, dtype
    return cresset.UntypedStorage, storage.nbytes(), cresset.uint8


class StorageTable:
    """The storages that a pickle mentions, each under one key."""

    def __init__(self, key_of):
        self.storages = {}  # key -> (untyped storage, dtype)
        self._key_of, self._dtypes = key_of, {}

    def add(self, storage):
        """(class, key, location, elements) of a storage. RuntimeError when the same memory came as another type before."""
        kind, count, dtype = storage_facts(storage)
        untyped = storage.untyped()
        if untyped._fake_device is None and untyped.device.type == "meta":
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        if untyped.nbytes() and self._dtypes.setdefault(untyped._cdata, dtype) != dtype:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different types. "
                f"One storage is used with elements of {self._dtypes[untyped._cdata]} and of {dtype}; clone one of the tensors."
            )
        key = self._key_of(untyped)
        self.storages.setdefault(key, (untyped, dtype))  # which keeps it alive, and its key with it
        return kind, key, location_tag(storage), count


def host_copy(storage):
    """The storage in host memory."""
    return storage if storage.device.type == "cpu" else storage.cpu()


def write_checkpoint(obj, writer, pickle_module, pickle_protocol, disable_byteorder_record):
    """Write `obj` through a ZipWriter."""
    keys = {}
    table = StorageTable(lambda storage: keys.setdefault(storage._cdata, str(len(keys))))
    base = pickler_class(pickle_module)

    class Pickler(base):
        def persistent_id(self, value):
            if not cresset.is_storage(value):
                return None
            kind, key, location, count = table.add(value)
            return "storage", kind, key, location, count

    text = io.BytesIO()
    pickler = Pickler(text, protocol=pickle_protocol)
    pickler.dump(obj)
    writer.write_record("data.pkl", text.getbuffer(), text.getbuffer().nbytes)
    writer.write_record(".format_version", b"1", 1)
    writer.write_record(".storage_alignment", b"64", 2)
    if disable_byteorder_record:
        writer._no_byteorder = True
    else:
        writer.write_record("byteorder", sys.byteorder, len(sys.byteorder))
    for key in sorted(table.storages):
        storage, _ = table.storages[key]
        if _serialization_tls.skip_data or storage._fake_device is not None:
            writer.write_record_metadata(f"data/{key}", storage.nbytes())
        else:
            writer.write_record(f"data/{key}", host_copy(storage), storage.nbytes())


# Reading --------------------------------------------------------------------------------------------------------------


class _Storages:
    """The storages of an archive by key, made when the pickle first mentions them."""

    def __init__(self, reader, map_location, mapped):
        self._reader, self._mapped, self._restore = reader, mapped, restorer(map_location)
        self._fake = cresset.storage._fake_mode() is not None
        recorded = reader.get_record("byteorder") if reader.has_record("byteorder") else None
        try:
            self._swaps = byte_order(recorded) != sys.byteorder
        except ValueError as error:
            raise damaged(str(error)) from None
        self._loaded = {}  # key -> typed storage

    def persistent_load(self, saved_id):
        dtype, key, location, count = check_persistent_id(saved_id)
        found = self._loaded.get(key)
        if found is None:
            found = self._loaded[key] = self._load(dtype, count, key, location)
        elif found.nbytes() != count * dtype.itemsize:
            raise damaged(f"the storage {key!r} is mentioned with {found.nbytes()} and {count * dtype.itemsize} bytes")
        return found if found.dtype == dtype else cresset.storage.TypedStorage(wrap_storage=found.untyped(), dtype=dtype, _internal=True)

    def _without_data(self, dtype, size, name, location):
        """The storage of fake tensors: nothing is read, and `_checkpoint_offset` says where the bytes are."""
        from cresset.utils._python_dispatch import no_dispatch

        with no_dispatch():
            storage = cresset.UntypedStorage(size, device="meta")
        storage._fake_device = mapped_device(location)
        storage._checkpoint_offset = self._reader.get_record_offset(name)
        return cresset.storage.TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)

    def _load(self, dtype, count, key, location):
        name, size = f"data/{key}", count * dtype.itemsize
        self._reader.check(name, size)
        if self._fake:
            return self._without_data(dtype, size, name, location)
        if self._mapped is not None and self._reader.is_stored(name):
            start = self._reader.get_record_offset(name)
            storage = self._mapped[start : start + size]
        else:
            storage = cresset.UntypedStorage(size)
            if not _serialization_tls.skip_data and size:
                self._reader.read_into(name, memoryview(storage._elements()))
        if self._swaps:
            storage.byteswap(dtype)
        storage = self._restore(storage, location)
        untyped = storage.untyped() if cresset.is_storage(storage) else storage
        return cresset.storage.TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)


def check_persistent_id(saved_id):
    """(dtype, key, location, elements) of a persistent id, which a file has written."""
    if not isinstance(saved_id, tuple) or len(saved_id) < 5:
        raise damaged(f"a persistent id must be a tuple of a storage, got {type(saved_id).__name__}")
    kind, storage_type, key, location, count = saved_id[:5]
    if isinstance(kind, bytes):
        kind = kind.decode("ascii", "replace")
    if kind != "storage":
        raise damaged(f"Unknown typename for persistent_load, expected 'storage' but got '{kind}'")
    key, location = (v.decode("ascii", "replace") if isinstance(v, bytes) else v for v in (key, location))
    if not isinstance(key, str) or not isinstance(location, str) or type(count) is not int or count < 0:
        raise damaged("a persistent id must have a key, a location and a number of elements")
    if storage_type is cresset.UntypedStorage or storage_type is cresset.storage.TypedStorage:
        return cresset.uint8, key, location, count
    fixed = getattr(storage_type, "_fixed", None)
    if not isinstance(fixed, str):
        raise damaged(f"a persistent id must name a class of storages, got {storage_type!r}")
    return getattr(cresset, fixed), key, location, count


def read_checkpoint(reader, map_location, pickle_module, mapped, pickle_file="data.pkl", **pickle_load_args):
    """The object of one pickle of an archive; `pickle_module` None is the unpickler that runs no code. Storages are parts of `mapped`, the mapped file, or None."""
    storages = _Storages(reader, map_location, mapped)
    text = io.BytesIO(reader.get_record(pickle_file))
    before, _serialization_tls.map_location = _serialization_tls.map_location, map_location
    try:
        return unpickle(text, pickle_module, storages.persistent_load, **pickle_load_args)
    finally:
        _serialization_tls.map_location = before


def unpickle(f, pickle_module, persistent_load, **pickle_load_args):
    """The object of the pickle at the position of `f`."""
    if pickle_module is None:
        from cresset import _weights_only_unpickler

        return _weights_only_unpickler.load(f, persistent_load=persistent_load, **pickle_load_args)
    unpickler = unpickler_class(pickle_module)(f, **pickle_load_args)
    unpickler.persistent_load = persistent_load
    return unpickler.load()
