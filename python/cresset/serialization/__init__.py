"""save and load: objects with tensors as files.

A file is PyTorch's checkpoint (a zip archive of a pickle and the bytes of storages), or a safetensors file when its path ends so. Reading
tells formats apart by their first bytes, PyTorch's older ones too. docs/guide/files.md shows them, docs/design/files.md says how names of
globals are mapped.
"""

import errno
import os
import pickle
import warnings
from tempfile import mkdtemp  # noqa: F401  where PyTorch has it

import cresset
from cresset._homes import settle

from . import _files
from ._errors import FileError, damage
from ._files import _open_file_like, is_path
from ._legacy import MAGIC_NUMBER, PROTOCOL_VERSION, SourceChangeWarning  # noqa: F401
from ._locations import (  # noqa: F401
    _package_registry,
    default_restore_location,
    location_tag,
    register_package,
    validate_cuda_device,
    validate_hpu_device,
)
from ._names import _get_layout  # noqa: F401
from ._options import (
    LoadEndianness,
    _serialization_tls,
    get_crc32_options,
    get_default_load_endianness,
    get_default_mmap_options,
    set_crc32_options,
    set_default_load_endianness,
    set_default_mmap_options,
    skip_data,
)
from ._types import FILE_LIKE, MAP_LOCATION, STORAGE, FileLike, StorageType  # noqa: F401
from ._zip import ZipReader, _open_zipfile_reader, _open_zipfile_writer
from ._zip import is_zip_file as _is_zipfile

__all__ = [
    "SourceChangeWarning", "register_package", "check_module_version_greater_or_equal", "validate_cuda_device", "validate_hpu_device",
    "location_tag", "default_restore_location", "normalize_storage_type", "storage_to_tensor_type", "save", "load", "StorageType",
    "LoadEndianness", "get_crc32_options", "set_crc32_options", "get_default_load_endianness", "set_default_load_endianness",
    "get_default_mmap_options", "set_default_mmap_options", "clear_safe_globals", "get_safe_globals", "add_safe_globals", "safe_globals",
    "get_unsafe_globals_in_checkpoint", "skip_data", "FileError",
]  # fmt: skip

DEFAULT_PROTOCOL = 2
SHORT_SIZE, INT_SIZE, LONG_SIZE = 2, 4, 4  # bytes of the numbers in older formats
STORAGE_KEY_SEPARATOR = ","

_RISK = (
    "In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from `False` to `True`. "
    "Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but it can result in arbitrary code execution. "
    "Do it only if you got the file from a trusted source."
)
UNSAFE_MESSAGE = _RISK


# Safe globals -----------------------------------------------------------------------------------------------------------


def _machine():
    from cresset import _weights_only_unpickler

    return _weights_only_unpickler


def add_safe_globals(safe_globals):
    """Let load(weights_only=True) use functions and classes: each itself, or a tuple of it and the full name that files have for it."""
    _machine()._add_safe_globals(safe_globals)


def get_safe_globals():
    """What add_safe_globals has added."""
    return _machine()._get_safe_globals()


def clear_safe_globals():
    """Forget what add_safe_globals has added."""
    _machine()._clear_safe_globals()


class safe_globals:
    """For a block: add_safe_globals."""

    def __init__(self, safe_globals):
        self._added = _machine()._safe_globals(safe_globals)

    def __enter__(self):
        self._added.__enter__()

    def __exit__(self, *error):
        self._added.__exit__(*error)


def get_unsafe_globals_in_checkpoint(f):
    """Full names of the globals in a checkpoint (a zip file) that load(weights_only=True) would refuse. Nothing of it is run."""
    with _open_file_like(f, "rb") as opened:
        if not _is_zipfile(opened):
            raise ValueError("Expected input to be a checkpoint returned by torch.save")
        reader = ZipReader(opened)
        if _is_torchscript_zip(reader):
            raise ValueError("Expected input to be a checkpoint returned by torch.save but got a torchscript checkpoint")
        with damage("pickle"):
            names = _machine().get_globals_in_pkl(reader.get_record("data.pkl"))
    machine = _machine()
    allowed = set(machine._get_allowed_globals()) | set(machine._get_user_allowed_globals())
    return [name for name in sorted(names) if name not in allowed]


# Small parts of the interface -------------------------------------------------------------------------------------------


