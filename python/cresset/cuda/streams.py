"""Streams and events of CUDA devices, for isinstance(): making one raises. Those of registered devices are `cresset.Stream` and `cresset.Event`."""

__all__ = ["Stream", "Event", "ExternalStream"]


class Stream:
    """Raises: streams belong to devices (`cresset.Stream`)."""

    def __init__(self, *args, **kwargs):
        raise RuntimeError(f"torch.cuda.{type(self).__name__} requires CUDA support")


class ExternalStream(Stream):
    """Raises: there is no device to have a stream."""


class Event(Stream):
    """Raises: events belong to devices (`cresset.Event`)."""
