"""Settings of save and load: byte order, checksums, how files are mapped, and what a load or a save that is going on has been asked for."""

import sys
import threading
from enum import Enum

__all__ = [
    "LoadEndianness", "get_default_load_endianness", "set_default_load_endianness", "get_crc32_options", "set_crc32_options",
    "get_default_mmap_options", "set_default_mmap_options", "skip_data",
]  # fmt: skip


class LoadEndianness(Enum):
    """The byte order that a file is read with when it does not say its own."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class _Settings:
    endianness = None
    crc32 = True
    mmap = None  # MAP_PRIVATE, which is a constant of systems that have it


class _SerializationTls(threading.local):
    """What this thread's load or save has been asked for."""

    skip_data = False
    materialize_fake_tensors = False
    map_location = None
    later = None  # what waits for the data of storages, while a format is read that has it behind the objects


_serialization_tls = _SerializationTls()


def is_read_later():
    """Whether storages of the file that is being read have no data yet."""
    return _serialization_tls.later is not None


def when_read(action):
    """Call action() when the storages of the file that is being read have their data: now, if they have."""
    if _serialization_tls.later is None:
        action()
    else:
        _serialization_tls.later.append(action)


def get_default_load_endianness():
    """The byte order of files that do not say theirs; None is this machine's."""
    return _Settings.endianness


def set_default_load_endianness(endianness):
    """Choose the byte order of files that do not say theirs: a LoadEndianness, or None for this machine's."""
    if not isinstance(endianness, LoadEndianness) and endianness is not None:
        raise TypeError("Invalid argument type in function set_default_load_endianness")
    _Settings.endianness = endianness


def byte_order(recorded):
    """ "little" or "big" for a file that says so (bytes), or says nothing (None)."""
    if recorded is not None:
        if recorded not in (b"little", b"big"):
            raise ValueError(f"Unknown endianness type: {recorded[:20].decode('ascii', 'replace')}")
        return recorded.decode()
    return {LoadEndianness.LITTLE: "little", LoadEndianness.BIG: "big"}.get(_Settings.endianness, sys.byteorder)


def get_crc32_options():
    """Does save compute a checksum of each record?"""
    return _Settings.crc32


def set_crc32_options(compute_crc32):
    """Choose whether save computes a checksum of each record. load reads files without them; programs that unpack zip files may refuse them."""
    _Settings.crc32 = bool(compute_crc32)


def get_default_mmap_options():
    """The flag of mmap(2) that load(mmap=True) maps files with."""
    import mmap

    return mmap.MAP_PRIVATE if _Settings.mmap is None else _Settings.mmap


class set_default_mmap_options:
    """Choose how load(mmap=True) maps files, for good or as a context: mmap.MAP_PRIVATE keeps changes from the file, mmap.MAP_SHARED writes them to it."""

    def __init__(self, flags):
        import mmap

        if flags not in (mmap.MAP_PRIVATE, mmap.MAP_SHARED):
            raise ValueError(
                f"Invalid argument in function set_default_mmap_options, expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got {flags}"
            )
        self.prev, _Settings.mmap = get_default_mmap_options(), flags

    def __enter__(self):
        pass

    def __exit__(self, *error):
        _Settings.mmap = self.prev


class skip_data:
    """For a block: save leaves room for the data of storages without writing it, and load makes storages without reading it.

    With `materialize_fake_tensors` fake tensors are saved as tensors of the device that they pretend.
    """

    def __init__(self, materialize_fake_tensors=False):
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self):
        tls = _serialization_tls
        self._before = tls.skip_data, tls.materialize_fake_tensors
        tls.skip_data, tls.materialize_fake_tensors = True, self.materialize_fake_tensors

    def __exit__(self, *error):
        _serialization_tls.skip_data, _serialization_tls.materialize_fake_tensors = self._before
