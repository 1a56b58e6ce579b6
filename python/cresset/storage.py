"""Storages: the memory behind tensors as objects. Tensors that share memory have one and the same UntypedStorage."""

import atexit
import builtins
import copy
import functools
import io
import mmap
import operator
import os
import sys
import warnings
import weakref

import cresset

from . import _C, _fork_pickling

__all__ = ["UntypedStorage", "TypedStorage", "is_storage"]

_files = {}  # (name, whether it is shared) of files that are mapped, by the same address
_alive = weakref.WeakValueDictionary()  # by the address of the memory block's owner

_NUMBERS = {
    "double": "float64", "float": "float32", "half": "float16", "long": "int64", "int": "int32", "short": "int16", "char": "int8",
    "byte": "uint8", "bool": "bool", "bfloat16": "bfloat16", "complex_double": "complex128", "complex_float": "complex64",
}  # fmt: skip
_LEGACY = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16", "LongStorage": "int64", "IntStorage": "int32",
    "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8", "BoolStorage": "bool", "BFloat16Storage": "bfloat16",
    "ComplexDoubleStorage": "complex128", "ComplexFloatStorage": "complex64", "QUInt8Storage": "quint8", "QInt8Storage": "qint8",
    "QInt32Storage": "qint32", "QUInt4x2Storage": "quint4x2", "QUInt2x4Storage": "quint2x4",
}  # fmt: skip
_LEGACY_OF = {dtype: name for name, dtype in _LEGACY.items()}


def _dtype_to_storage_type_map():
    """dtype -> name of the legacy class."""
    return {getattr(cresset, dtype): name for dtype, name in _LEGACY_OF.items()}


def _dtype(name):
    return getattr(cresset, name) if name.startswith("q") else getattr(_C, name)


def _load_from_bytes(data):
    """The storage of a pickle. Pickles run code, so this does not stand between them and it."""
    return cresset.load(io.BytesIO(data), weights_only=False)


_releasing = None  # the process that gives up its names of shared memory when it ends


def _release_names_at_exit():
    import multiprocessing.util

    global _releasing
    if _releasing == os.getpid():
        return
    _releasing = os.getpid()
    if multiprocessing.parent_process() is None:
        atexit.register(_release_names, _releasing)
    else:  # a child of multiprocessing ends without atexit
        multiprocessing.util.Finalize(None, _release_names, (_releasing,), exitpriority=-1000)


def _release_names(process):
    if process == os.getpid():
        _C._release_shared_names()


