"""The formats of checkpoints before zip files: pickles in a row with the storages' bytes behind them, and tar files (read only).

A file of the first kind has the pickles of a magic number, the version, the sizes of C's types, the object and the list of keys; then for
each key the number of elements (8 bytes) and the data.
"""

import inspect
import io
import pickle
import struct
import sys
import tarfile
import warnings

import cresset

from ._checkpoint import StorageTable, check_persistent_id, host_copy, unpickle
from ._errors import FileError, damage, damaged
from ._files import bytes_left
from ._locations import restorer
from ._names import pickler_class
from ._options import _serialization_tls
from ._zip import fill, memory_of

__all__ = ["SourceChangeWarning", "is_tar_file", "read_legacy", "read_tar", "write_legacy"]

MAGIC_NUMBER, PROTOCOL_VERSION = 0x1950A86A20F9469CFC6C, 1001


class SourceChangeWarning(Warning):
    """The source of a module's class is not what it was when a file was saved."""


def write_legacy(obj, f, pickle_module, pickle_protocol):
    """Write `obj` to an open file."""
    table = StorageTable(lambda storage: str(storage._cdata))
    containers = set()
    base = pickler_class(pickle_module)

    class Pickler(base):
        def persistent_id(self, value):
            if isinstance(value, type) and issubclass(value, cresset.nn.Module):
                if value in containers:
                    return None
                containers.add(value)
                return ("module", value, *_source_of(value))
            if not cresset.is_storage(value):
                return None
            kind, key, location, count = table.add(value)
            return "storage", kind, key, location, count, None

    facts = {"protocol_version": PROTOCOL_VERSION, "little_endian": sys.byteorder == "little", "type_sizes": {"short": 2, "int": 4, "long": 4}}
    for value in (MAGIC_NUMBER, PROTOCOL_VERSION, facts):
        pickle.dump(value, f, protocol=pickle_protocol)
    Pickler(f, protocol=pickle_protocol).dump(obj)
    keys = sorted(table.storages)
    pickle.dump(keys, f, protocol=pickle_protocol)
    f.flush()
    for key in keys:
        storage, dtype = table.storages[key]
        f.write(struct.pack("<q", storage.nbytes() // dtype.itemsize))
        f.write(memory_of(host_copy(storage)))
    f.flush()


def _source_of(kind):
    try:
        lines, _ = inspect.getsourcelines(kind)
        return inspect.getsourcefile(kind), "".join(lines)
    except (OSError, TypeError):
        warnings.warn(f"Couldn't retrieve source code for container of type {kind.__name__}. It won't be checked for correctness upon loading.", stacklevel=2)
        return None, None


def _check_source(kind, source):
    try:
        now = "".join(inspect.getsourcelines(kind)[0])
    except (OSError, TypeError):
        return
    if now != source:
        warnings.warn(
            f"source code of class '{kind.__module__}.{kind.__qualname__}' has changed. You can retrieve the original source code by accessing the "
            "object's source attribute, or set `torch.nn.Module.dump_patches = True` and use the patch tool to revert the changes.",
            SourceChangeWarning,
            stacklevel=2,
        )


# Reading --------------------------------------------------------------------------------------------------------------


class _Storages:
    """Storages that are made empty while the pickle is read and filled behind it; parts of them are views."""

    def __init__(self, f, map_location):
        self._f, self._restore = f, restorer(map_location)
        self.storages = {}  # key -> (typed storage in host memory or where the location says, dtype, host memory)
        self._views = {}
        self._there = bytes_left(f)
        self._fake = cresset.storage._fake_mode() is not None

    def _place(self, size, location):
        """(storage in its place, the host memory that is read into: None where fake tensors are made, whose device is then meta)."""
        if not self._fake:
            host = cresset.UntypedStorage(size)
            return self._restore(host, location).untyped(), host
        from cresset.utils._python_dispatch import no_dispatch

        with no_dispatch():
            storage = cresset.UntypedStorage(size, device="meta")
        storage._fake_device = storage.device
        return storage, None

    def persistent_load(self, saved_id):
        kind = saved_id[0] if isinstance(saved_id, tuple) and saved_id else None
        if kind in ("module", b"module") and len(saved_id) == 4:
            if all(saved_id[1:]) and isinstance(saved_id[1], type) and issubclass(saved_id[1], cresset.nn.Module):
                _check_source(saved_id[1], saved_id[3])
            return saved_id[1]
        dtype, key, location, count = check_persistent_id(saved_id)
        if key not in self.storages:
            size = count * dtype.itemsize
            if self._there is not None and size > self._there:
                raise damaged(f"it ends within the storage {key!r}, which would have {size} bytes")
            placed, host = self._place(size, location)
            self.storages[key] = (placed, dtype, host)
        whole, _, _ = self.storages[key]
        view = saved_id[5] if len(saved_id) > 5 else None
        if view is not None:
            if not (isinstance(view, tuple) and len(view) == 3 and isinstance(view[0], (str, bytes)) and all(type(n) is int for n in view[1:])):
                raise damaged(f"a part of the storage {key!r} must have a key, an offset and a number of elements")
            view_key, offset, length = view
            if view_key not in self._views:
                start, end = offset * dtype.itemsize, (offset + length) * dtype.itemsize
                if not 0 <= start <= end <= whole.nbytes():
                    raise damaged(f"a part of the storage {key!r} reaches beyond it")
                self._views[view_key] = whole[start:end]
            whole = self._views[view_key]
        return cresset.storage.TypedStorage(wrap_storage=whole, dtype=dtype, _internal=True)

    def fill(self, key, big_endian):
        """Read a storage's number of elements and its data."""
        if key not in self.storages:
            raise damaged(f"the list of storages has {key!r}, which nothing mentions")
        placed, dtype, host = self.storages[key]
        if host is None:
            _skip(self._f, placed.nbytes(), dtype, f"the storage {key!r}")
            return
        _fill(self._f, host, dtype, big_endian, f"the storage {key!r}")
        if placed is not host and placed.device.type != "meta":
            placed.copy_(host)


def _check_count(f, size, dtype, what):
    head = bytearray(8)
    fill(f, memoryview(head), what)
    (count,) = struct.unpack("<q", head)
    if count * dtype.itemsize != size:
        raise damaged(f"{what} has {count} elements, {size // dtype.itemsize} were announced")


def _skip(f, size, dtype, what):
    _check_count(f, size, dtype, what)
    piece = memoryview(bytearray(min(size, 1 << 20)))
    while size:
        fill(f, piece[: min(size, len(piece))], what)
        size -= min(size, len(piece))


def _fill(f, host, dtype, big_endian, what):
    _check_count(f, host.nbytes(), dtype, what)
    if host.nbytes():
        fill(f, memory_of(host), what)
    if big_endian != (sys.byteorder == "big"):
        host.byteswap(dtype)


def read_legacy(f, map_location, pickle_module, **pickle_load_args):
    """The object at the position of an open file; the position is behind it afterwards."""

    def head():
        return unpickle(f, pickle_module, _no_storages)

    if head() != MAGIC_NUMBER:
        raise FileError("Invalid magic number; corrupt file? load: a checkpoint was required.")
    version = head()
    if version != PROTOCOL_VERSION:
        raise FileError(f"Invalid protocol version: {version}. load: a file of version {PROTOCOL_VERSION} was required.")
    facts = head()
    storages = _Storages(f, map_location)
    tls = _serialization_tls
    before, tls.map_location, tls.later = (tls.map_location, tls.later), map_location, []
    try:
        result = unpickle(f, pickle_module, storages.persistent_load, **pickle_load_args)
    finally:
        later = tls.later
        tls.map_location, tls.later = before
    keys = unpickle(f, pickle_module, _no_storages, **pickle_load_args)
    with damage("list of storages"):
        big_endian = not facts.get("little_endian", True)
        keys = [key.decode("ascii") if isinstance(key, bytes) else key for key in keys]
        for key in keys:
            storages.fill(key, big_endian)
    if missing := set(storages.storages) - set(keys):
        raise damaged(f"it has no data of the storages {sorted(missing)}")
    with cresset.no_grad():
        for action in later:
            action()
    return result


def _no_storages(saved_id):
    raise damaged("a storage is mentioned where none can be")


# Tar ------------------------------------------------------------------------------------------------------------------


def is_tar_file(f):
    """Is it a tar file from its beginning? The position stays."""
    start = f.tell()
    if start:
        return False
    head = f.read(512)
    f.seek(start)
    if len(head) < 512 or head[0] in b"\x80\0":
        return False
    try:
        tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape")
    except tarfile.TarError:
        return False
    return True


def read_tar(f, map_location, pickle_module, **pickle_load_args):
    """The object of a tar file of storages, tensors over them and a pickle that names the tensors. Its pickles run code."""
    restore = restorer(map_location)
    with damage("table", "a tar file of tensors"), tarfile.open(fileobj=f, mode="r:") as tar:
        parts = {name: io.BytesIO(_member(tar, name)) for name in ("storages", "tensors", "pickle")}

    def following(part):
        return unpickle(parts[part], pickle_module, _no_storages, **pickle_load_args)

    with damage("list of storages", "a tar file of tensors"):
        storages = {}
        for _ in range(following("storages")):
            key, location, kind = following("storages")
            dtype = check_persistent_id(("storage", kind, str(key), location, 0))[0]
            here = parts["storages"]
            (count,) = struct.unpack("<q", here.read(8))
            here.seek(-8, 1)
            if not 0 <= count * dtype.itemsize <= bytes_left(here):
                raise damaged(f"it ends within the storage {key!r}", "a tar file of tensors")
            host = cresset.UntypedStorage(count * dtype.itemsize)
            _fill(here, host, dtype, False, f"the storage {key!r}")
            storages[key] = (restore(host, location).untyped(), dtype)
        for target, root, offset, size in following("storages"):
            whole, dtype = storages[root]
            storages[target] = (whole[offset * dtype.itemsize : (offset + size) * dtype.itemsize], dtype)
    with damage("list of tensors", "a tar file of tensors"):
        tensors = {}
        for _ in range(following("tensors")):
            key, storage, _kind = following("tensors")
            here = parts["tensors"]
            ndim, _padding = struct.unpack("<ii", here.read(8))
            size = struct.unpack(f"<{ndim}q", here.read(8 * ndim))
            stride = struct.unpack(f"<{ndim}q", here.read(8 * ndim))
            (offset,) = struct.unpack("<q", here.read(8))
            untyped, dtype = storages[storage]
            tensors[key] = cresset.storage.tensor_of_storage(untyped, dtype, offset, size, stride)

    def persistent_load(saved_id):
        with damage("pickle", "a tar file of tensors"):
            key = int(saved_id)
            if key in tensors:
                return tensors[key]
            untyped, dtype = storages[key]
        return cresset.storage.TypedStorage(wrap_storage=untyped, dtype=dtype, _internal=True)

    return unpickle(parts["pickle"], pickle_module, persistent_load, **pickle_load_args)


def _member(tar, name):
    opened = tar.extractfile(name)
    if opened is None:
        raise KeyError(name)
    return opened.read()
