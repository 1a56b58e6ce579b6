"""The CPU as a device: there is one, and operators on it are done when they return."""

from ._capabilities import get_capabilities

__all__ = [
    "is_available", "is_initialized", "device_count", "current_device", "set_device", "synchronize", "current_stream", "stream", "get_capabilities", "Event",
    "Stream", "StreamContext",
]  # fmt: skip


def is_available():
    return True


def is_initialized():
    return True


def device_count():
    return 1


def current_device():
    return "cpu"


def set_device(device):
    """There is only one."""


def synchronize(device=None):
    """Operators are done when they return."""


class Stream:
    """Stands for the order of operators, so that programs for devices with streams run; here every operator is done when it returns."""

    def __init__(self, priority=-1):
        pass

    def wait_stream(self, stream):
        """Nothing is left to wait for."""

    def record_event(self):
        """Nothing is left to be marked."""

    def wait_event(self, event):
        """Nothing is left to wait for."""


class Event:
    """A place in the order of operators, which has always been reached."""

    def query(self):
        return True

    def record(self, stream=None):
        """The place is here."""

    def synchronize(self):
        """Nothing is left to wait for."""

    def wait(self, stream=None):
        """Nothing is left to wait for."""


_current_stream = Stream()


class StreamContext:
    """For a block `current_stream()` is this one; None changes nothing."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        global _current_stream
        self._before = _current_stream
        if self.stream is not None:
            _current_stream = self.stream

    def __exit__(self, *exc_info):
        global _current_stream
        _current_stream = self._before


def current_stream(device=None):
    """The stream that a block chose, or the one there is."""
    return _current_stream


def stream(stream):
    """A StreamContext."""
    return StreamContext(stream)


def __getattr__(name):
    if name == "amp":
        import importlib

        return importlib.import_module(".amp", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