class _Shared:
    """What both kinds of storage can do. `_elements` is a one-dimensional tensor over all of the memory."""

    @property
    def is_cuda(self):
        return self.device.type == "cuda"

    @property
    def is_hpu(self):
        return False

    is_sparse = False
    is_sparse_csr = False

    def __sizeof__(self):
        return object.__sizeof__(self) + self.nbytes()

    def get_device(self):
        """Index of the device, -1 on CPU."""
        return -1 if self.device.index is None else self.device.index

    def size(self):
        """Number of elements."""
        return len(self)

    def tolist(self):
        """The elements as Python numbers. NotImplementedError on `meta`, which has none."""
        from .utils._python_dispatch import no_dispatch

        self._check_readable()
        with no_dispatch():  # reading memory is no operator of the program's
            return self._elements().tolist()

    def __iter__(self):
        return iter(self.tolist())

    def _check_memory(self, what):
        """RuntimeError for the storage that a wrapper without memory shows."""
        try:
            self.untyped().data_ptr()
        except RuntimeError as error:
            if "invalid python storage" not in str(error):
                raise
            raise RuntimeError(f"Attempted to {what} on an invalid python storage.") from None

    def fill_(self, value):
        """Set every element."""
        self._check_memory("call fill_()")
        self._elements().fill_(value)
        return self

    def copy_(self, source, non_blocking=None):
        """Take over the elements of a storage of the same length."""
        if not isinstance(source, _Shared):
            raise TypeError(f"copy_: a storage was required; got {type(source).__name__}")
        self._check_memory("call copy_()")
        self._elements().copy_(source._elements())
        return self

    def _tensor_over(self, dtype):
        """What cresset.tensor makes of it: a tensor over the same memory."""
        return tensor_of_storage(self, dtype or (self.dtype if isinstance(self, TypedStorage) else cresset.int64))

    @classmethod
    def from_buffer(cls, buffer, byte_order="native", *, count=-1, offset=0, dtype=None):
        """A copy of the elements of a buffer: `count` of them, or all, from the byte `offset` on. A class of one type knows its dtype.

        byte_order is "native", "big" or "little". ValueError for another, for an offset or a count outside of the buffer, and for a length
        that is no multiple of an element's.
        """
        fixed = cls.__dict__.get("_fixed")
        dtype = _dtype(fixed) if fixed else dtype or cresset.uint8
        if byte_order not in ("native", "big", "little"):
            raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
        data, size = memoryview(buffer).cast("B"), dtype.itemsize
        if not 0 <= offset <= len(data) or (len(data) and offset == len(data)):
            raise ValueError(f"offset must be non-negative and no greater than buffer length ({len(data)}), but got {offset}")
        if count < 0:
            if (len(data) - offset) % size:
                raise ValueError(f"buffer size ({len(data)}) must be a multiple of element size ({size})")
            count = (len(data) - offset) // size
        elif offset + count * size > len(data):
            raise ValueError(f"buffer has only {len(data) - offset} elements after offset {offset}, but specified a size of {count}")
        storage = UntypedStorage(data[offset : offset + count * size].tolist())
        if dtype == cresset.bool:
            storage._elements().copy_(storage._elements() != 0)
        elif byte_order not in ("native", sys.byteorder):
            storage.byteswap(dtype)
        return storage if cls is UntypedStorage else TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)

    def is_shared(self):
        """Whether other processes can see the memory."""
        untyped = self.untyped()
        return _files.get(untyped._cdata, (None, False))[1] or _C._storage_shared(untyped._anchor) is not None

    def share_memory_(self):
        """Move host memory to where processes that are forked, or that it is sent to, see it too; returns the storage.

        The storage cannot grow afterwards. RuntimeError for memory of a device.
        """
        from cresset.multiprocessing import get_sharing_strategy

        if self.device.type != "cpu":
            raise RuntimeError(f"share_memory_: sharing is only available on CPU; this storage is on {self.device}. Copy it to the CPU first.")

        self._check_memory("share the memory")
        named = get_sharing_strategy() == "file_system"
        if named:
            _release_names_at_exit()
        _C._storage_share(self.untyped()._anchor, named)
        return self

    def is_pinned(self, device=None):
        """Whether the memory is pinned for an accelerator."""
        return self._elements().is_pinned()

    @property
    def filename(self):
        """Name of the memory in /dev/shm, or of the file that from_file shares it with; None where it has none."""
        untyped = self.untyped()
        if untyped._cdata in _files:
            path, shared = _files[untyped._cdata]
            return path if shared else None
        shared = _C._storage_shared(untyped._anchor)
        return shared[1] or None if shared else None

    def cpu(self):
        """The storage itself, or a copy in host memory."""
        return self.to(device="cpu")

    def cuda(self, device=None, non_blocking=False):
        raise RuntimeError("storage.cuda: no CUDA device is built in. Use storage.to(device=…) with a registered device.")

    def _check_readable(self):
        if self.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")

    def _check_index(self, index):
        if not isinstance(index, int) or isinstance(index, builtins.bool):
            raise TypeError(f"can't index a {type(self).__module__}.{type(self).__name__} with {type(index).__name__}")
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} out of range for storage of size {len(self)}")
        return index % len(self)

    def __copy__(self):
        return self.clone()

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = self.clone()
        return memo[id(self)]

    def __reduce__(self):
        """For pickle: the bytes of a file of PyTorch's older format, which holds this storage alone."""
        file = io.BytesIO()
        cresset.save(self, file, _use_new_zipfile_serialization=False)
        return _load_from_bytes, (file.getvalue(),)

    def __repr__(self):
        head = f"[{type(self).__module__}.{type(self).__name__}({self._facts()}) of size {len(self)}]"
        if self.device.type == "meta":
            return "...\n" + head
        return " " + "\n ".join(map(str, self.tolist())) + "\n" + head

    __str__ = __repr__


class StorageBase:
    """Base of the class of storages, which itself makes none. RuntimeError when it is called."""

    def __new__(cls, *args, **kwargs):
        if cls is StorageBase:
            raise RuntimeError("Cannot directly construct StorageBase; subclass it and then construct that")
        return object.__new__(cls)


