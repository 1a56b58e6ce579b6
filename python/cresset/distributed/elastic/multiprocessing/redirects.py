"""Standard streams of this process, also those of C and of programs it starts, into a file for a while."""

import ctypes
import os
import sys
from contextlib import contextmanager
from functools import partial

__all__ = ["redirect", "redirect_stderr", "redirect_stdout"]


def _flush(name):
    ctypes.CDLL(None).fflush(None)
    getattr(sys, name).flush()


@contextmanager
def redirect(std, to_file):
    """`std` is "stdout" or "stderr" (ValueError otherwise); what is written inside goes to the file."""
    if std not in ("stdout", "stderr"):
        raise ValueError(f"unknown standard stream <{std}>, must be one of stdout or stderr")
    number = 1 if std == "stdout" else 2
    kept = os.dup(number)
    try:
        with open(to_file, "wb") as file:
            _flush(std)
            os.dup2(file.fileno(), number)
        # Python's own object may be another one than the descriptor's.
        before = getattr(sys, std)
        own = os.fdopen(os.dup(number), "w", buffering=1)
        setattr(sys, std, own)
        try:
            yield
        finally:
            _flush(std)
            setattr(sys, std, before)
            own.close()
    finally:
        ctypes.CDLL(None).fflush(None)
        os.dup2(kept, number)
        os.close(kept)


redirect_stdout = partial(redirect, "stdout")
redirect_stderr = partial(redirect, "stderr")
