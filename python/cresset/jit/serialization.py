"""cresset.jit.save and load: scripts as archives that PyTorch reads, and archives that PyTorch wrote."""

import contextlib
import importlib
import os

import cresset
from cresset import _C

__all__ = ["load", "save", "load_object"]


def _handle(m):
    """The compiler's object behind a script module or function."""
    handle = getattr(m, "_c", m)
    if isinstance(handle, (_C.ScriptModule, _C.ScriptFunction)):
        return handle
    if isinstance(m, cresset.nn.Module):
        raise TypeError(f"save: a script module or function was required; {type(m).__name__} is a module in Python. Pass it to jit.script first.")
    raise TypeError(f"save: a script module or function was required; a {type(m).__name__} was given.")


def save(m, f, _extra_files=None):
    """Write a script module or function with its code, attributes and parameters to the path or binary file `f`.

    `_extra_files` maps names to str or bytes that are kept beside it.
    """
    handle = _handle(m)
    _define_quantized_operators()
    if isinstance(f, (str, os.PathLike)):
        _C._jit_save_file(handle, os.fspath(f), _extra_files)
    else:
        f.write(_C._jit_save_bytes(handle, _extra_files))


def _define_quantized_operators():
    """Archives of quantized modules call them, and take tensors apart and put them together by them."""
    importlib.import_module("cresset._quantized._operators")


def load_object(f, map_location=None, _extra_files=None):
    """The compiler's object (`_C.ScriptModule`) of an archive; see `load`."""
    _define_quantized_operators()
    device = None if map_location is None else cresset.device(map_location)
    if not isinstance(f, (str, os.PathLike)):
        return _C._jit_load_bytes(f.read(), device, _extra_files)
    path = os.fspath(f)
    if not os.path.exists(path):
        raise ValueError(f"The provided filename {path} does not exist")
    if os.path.isdir(path):
        raise ValueError(f"The provided filename {path} is a directory")
    return _C._jit_load_file(path, device, _extra_files)


def load(f, map_location=None, _extra_files=None, _restore_shapes=False, *, limits=None):
    """Read a script module from the path or binary file `f`, onto the devices it was saved from or onto `map_location`.

    The values of the dict `_extra_files` are replaced by the contents (bytes) of the files of those names.
    A class of the archive may have a `__setstate__`, which runs now: `limits` (`cresset.jit.Limits`) says how long that may take, with the rest
    of reading, and how much memory it may take; RuntimeError and OutOfMemoryError tell that it was not enough. Calls of what was loaded
    are limited by the same object in a `with` block.
    """
    from cresset.jit._recursive import wrap_module  # which imports this package

    with limits if limits is not None else contextlib.nullcontext():
        return wrap_module(load_object(f, map_location, _extra_files))
