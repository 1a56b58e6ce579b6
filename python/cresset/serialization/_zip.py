"""The zip files that checkpoints are: records lie stored, their data aligned to 64 bytes.

A record is named NAME/record, where NAME is the file's (or `archive`). Reading accepts what stands in front of the archive, as zip files do.
"""

import os
import struct
import zipfile
import zlib

import cresset

from ._errors import FileError, damaged
from ._options import get_crc32_options

__all__ = ["ZipReader", "ZipWriter", "is_zip_file"]

_ALIGNMENT = 64
_LOCAL, _CENTRAL, _END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
_UTF8 = 0x800
_LIMIT = 0xFFFFFFFF  # sizes and offsets from here on take the 64-bit form
_ELSEWHERE = 0xFFFFFFFF  # stands for such a number
_LARGEST_TEXT = 1 << 33  # bytes of a record that is not a storage


def is_zip_file(f):
    """Does a zip file's first record begin at the position of `f`? The position stays."""
    start = f.tell()
    head = f.read(len(_LOCAL))
    f.seek(start)
    return head == _LOCAL


def memory_of(storage):
    """The bytes of a storage in host memory, shared with it."""
    return memoryview(storage._elements()) if len(storage) else memoryview(b"")


class ZipWriter:
    """Writes records through `write`, a function of bytes-like objects."""

    def __init__(self, write, archive_name="archive"):
        self._write, self._name = write, archive_name
        self._position = 0
        self._records = []  # (encoded name, header offset, size, crc)
        self._written = set()

    def archive_name(self):
        return self._name

    def get_all_written_records(self):
        """Names of what has been written."""
        return self._written

    def _put(self, data):
        self._write(data)
        self._position += len(data)

    def _header(self, name, size, crc):
        full = f"{self._name}/{name}".encode()
        if name in self._written:
            raise RuntimeError(f"save: the archive has a record {name!r} already.")
        self._written.add(name)
        self._records.append((full, self._position, size, crc))
        large = size >= _LIMIT
        extra = struct.pack("<HHQQ", 1, 16, size, size) if large else b""
        padding = -(self._position + 30 + len(full) + len(extra) + 4) % _ALIGNMENT
        extra += b"FB" + struct.pack("<H", padding) + b"Z" * padding
        shown = _ELSEWHERE if large else size
        version = 45 if large else 0
        self._put(_LOCAL + struct.pack("<HHHHHIIIHH", version, _UTF8, 0, 0, 0, crc, shown, shown, len(full), len(extra)) + full + extra)

    def write_record(self, name, data, size):
        """Write the first `size` bytes of `data`: bytes, text, a storage, or another object with a buffer."""
        if isinstance(data, str):
            data = data.encode()
        elif cresset.is_storage(data):
            data = memory_of(data.untyped())
        view = memoryview(data).cast("B")[:size]
        if len(view) != size:
            raise RuntimeError(f"save: {size} bytes were required for the record {name!r}; {len(view)} were given.")
        self._header(name, size, zlib.crc32(view) if get_crc32_options() else 0)
        if size:
            self._put(view)

    def write_record_metadata(self, name, size):
        """Leave room for a record of zeros, which may be written into the file later."""
        self._header(name, size, 0)
        block = bytes(min(size, 1 << 20))
        while size:
            n = min(size, len(block))
            self._put(block[:n])
            size -= n

    def serialization_id(self):
        """40 digits from the names and checksums of the records."""
        names = data = 0
        for full, _, size, crc in self._records:
            names = zlib.crc32(full, names)
            data = zlib.crc32(struct.pack("<QI", size, crc), data)
        return f"{names:020d}{data:020d}"

    def write_end_of_file(self):
        """Write the records that every archive has, and the table."""
        if not self._written & {"version", ".data/version"}:
            self.write_record("version", b"3\n", 2)
        if "byteorder" not in self._written and not getattr(self, "_no_byteorder", False):
            import sys

            self.write_record("byteorder", sys.byteorder, len(sys.byteorder))
        self.write_record(".data/serialization_id", self.serialization_id(), 40)
        start = self._position
        for full, offset, size, crc in self._records:
            values = [n for n in (size, size, offset) if n >= _LIMIT]
            extra = struct.pack(f"<HH{len(values)}Q", 1, 8 * len(values), *values) if values else b""
            shown, place = (_ELSEWHERE if n >= _LIMIT else n for n in (size, offset))
            version = 45 if values else 0
            self._put(_CENTRAL + struct.pack("<HHHHHHIIIHHHHHII", version, version, _UTF8, 0, 0, 0, crc, shown, shown, len(full), len(extra), 0, 0, 0, 0, place)
                      + full + extra)  # fmt: skip
        size, count = self._position - start, len(self._records)
        if count >= 0xFFFF or start >= _LIMIT or size >= _LIMIT:
            here = self._position
            self._put(b"PK\x06\x06" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, count, count, size, start))
            self._put(b"PK\x06\x07" + struct.pack("<IQI", 0, here, 1))
        shown = min(count, 0xFFFF)
        self._put(_END + struct.pack("<HHHHIIH", 0, 0, shown, shown, *(_ELSEWHERE if n >= _LIMIT else n for n in (size, start)), 0))


