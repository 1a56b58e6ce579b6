"""Event files: records with checksums, each a message in Protocol Buffers' format."""

import functools
import os
import socket
import struct
import threading
import time

__all__ = ["EventFileWriter", "RecordWriter"]


@functools.cache
def _table():
    rows = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        rows.append(n)
    return rows


def _checksum(data):
    """The masked CRC-32C of a record."""
    table, crc = _table(), 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


# --- fields of messages ---------------------------------------------------------------------------------------------------------


def varint(value):
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer(field, value):
    return varint(field << 3) + varint(int(value))


def double(field, value):
    return varint(field << 3 | 1) + struct.pack("<d", value)


def single(field, value):
    return varint(field << 3 | 5) + struct.pack("<f", value)


def block(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def doubles(field, values):
    return block(field, struct.pack(f"<{len(values)}d", *values))


class RecordWriter:
    """Records into a file: length, its checksum, data, its checksum."""

    def __init__(self, path):
        self._file = open(path, "ab")

    def write(self, data):
        """Add a record."""
        length = struct.pack("<Q", len(data))
        self._file.write(length + struct.pack("<I", _checksum(length)) + data + struct.pack("<I", _checksum(data)))

    def flush(self):
        self._file.flush()

    def close(self):
        self._file.close()


_numbers = iter(range(1 << 62))


class EventFileWriter:
    """Events into a new file of a folder, which is made where it is missing."""

    def __init__(self, logdir, max_queue_size=10, flush_secs=120, filename_suffix=""):
        self._logdir = os.fspath(logdir)
        os.makedirs(self._logdir, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{next(_numbers)}{filename_suffix}"
        self.path = os.path.join(self._logdir, name)
        self._writer, self._lock = RecordWriter(self.path), threading.Lock()
        self._most, self._seconds, self._waiting, self._flushed = max_queue_size, flush_secs, 0, time.monotonic()
        self.add_event(block(3, "brain.Event:2"), None)
        self.flush()

    def get_logdir(self):
        """The folder."""
        return self._logdir

    def add_event(self, content, step, walltime=None):
        """Add an event of encoded fields."""
        event = double(1, time.time() if walltime is None else walltime) + (b"" if step is None else integer(2, step)) + content
        with self._lock:
            self._writer.write(event)
            self._waiting += 1
            due = self._waiting >= self._most or time.monotonic() - self._flushed > self._seconds
        if due:
            self.flush()

    def flush(self):
        """What was added is in the file."""
        with self._lock:
            self._writer.flush()
            self._waiting, self._flushed = 0, time.monotonic()

    def close(self):
        with self._lock:
            self._writer.close()
