"""Names of PyTorch's inner utilities that libraries import."""

import os

__all__ = ["justknobs_check", "justknobs_getval_int", "resolve_library_path", "signpost_event"]


def resolve_library_path(path):
    """The path of a library without links and dots."""
    return os.path.realpath(path)


def justknobs_check(name, default=True):
    """Is a switch of that name on? There is no store of switches: `default`."""
    return default


def justknobs_getval_int(name):
    """The number behind a switch: 0."""
    return 0


def signpost_event(category, name, parameters):
    """Where a program reports an event: nobody listens."""