def check_module_version_greater_or_equal(module, req_version_tuple, error_if_malformed=True):
    """Is module.__version__ at least a tuple of numbers? With error_if_malformed=False a version that is no such tuple warns and counts as one."""
    try:
        parts = module.__version__.split(".")
        version = tuple(type(wanted)(part) for wanted, part in zip(req_version_tuple, parts, strict=False))
    except (AttributeError, ValueError) as error:
        message = f"'{module.__name__}' module version string is malformed '{getattr(module, '__version__', None)}' and cannot be compared with tuple {req_version_tuple}"
        if error_if_malformed:
            raise RuntimeError(message) from error
        warnings.warn(f"{message}, but continuing assuming that requirement is met", stacklevel=2)
        return True
    return version >= req_version_tuple


def _check_dill_version(pickle_module):
    if pickle_module is not None and getattr(pickle_module, "__name__", "") == "dill":
        if not check_module_version_greater_or_equal(pickle_module, (0, 3, 1), False):
            raise ValueError(f"'torch' supports dill >= 0.3.1, but you have dill {pickle_module.__version__}. Please upgrade dill or switch to 'pickle'")


def normalize_storage_type(storage_type):
    """The class of storages in the package that has the name of the given one."""
    return getattr(cresset, storage_type.__name__)


def storage_to_tensor_type(storage):
    """The tensor class of a storage's class."""
    kind = cresset.storage.legacy_class(storage.dtype)
    return getattr(cresset, kind.__name__.replace("Storage", "Tensor"))


def _is_torchscript_zip(reader):
    return reader.has_record("constants.pkl")


# Writing ----------------------------------------------------------------------------------------------------------------


def save(obj, f, pickle_module=pickle, pickle_protocol=DEFAULT_PROTOCOL, _use_new_zipfile_serialization=True, _disable_byteorder_record=False):
    """Write `obj` to the path or binary file `f`, as load and PyTorch read it.

    A path that ends in ".safetensors" gives that format, for tensors, numbers and texts in dictionaries, lists and tuples (TypeError names
    anything else). All else is written as a checkpoint: whatever `pickle_module` pickles; tensors that share a storage share it again.
    A path is replaced by the whole new file, which has reached the disk, or stays as it was. AttributeError for a target without write.
    """
    _check_dill_version(pickle_module)
    _files.check_writable(f)
    path = _files.path_of(f)
    if path is not None and path.endswith(".safetensors"):
        from ._safetensors import write_safetensors

        with _files.replaced_file(path) as out:
            write_safetensors(obj, out.write)
    elif _use_new_zipfile_serialization:
        from ._checkpoint import write_checkpoint

        if path is not None and not os.path.isdir(parent := os.path.dirname(path) or "."):
            raise RuntimeError(f"Parent directory {parent} does not exist.")
        with _open_zipfile_writer(f) as writer:
            write_checkpoint(obj, writer, pickle_module, pickle_protocol, _disable_byteorder_record)
    else:
        from ._legacy import write_legacy

        if _serialization_tls.skip_data:
            raise RuntimeError("save: skip_data works with _use_new_zipfile_serialization=True only.")
        if path is not None and not os.path.isdir(os.path.dirname(path) or "."):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        if path is None:
            write_legacy(obj, f, pickle_module, pickle_protocol)
        else:
            with _files.replaced_file(path) as out:
                write_legacy(obj, out.file, pickle_module, pickle_protocol)


# Reading ----------------------------------------------------------------------------------------------------------------


def _weights_only(asked, pickle_module):
    """What weights_only means after the two variables of the environment."""
    true = ("1", "y", "yes", "true")
    force = os.getenv("TORCH_FORCE_WEIGHTS_ONLY_LOAD", "0").lower() in true
    never = os.getenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "0").lower() in true
    if force and never:
        raise RuntimeError("Only one of `TORCH_FORCE_WEIGHTS_ONLY_LOAD` or `TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD` should be set, but both were set.")
    if force:
        return True
    if asked is None and never:
        warnings.warn(
            "Environment variable TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD detected, since the`weights_only` argument was not explicitly passed to "
            "`torch.load`, forcing weights_only=False.",
            stacklevel=3,
        )
        return False
    return pickle_module is None if asked is None else asked