_C.StorageBase = StorageBase


class UntypedStorage(_Shared, StorageBase):
    """Bytes: `UntypedStorage(n)`, `UntypedStorage([1, 2, 3])`, or `tensor.untyped_storage()`.

    Less memory after `resize_` is only a smaller number, because tensors over the memory may still reach further.
    """

    _fake_device = None  # of a storage without data that stands for one: the device of that one
    _checkpoint_offset = None  # and where a checkpoint has its bytes

    def __init__(self, size=0, *, device="cpu"):
        values = None
        try:
            size = operator.index(size)
        except TypeError:
            if isinstance(size, cresset.Tensor) or not hasattr(size, "__len__"):
                raise RuntimeError(f"torch.UntypedStorage(): Expected a sequence type, but got {type(size).__name__}") from None
            values, size = list(size), len(size)
        self._anchor = cresset.empty(size, dtype=cresset.uint8, device=device)
        if values:
            self._anchor.copy_(cresset.tensor(values, dtype=cresset.uint8))
        _alive[_C._storage_key(self._anchor)] = self

    @classmethod
    def _of(cls, tensor):
        """The storage of a tensor: the same object as long as one is alive."""
        key = _C._storage_key(tensor)
        found = _alive.get(key)
        if found is None:
            found = cls.__new__(cls)
            found._anchor = _C._storage_view(tensor, cresset.uint8, 0, [0], [1])
            _alive[key] = found
        elif found._anchor is None:
            found._own_memory(tensor)
        return found

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if (own := cls.__dict__.get("__del__")) is not None:
            # A finalizer of the program's runs when the object goes, not when C++ begins to keep it.
            @functools.wraps(own)
            def finalize(self):
                if not self._stay_with_memory():
                    own(self)

            cls.__del__ = finalize

    def __del__(self):
        self._stay_with_memory()

    def _stay_with_memory(self):
        """When the last reference goes while C++ holds the memory: the memory keeps the object, if that has anything that a new one would lack."""
        if _alive is None or self.__dict__.get("_anchor") is None:  # the interpreter ends, or the memory is gone, too
            return False
        plain = type(self) is UntypedStorage and len(self.__dict__) == 1 and weakref.getweakrefcount(self) <= 1
        if plain or _C._storage_use_count(self._anchor) <= 2 or _alive.get(self._cdata) is not self:
            return False
        _C._storage_keep(self._anchor, self)
        self._anchor = None
        return True

    def _own_memory(self, tensor):
        self._anchor = _C._storage_view(tensor, cresset.uint8, 0, [0], [1])
        _C._storage_take(self._anchor)

    def _fix_weakref(self):
        """To be called on what a weak reference gave: the object may have outlived its last reference in Python because C++ held its memory."""
        if self._anchor is None and (memory := _C._storage_keeper(self)) is not None:
            self._own_memory(memory)

    @classmethod
    def from_file(cls, filename, shared=False, nbytes=0):
        """Memory over a file: what is written to it reaches the file when it is `shared`, and nobody else otherwise.

        A shared file is made, and made longer, where that is needed. RuntimeError for a file that cannot be opened or is too short.
        """
        path = os.fsdecode(filename)
        memory, elements = _mapped_file(path, shared, nbytes)
        storage = cls._of(elements)
        if memory is not None:
            _files[storage._cdata] = path, bool(shared)
            weakref.finalize(memory, _files.pop, storage._cdata, None).atexit = False
        return storage

    @classmethod
    def _new_with_file(cls, file, element_size):
        """What _write_file has written at the position of an open file, behind the number of elements of `element_size` bytes. RuntimeError when
        it ends too early."""
        head = file.read(8)
        size = int.from_bytes(head, sys.byteorder, signed=True) * element_size
        data = file.read(size) if len(head) == 8 and size >= 0 else b""
        if len(head) < 8 or len(data) != max(size, 0):
            raise RuntimeError(f"unexpected EOF, expected {size - len(data)} more bytes. The file might be corrupted.")
        storage = cls(size)
        if size:
            storage._elements().copy_(cresset.frombuffer(bytearray(data), dtype=cresset.uint8))
        return storage

    def _facts(self):
        return f"device={self.device}"

    def _elements(self):
        return _C._storage_view(self._anchor, cresset.uint8, 0, [self.nbytes()], [1])

    @property
    def device(self):
        return self._anchor.device

    @property
    def _cdata(self):
        return _C._storage_key(self._anchor)

    def __len__(self):
        return _C._storage_nbytes(self._anchor)

    def __bool__(self):
        return len(self) > 0

    def nbytes(self):
        """Number of bytes."""
        return _C._storage_nbytes(self._anchor)

    def element_size(self):
        return 1

    def data_ptr(self):
        """Address of the first byte."""
        return _C._storage_data_ptr(self._anchor)

    def resizable(self):
        """Whether resize_ works: memory from outside (NumPy) has its size for good."""
        return _C._storage_resizable(self._anchor)

    def resize_(self, size):
        """Change the number of bytes; what both sizes have in common stays."""
        _C._storage_resize(self._anchor, size)
        return self

    def __getitem__(self, index):
        self._check_readable()
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1:
                raise RuntimeError(f"Trying to slice with a step of {step}, but only a step of 1 is supported")
            return UntypedStorage._of(_C._storage_slice(self._anchor, start, max(0, stop - start)))
        return self._elements()[self._check_index(index)].item()

    def __setitem__(self, index, value):
        self._check_readable()
        self._check_memory("set item")
        if not isinstance(index, slice):
            index = self._check_index(index)
        self._elements()[index] = value

    def untyped(self):
        return self

    def clone(self):
        """A copy."""
        return UntypedStorage._of(self._elements().clone())

    def new(self):
        """An empty storage."""
        return UntypedStorage(0, device=self.device)

    def to(self, *, device, non_blocking=False):
        """The storage itself, or a copy on another device."""
        device = cresset.device(device)
        same = device.type == self.device.type and device.index in (None, self.device.index)
        return self if same else UntypedStorage._of(self._elements().to(device))

    def type(self, dtype=None, non_blocking=False):
        return f"{type(self).__module__}.{type(self).__name__}"

    def pin_memory(self, device=None):
        """The storage itself, or a copy in pinned memory; RuntimeError without an accelerator."""
        return self if self.is_pinned() else UntypedStorage._of(self._elements().pin_memory())

    # What PyTorch's own pickling is made of, and data loaders that collate into shared memory.

    @classmethod
    def _new_shared(cls, size, *, device="cpu"):
        return cls(size, device=device).share_memory_()

    _new_using_fd_cpu = _new_using_filename_cpu = _new_shared

    def _write_file(self, file, is_real_file=True, save_size=True, element_size=1):
        """Write the bytes into an open file, behind the number of elements of `element_size` bytes, as int64, when `save_size`."""
        self._check_memory("call _write_file()")
        data = self.cpu()._elements().numpy().tobytes()
        file.write((len(data) // element_size).to_bytes(8, sys.byteorder) + data if save_size else data)

    def _share_fd_cpu_(self):
        """(open file, number of bytes) of the memory, which is shared from now on. RuntimeError for memory with a name, or of a device."""
        if self.device.type != "cpu":
            raise RuntimeError("_share_fd_cpu_: only available on CPU")
        _C._storage_share(self._anchor, False)
        fd, name = _C._storage_shared(self._anchor)
        if name:
            raise RuntimeError(f"_share_fd_cpu_: memory without a name was required; given: {name}")
        return fd, len(self)

    @classmethod
    def _new_shared_fd_cpu(cls, fd, size):
        return cls._of(_C._storage_open_fd(fd, size))

    def _share_filename_cpu_(self):
        """(None, name, number of bytes) of the memory, which is shared from now on. RuntimeError for memory without a name."""
        if self.device.type != "cpu":
            raise RuntimeError("_share_filename_cpu_: only available on CPU")
        _release_names_at_exit()
        _C._storage_share(self._anchor, True)
        name = self.filename
        if not name:
            raise RuntimeError("_share_filename_cpu_: memory with a name was required; this storage is shared by an open file.")
        return None, name, len(self)

    @classmethod
    def _new_shared_filename_cpu(cls, manager, name, size):
        _release_names_at_exit()
        return cls._of(_C._storage_open_name(name, size))

    def _shared_incref(self):
        if self.filename:
            _C._storage_count_shared(self._anchor, 1)
        return self

    def _shared_decref(self):
        if self.filename:
            _C._storage_count_shared(self._anchor, -1)
        return self

    def byteswap(self, dtype):
        """Reverse the bytes of each element in place."""
        size = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
        if size > 1:
            elements = self._elements()
            rows = elements[: len(self) // size * size].view(-1, size)
            rows.copy_(rows.flip(1).clone())


for _name, _number in _NUMBERS.items():

    def _convert(self, _number=_number):
        return TypedStorage(wrap_storage=UntypedStorage._of(self._elements().to(_dtype(_number))), dtype=_dtype(_number), _internal=True)

    _convert.__name__ = _name
    _convert.__doc__ = f"The elements as {_number}: a copy, or for a storage of this type the storage itself."
    setattr(UntypedStorage, _name, _convert)


def _mapped_file(path, shared, nbytes):
    """(the mapping, a tensor of `nbytes` bytes over it) of a file."""
    how = "read-write" if shared else "read-only"
    try:
        opened = os.open(path, os.O_RDWR | os.O_CREAT if shared else os.O_RDONLY, 0o600)
    except OSError as error:
        raise RuntimeError(f"unable to open file <{path}> in {how} mode: {error.strerror} ({error.errno})") from None
    try:
        there = os.fstat(opened).st_size
        if there < nbytes:
            if not shared:
                raise RuntimeError(f"file <{path}> size <{there}> is smaller than the required mapping size <{nbytes}>")
            os.ftruncate(opened, nbytes)
        if nbytes == 0:
            return None, cresset.empty(0, dtype=cresset.uint8)
        memory = mmap.mmap(opened, nbytes, mmap.MAP_SHARED if shared else mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
    finally:
        os.close(opened)
    return memory, cresset.frombuffer(memory, dtype=cresset.uint8)


class _TypedMeta(type):
    def __getattr__(cls, name):
        if name == "dtype" and (fixed := cls.__dict__.get("_fixed")) is not None:
            return _dtype(fixed)
        raise AttributeError(f"type object '{cls.__name__}' has no attribute '{name}'")

    def __instancecheck__(cls, instance):
        wanted = cls.__dict__.get("_fixed")
        if wanted is None:
            return type.__instancecheck__(cls, instance)
        return type.__instancecheck__(TypedStorage, instance) and instance.dtype == _dtype(wanted)


class _Deprecation:
    warned = always = False


def _warn_typed_storage_removal(stacklevel=2):
    """Warn once, or each time when that is set, that typed storages go."""
    if _Deprecation.always or not _Deprecation.warned:
        _Deprecation.warned = True
        warnings.warn(
            "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class. This should only matter to "
            "you if you are using storages directly.  To access UntypedStorage directly, use tensor.untyped_storage() instead of tensor.storage()",
            stacklevel=stacklevel + 1,
        )


def _reset_warn_typed_storage_removal():
    _Deprecation.warned = False


def _get_always_warn_typed_storage_removal():
    return _Deprecation.always


def _set_always_warn_typed_storage_removal(always_warn):
    _Deprecation.always = always_warn


_TYPED_FORMS = """TypedStorage.__init__ received an invalid combination of arguments. Expected one of:
 * (*, torch.device device, torch.dtype dtype)
 * (int size, *, torch.device device, torch.dtype dtype)
 * (Sequence data, *, torch.device device, torch.dtype dtype)
 * (*, UntypedStorage wrap_storage, torch.dtype dtype)
"""
_LEGACY_FORMS = """{}.__new__ received an invalid combination of arguments. Expected one of:
 * no arguments
 * (int size)
 * (Sequence data)
 * (*, UntypedStorage wrap_storage)
"""


def _check_forms(forms, args, wrap_storage):
    """What both kinds of constructors refuse."""
    if len(args) > (wrap_storage is None):
        which = "No positional arguments should be given when using 'wrap_storage'" if wrap_storage is not None else "Too many positional arguments"
        raise RuntimeError(forms + which)
    if wrap_storage is not None and not isinstance(wrap_storage, UntypedStorage):
        raise TypeError(f"{forms}Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}")
    if args and isinstance(args[0], (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(args[0]).__name__}'")


class TypedStorage(_Shared, metaclass=_TypedMeta):
    """Elements of one type: `TypedStorage([1.0, 2.0], dtype=…)`, `FloatStorage(3)`, or `tensor.storage()`."""

    _fixed = None

    def __new__(cls, *args, **kwargs):
        return object.__new__(TypedStorage)

    def __init__(self, *args, wrap_storage=None, dtype=None, device=None, _internal=False, _legacy=None):
        if not _internal:
            _warn_typed_storage_removal()
            _check_forms(_TYPED_FORMS, args, wrap_storage)
            if wrap_storage is not None and dtype is None:
                raise RuntimeError(_TYPED_FORMS + "Argument 'dtype' must be specified")
            if dtype is not None and not isinstance(dtype, cresset.dtype):
                raise TypeError(f"{_TYPED_FORMS}Argument 'dtype' must be torch.dtype, not {type(dtype)}")
            if wrap_storage is not None and device is not None:
                raise RuntimeError(_TYPED_FORMS + "Argument 'device' should not be specified when 'wrap_storage' is given")
        self.dtype = dtype or cresset.get_default_dtype()
        if wrap_storage is not None:
            self._untyped_storage = wrap_storage
            return
        given, stored = args[0] if args else 0, getattr(self.dtype, "_stored", self.dtype)
        if hasattr(given, "__index__") and not isinstance(given, cresset.Tensor):  # NumPy's integers too
            tensor = cresset.empty(operator.index(given), dtype=stored, device=device or "cpu")
        else:
            tensor = cresset.tensor(list(given), dtype=stored, device=device or "cpu")
        self._untyped_storage = UntypedStorage._of(tensor)

    @classmethod
    def _of(cls, tensor):
        return TypedStorage(wrap_storage=UntypedStorage._of(tensor), dtype=tensor.dtype, _internal=True)

    @classmethod
    def from_file(cls, filename, shared=False, size=0):
        """Memory over a file of `size` elements, as UntypedStorage.from_file."""
        dtype = cresset.get_default_dtype() if cls._fixed is None else _dtype(cls._fixed)
        return TypedStorage(wrap_storage=UntypedStorage.from_file(filename, shared, size * dtype.itemsize), dtype=dtype, _internal=True)

    def _facts(self):
        return f"dtype={self.dtype}, device={self.device}"

    def _elements(self):
        return _C._storage_view(self._untyped_storage._anchor, getattr(self.dtype, "_stored", self.dtype), 0, [len(self)], [1])

    @property
    def device(self):
        return self._untyped_storage.device

    @property
    def _cdata(self):
        return self._untyped_storage._cdata

    def __len__(self):
        return self._untyped_storage.nbytes() // self.dtype.itemsize

    def __eq__(self, other):
        return isinstance(other, TypedStorage) and self._cdata == other._cdata and self.dtype == other.dtype

    def __hash__(self):
        return hash((self._cdata, self.dtype))

    def nbytes(self):
        """Number of bytes."""
        return self._untyped_storage.nbytes()

    def element_size(self):
        """Bytes of one element."""
        return self.dtype.itemsize

    def data_ptr(self):
        """Address of the first element."""
        return self._untyped_storage.data_ptr()

    def resizable(self):
        return self._untyped_storage.resizable()

    def _write_file(self, *args):
        self._untyped_storage._write_file(*args)

    def _share_fd_cpu_(self):
        return self._untyped_storage._share_fd_cpu_()

    def _share_filename_cpu_(self):
        return self._untyped_storage._share_filename_cpu_()

    def _shared_incref(self):
        self._untyped_storage._shared_incref()
        return self

    def _shared_decref(self):
        self._untyped_storage._shared_decref()
        return self

    def resize_(self, size):
        """Change the number of elements."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    def __getitem__(self, index):
        self._check_readable()
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        return self._elements()[self._check_index(index)].item()

    def __setitem__(self, index, value):
        self._check_readable()
        if not isinstance(index, slice):
            index = self._check_index(index)
        self._elements()[index] = value

    def untyped(self):
        """The same memory as bytes."""
        return self._untyped_storage

    def clone(self):
        """A copy."""
        return TypedStorage(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype, _internal=True)

    def __deepcopy__(self, memo):
        """A copy; of what is copied together, tensors and storages of either kind that shared memory share it again."""
        if id(self) not in memo:
            memo[id(self)] = TypedStorage(wrap_storage=copy.deepcopy(self._untyped_storage, memo), dtype=self.dtype, _internal=True)
        return memo[id(self)]

    def to(self, *, device, non_blocking=False):
        """The storage itself, or a copy on another device."""
        moved = self._untyped_storage.to(device=device)
        return self if moved is self._untyped_storage else TypedStorage(wrap_storage=moved, dtype=self.dtype, _internal=True)

    def pickle_storage_type(self):
        """Name of the legacy class."""
        return _LEGACY_OF[str(self.dtype).split(".")[-1]]

    def type(self, dtype=None, non_blocking=False):
        """Name of the kind, or the elements converted to a dtype. A device has kinds of its own when its module defines them."""
        if dtype is None:
            legacy, kind = self.pickle_storage_type(), self.device.type
            if kind in ("cpu", "cuda"):
                return f"torch.{legacy}"
            own = getattr(getattr(cresset, kind, None), legacy, None)
            return "torch.storage.TypedStorage" if own is None else f"{own.__module__}.{own.__name__}"
        wanted = _dtype(_LEGACY[dtype.split(".")[-1]]) if isinstance(dtype, str) else dtype
        return self._converted(wanted)

    def _converted(self, dtype):
        if dtype == self.dtype:
            return self
        return TypedStorage(wrap_storage=UntypedStorage._of(self._elements().to(dtype)), dtype=dtype, _internal=True)

    def pin_memory(self, device=None):
        """The storage itself, or a copy in pinned memory; RuntimeError without an accelerator."""
        return TypedStorage(wrap_storage=self._untyped_storage.pin_memory(device), dtype=self.dtype, _internal=True)


for _name, _number in _NUMBERS.items():

    def _convert(self, _number=_number):
        return self._converted(_dtype(_number))

    _convert.__name__ = _name
    _convert.__doc__ = f"The elements as {_number}: a copy, or for a storage of this type the storage itself."
    setattr(TypedStorage, _name, _convert)


def _legacy_class(name, number):
    def make(cls, *args, device=None, wrap_storage=None, **others):
        forms = _LEGACY_FORMS.format(cls)
        if others:
            raise RuntimeError(f"{forms}Keyword argument '{next(iter(others))}' cannot be specified")
        _check_forms(forms, args, wrap_storage)
        if args and isinstance(args[0], cresset.Tensor):
            raise TypeError(f"{forms}Argument type not recognized: {type(args[0])}")
        _warn_typed_storage_removal()
        return TypedStorage(*args, wrap_storage=wrap_storage, dtype=_dtype(number), device=device, _internal=True)

    return _TypedMeta(name, (TypedStorage,), {"_fixed": number, "__new__": make, "__module__": "cresset", "__doc__": f"Storages of {number}."})


_classes = {name: _legacy_class(name, number) for name, number in _LEGACY.items()}
globals().update(_classes)
__all__ += list(_classes)


def legacy_class(dtype):
    """The legacy class of storages with elements of this type."""
    return _classes[_LEGACY_OF[str(dtype).split(".")[-1]]]


def has_legacy_class(dtype):
    """Is there a class of storages with elements of this type?"""
    return str(dtype).split(".")[-1] in _LEGACY_OF


def is_storage(obj):
    """Is obj a storage object?"""
    return isinstance(obj, _Shared)


def tensor_of_storage(source, dtype, offset=0, size=None, stride=None):
    """A tensor over the memory of a storage; all of it unless a size is given. RuntimeError for elements of another type."""
    if isinstance(source, TypedStorage):
        if source.dtype != dtype:
            raise RuntimeError(f"Expected a Storage of type {dtype} or an UntypedStorage, but got type {source.dtype} for argument 1 'storage'")
        source = source.untyped()
    if size is None:
        size = [source.nbytes() // dtype.itemsize]
    size = list(size)
    if not stride:
        stride, n = [], 1
        for s in reversed(size):
            stride.insert(0, n)
            n *= max(s, 1)
    if source._fake_device is not None and (mode := _fake_mode()) is not None:
        return mode.over_storage(source, dtype, offset, size, stride)
    return _C._storage_view(source._anchor, dtype, offset, size, list(stride))


def _fake_mode():
    """The innermost FakeTensorMode that is active, or None."""
    loaded = sys.modules.get("cresset._subclasses.fake_tensor")
    return None if loaded is None else loaded.active_mode()


# The kinds of storages; libraries add those of their devices.
_storage_classes = {UntypedStorage, TypedStorage, *(getattr(sys.modules[__name__], name) for name in _LEGACY)}

_fork_pickling.register(UntypedStorage, "reduce_storage")
_fork_pickling.register(TypedStorage, "reduce_typed_storage")
