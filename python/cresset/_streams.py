"""Streams and events of devices: ordered queues of work, and marks in them."""

import cresset

from . import _C

__all__ = ["Stream", "Event"]


def _stream_device(device):
    """The device of a stream, an event or a question to the accelerator: the one given; the current one when only a kind or nothing is given."""
    if device is None:
        kind = _C._accelerator_type()
        if kind is None:
            raise RuntimeError("Cannot access accelerator device when none is available. `cresset doctor` lists the devices that are there.")
        return _C._device_current(cresset.device(kind))
    device = cresset.device(device)
    return _C._device_current(device) if device.index is None else device


# Kinds of devices by PyTorch's numbers; those that are registered under names of their own follow.
_KINDS = [
    "cpu", "cuda", "mkldnn", "opengl", "opencl", "ideep", "hip", "fpga", "maia", "xla", "vulkan", "metal", "xpu", "mps", "meta", "hpu", "ve", "lazy",
    "ipu", "mtia", "privateuseone",
]  # fmt: skip


def _kind_number(kind):
    if kind == _C._get_privateuse1_backend_name():
        kind = "privateuseone"
    if kind not in _KINDS:
        _KINDS.append(kind)
    return _KINDS.index(kind)


class Stream:
    """A queue of one device: work in it runs in order, work in different streams may overlap. A context: the current stream inside."""

    def __new__(cls, device=None, priority=0, *, stream_id=None, device_index=None, device_type=None):
        self = super().__new__(cls)
        if stream_id is not None:
            # The three numbers of a stream that exists, as the properties below show them.
            kind = _KINDS[device_type] if isinstance(device_type, int) else device_type or cresset.device(device).type
            self.device = cresset.device(kind) if device_index in (None, -1) else cresset.device(kind, device_index)
            self.stream_id = int(stream_id)
        elif device is None and _C._accelerator_type() is None:
            self.device, self.stream_id = cresset.device("cpu"), 0
        else:
            self.device = _stream_device(device)
            self.stream_id = _C._stream_new(self.device, int(priority))
        self._outer = []
        return self

    @property
    def device_index(self):
        """Index of the device; -1 where none is named."""
        return -1 if self.device.index is None else self.device.index

    @property
    def device_type(self):
        """Number of the device's kind; those of kinds that PyTorch does not know follow its own."""
        return _kind_number(self.device.type)

    @property
    def native_handle(self):
        """Address of the driver's queue, for libraries of the vendor. NotImplementedError when the backend does not show it."""
        return _C._stream_native(self.device, self.stream_id)

    def is_capturing(self):
        """Whether work submitted now is recorded by a graph."""
        return _C._stream_is_capturing(self.device, self.stream_id)

    def query(self):
        """Whether all work submitted to it is done."""
        return _C._stream_query(self.device, self.stream_id)

    def synchronize(self):
        """Wait until all work submitted to it is done."""
        _C._stream_synchronize(self.device, self.stream_id)

    def wait_event(self, event):
        """Let work that is submitted from now on wait for an event."""
        _C._event_block(event._event, self.device, self.stream_id)

    def wait_stream(self, stream):
        """Let work that is submitted from now on wait for everything in another stream."""
        self.wait_event(stream.record_event())

    def record_event(self, event=None):
        """Put a mark behind everything submitted so far; returns the event."""
        if event is None:
            event = Event(self.device)
        event.record(self)
        return event

    def __enter__(self):
        before = _C._device_exchange(self.device) if self.device.index is not None else self.device
        self._outer.append((before, _C._stream_exchange(self.device, self.stream_id)))
        return self

    def __exit__(self, *exc_info):
        device, stream = self._outer.pop()
        _C._stream_exchange(self.device, stream)
        if device.index is not None:
            _C._device_restore(device)

    def __eq__(self, other):
        if not isinstance(other, Stream):
            return NotImplemented
        return (self.device, self.stream_id) == (other.device, other.stream_id)

    def __hash__(self):
        return hash((self.device, self.stream_id))

    def __repr__(self):
        return f"{cresset.__name__}.Stream device_type={self.device.type}, device_index={self.device_index}, stream_id={self.stream_id}"


class Event:
    """A mark in a stream: it has happened when everything before it is done. Two of them, made with enable_timing, measure time."""

    def __init__(self, device=None, *, enable_timing=False, blocking=False, interprocess=False):
        host = device is None and _C._accelerator_type() is None
        self._device = cresset.device("cpu") if host else _stream_device(device)
        self._timing = bool(enable_timing)
        self._event = _C._event_new(self._device, self._timing, bool(interprocess))

    @property
    def device(self):
        """The device of the stream that it was recorded in; only its kind before."""
        return self._device if self.event_id else cresset.device(self._device.type)

    def ipc_handle(self):
        """Bytes by which another process finds the mark (from_ipc_handle) while it lives here; of events made with interprocess=True. Before the first
        record it is one of the current device."""
        return _C._event_handle(self._event)

    @classmethod
    def from_ipc_handle(cls, device, ipc_handle):
        """The mark of another process, whose `ipc_handle()` this is: to wait for, to ask, to record."""
        event = cls.__new__(cls)
        event._device, event._timing = _stream_device(device), False
        event._event = _C._event_from_handle(event._device, ipc_handle)
        return event

    @property
    def event_id(self):
        """The backend's number of the recorded mark; 0 before the first record."""
        return _C._event_id(self._event)

    def _stream(self, stream):
        return (self._device, _C._stream_current(self._device)) if stream is None else (stream.device, stream.stream_id)

    def record(self, stream=None):
        """Put the mark behind everything in a stream, by default the current one."""
        device, stream_id = self._stream(stream)
        if self._device.type == device.type and device.type in ("cpu", "meta"):
            raise NotImplementedError(f"{device.type} backend doesn't support events.")  # a RuntimeError, as in PyTorch
        _C._event_record(self._event, device, stream_id)
        self._device = device

    def wait(self, stream=None):
        """Let a stream, by default the current one, wait for the mark."""
        _C._event_block(self._event, *self._stream(stream))

    def query(self):
        """Whether everything before the mark is done."""
        return _C._event_query(self._event)

    def synchronize(self):
        """Wait until everything before the mark is done."""
        _C._event_synchronize(self._event)

    def elapsed_time(self, end_event):
        """Milliseconds from this mark to another."""
        return _C._event_elapsed(self._event, end_event._event)

    def __repr__(self):
        index = -1 if self.device.index is None else self.device.index
        return (f"{cresset.__name__}.Event device_type={self.device.type}, device_index={index}, event_flag={int(self._timing)}, "
                f"event_id={self.event_id}")
