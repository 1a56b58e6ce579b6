"""PyTorch's choice among fusers of scripts. Here native code (docs/design/script.md) has one form, so the choice changes nothing."""

import contextlib

__all__ = ["fuser"]

_NAMES = ("fuser0", "fuser1", "fuser2", "fuser3", "none")


@contextlib.contextmanager
def fuser(name):
    """A context in which PyTorch would fuse by this fuser: "fuser0" to "fuser3", or "none". Results are the same; Exception for another name."""
    if name not in _NAMES:
        raise Exception(f"unrecognized fuser option (name: {name})")
    yield