class ZipReader:
    """The records of an archive in a file that can seek. What its table says is compared with the file."""

    def __init__(self, f):
        self._f = f
        try:
            self._zip = zipfile.ZipFile(f)
        except (zipfile.BadZipFile, struct.error, NotImplementedError, ValueError, LookupError, OSError, OverflowError) as error:
            raise FileError(
                f"PytorchStreamReader failed reading zip archive: failed finding central directory: {error}. "
                "The file is damaged, or was not written to its end."
            ) from None
        self._size = f.seek(0, os.SEEK_END)
        if self._size is None:
            self._size = f.tell()
        entries = self._zip.infolist()
        if not entries:
            raise damaged("the zip archive has no records")
        self._prefix = entries[0].filename.partition("/")[0] + "/"
        self._entries = {e.filename[len(self._prefix) :]: e for e in entries if e.filename.startswith(self._prefix)}

    def get_all_records(self):
        """Names of the records."""
        return list(self._entries)

    def has_record(self, name):
        return name in self._entries

    def _entry(self, name):
        entry = self._entries.get(name)
        if entry is None:
            raise FileError(f"PytorchStreamReader failed locating file {name}: file not found. The file is damaged or of another kind.")
        return entry

    def get_record_size(self, name):
        """Bytes of a record."""
        return self._entry(name).file_size

    def is_stored(self, name):
        """Do the bytes lie in the file as they are?"""
        return self._entry(name).compress_type == zipfile.ZIP_STORED

    def get_record_offset(self, name):
        """Where the data of a record begins in the file."""
        entry = self._entry(name)
        if entry.header_offset < 0:
            raise damaged(f"the record {name!r} begins in front of the file")
        self._f.seek(entry.header_offset)
        head = self._f.read(30)
        if len(head) < 30 or head[:4] != _LOCAL:
            raise damaged(f"the record {name!r} does not begin where the table says")
        start = entry.header_offset + 30 + sum(struct.unpack("<HH", head[26:]))
        if start + entry.compress_size > self._size:
            raise damaged(f"it ends within the record {name!r}")
        return start

    def get_record(self, name):
        """The bytes of a record."""
        entry = self._entry(name)
        if entry.file_size > _LARGEST_TEXT:
            raise damaged(f"the record {name!r} would have {entry.file_size} bytes")
        self.get_record_offset(name)  # before memory is asked for: the table may promise more than the file has
        target = bytearray(entry.file_size if self._fits(entry) else 0)
        self.read_into(name, memoryview(target))
        return bytes(target)

    @staticmethod
    def _fits(entry):
        """Can the record have the size that it says? Deflated data grows to at most 1032 times its size."""
        grown = entry.compress_size if entry.compress_type == zipfile.ZIP_STORED else entry.compress_size * 1040
        return entry.file_size <= grown

    def check(self, name, size):
        """Compare the size of a record with what the pickle says, before memory is asked for."""
        entry = self._entry(name)
        if entry.file_size != size:
            raise damaged(f"the record {name!r} has {entry.file_size} bytes, its storage needs {size}")
        if not self._fits(entry):
            raise damaged(f"the record {name!r} cannot have {size} bytes")
        self.get_record_offset(name)

    def read_into(self, name, target):
        """Fill a buffer of the record's size."""
        entry = self._entry(name)
        if not self._fits(entry) or len(target) != entry.file_size:
            raise damaged(f"the record {name!r} cannot have {entry.file_size} bytes")
        start = self.get_record_offset(name)
        if self.is_stored(name):
            self._f.seek(start)
            fill(self._f, target, f"the record {name!r}")
            return
        try:
            with self._zip.open(entry) as opened:
                fill(opened, target, f"the record {name!r}")
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, ValueError) as error:
            raise damaged(f"the record {name!r} does not unpack ({error})") from None


