"""Communication between processes is not part of Cresset: what programs ask before they use it, answered with no."""

__all__ = ["is_available", "is_initialized", "is_torchelastic_launched"]


def is_available():
    """False: there is no communication between processes, as in builds of PyTorch without it."""
    return False


def is_initialized():
    """False: there is no process group."""
    return False


def is_torchelastic_launched():
    """False."""
    return False


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise AttributeError(
        f"distributed.{name}: communication between processes is not part of Cresset. Ask distributed.is_available() first, which says False."
    )