def load(f, map_location=None, pickle_module=None, *, weights_only=None, mmap=None, **pickle_load_args):
    """Read what `save`, PyTorch's torch.save or a safetensors library wrote, from a path or a binary file that can seek.

    With `weights_only` (the default unless a pickle_module is given) nothing in the file runs, and only tensors, containers, numbers, texts
    and what add_safe_globals names are read; with weights_only=False it is unpickled, which **runs code of the file**. Storages go back
    to the device they were saved from. `map_location` is a device to go to instead, a dict from tags of locations ("mychip:0") to
    devices, or a function of a storage on the CPU and its tag that gives the storage to use, or None for the device of the tag. With
    `mmap` storages of a path are parts of the mapped file. `encoding` and `errors` are for texts of Python 2.

    pickle.UnpicklingError for a content that weights_only refuses and for a damaged file (FileError, a RuntimeError as well); EOFError for an
    empty one; AttributeError for a file that cannot seek; RuntimeError for a device that is not here.
    """
    weights_only = _weights_only(weights_only, pickle_module)
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    _check_dill_version(pickle_module)
    if not weights_only and pickle_module is None:
        pickle_module = pickle
    if mmap and not is_path(f):
        raise ValueError("f must be a file path in order to use the mmap argument")
    pickle_load_args.setdefault("encoding", "utf-8")
    with _open_file_like(f, "rb") as opened:
        try:
            return _read(opened, f, map_location, pickle_module, mmap, pickle_load_args)
        except pickle.UnpicklingError as error:
            if not weights_only or isinstance(error, FileError):
                raise
            raise pickle.UnpicklingError(_refusal(str(error))) from None


def _load(zip_file, map_location, pickle_module, pickle_file="data.pkl", overall_storage=None, **pickle_load_args):
    """The object of an archive that is open (_open_zipfile_reader gives one); `pickle_module` None is the unpickler that runs no code."""
    from ._checkpoint import read_checkpoint

    return read_checkpoint(zip_file, map_location, pickle_module, overall_storage, pickle_file, **pickle_load_args)


def _legacy_load(f, map_location, pickle_module, **pickle_load_args):
    """The object of an open file of one of the formats before archives; `pickle_module` as in `_load`."""
    from ._legacy import is_tar_file, read_legacy, read_tar

    return (read_tar if is_tar_file(f) else read_legacy)(f, map_location, pickle_module, **pickle_load_args)


def _mapped(path):
    import mmap

    path = os.fsdecode(path)
    return cresset.UntypedStorage.from_file(path, get_default_mmap_options() == mmap.MAP_SHARED, os.path.getsize(path))


def _read(opened, f, map_location, pickle_module, mmap, pickle_load_args):
    from ._safetensors import is_safetensors, read_safetensors

    if _is_zipfile(opened):
        start = opened.tell()
        reader = ZipReader(opened)
        if _is_torchscript_zip(reader):
            if pickle_module is None:
                raise RuntimeError("Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``. " + _RISK)
            warnings.warn(
                "'torch.load' received a zip file that looks like a TorchScript archive dispatching to 'torch.jit.load' (call 'torch.jit.load' "
                "directly to silence this warning)",
                stacklevel=3,
            )
            opened.seek(start)
            return cresset.jit.load(opened, map_location=map_location)
        from ._checkpoint import read_checkpoint

        return read_checkpoint(reader, map_location, pickle_module, _mapped(f) if mmap else None, **pickle_load_args)
    if is_safetensors(opened):
        return read_safetensors(opened, map_location, _mapped(f) if mmap else None)
    if mmap:
        raise RuntimeError(
            f"mmap can only be used with files saved with `torch.save({f}, _use_new_zipfile_serialization=True), please torch.save your checkpoint "
            "with this option in order to use mmap."
        )
    from ._legacy import is_tar_file, read_legacy, read_tar

    start = opened.tell()
    empty = not opened.read(1)
    opened.seek(start)
    if empty:
        raise EOFError("load: Ran out of input; the file is empty.")
    if is_tar_file(opened):
        if pickle_module is None:
            raise RuntimeError("Cannot use ``weights_only=True`` with files saved in the legacy .tar format. " + _RISK)
        return read_tar(opened, map_location, pickle_module, **pickle_load_args)
    return read_legacy(opened, map_location, pickle_module, **pickle_load_args)


def _refusal(why):
    if "Unsupported global:" not in why:
        return (
            f"Weights only load failed. {_RISK}\nPlease file an issue with the following so that we can make `weights_only=True` compatible with your "
            f"use case: WeightsUnpickler error: {why}"
        )
    return (
        "Weights only load failed. This file can still be loaded, to do so you have two options, \033[1mdo those steps only if you trust the source of "
        f"the checkpoint\033[0m. \n\t(1) {_RISK}\n\t(2) Alternatively, to load with `weights_only=True` please check the recommended steps in the following "
        f"error message.\n\tWeightsUnpickler error: {why}\n\nWhat weights_only accepts by default stands in docs/guide/files.md."
    )


settle(globals())