class PyTorchFileReader(ZipReader):
    """The records of a checkpoint, by path or in a file that can seek."""

    def __init__(self, name_or_buffer):
        from ._files import path_of

        path = path_of(name_or_buffer)
        super().__init__(name_or_buffer if path is None else open(path, "rb"))

    def get_storage_from_record(self, name, numel, dtype=None):
        """A tensor of `numel` elements of the dtype (bytes without one) over the record's memory."""
        import cresset

        kind = dtype if isinstance(dtype, cresset.dtype) else cresset.uint8
        target = bytearray(self.get_record_size(name))
        self.read_into(name, memoryview(target))
        return cresset.frombuffer(target, dtype=kind, count=numel)


def fill(f, target, what, kind="a checkpoint"):
    """Read a buffer full from a file that has readinto, or read only."""
    readinto = getattr(f, "readinto", None)
    done = 0
    while done < len(target):
        if readinto is not None:
            n = readinto(target[done:])
        else:
            data = f.read(min(len(target) - done, 1 << 24))
            n = len(data)
            target[done : done + n] = data
        if not n:
            raise damaged(f"it ends within {what}", kind)
        done += n


class _Writing:
    """`with _open_zipfile_writer(path or file) as writer:` writes an archive; at its end the file is whole."""

    def __init__(self, name_or_buffer):
        from ._files import path_of, replaced_file

        path = path_of(name_or_buffer)
        if path is None:
            self._file, name, write = None, "archive", name_or_buffer.write
            self._flush = getattr(name_or_buffer, "flush", None)
        else:
            stem = os.path.splitext(os.path.basename(path))[0]
            name = stem if stem.isascii() and stem else "archive"
            self._file = replaced_file(path)
            write, self._flush = self._file.write, None
        self.writer = ZipWriter(write, name)

    def __enter__(self):
        return self.writer

    def __exit__(self, kind, *error):
        if kind is None:
            self.writer.write_end_of_file()
            if self._flush is not None:
                self._flush()
        if self._file is not None:
            self._file.close(commit=kind is None)


def _open_zipfile_writer(name_or_buffer):
    return _Writing(name_or_buffer)


class _open_zipfile_reader:
    """`with _open_zipfile_reader(path or file) as reader:`"""

    def __init__(self, name_or_buffer):
        from ._files import path_of

        path = path_of(name_or_buffer)
        self._opened = None if path is None else open(path, "rb")
        try:
            self.reader = ZipReader(name_or_buffer if path is None else self._opened)
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self):
        return self.reader

    def __exit__(self, *error):
        if self._opened is not None:
            self._opened.close()
