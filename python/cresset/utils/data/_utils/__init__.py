"""Parts of data loading that have a name of their own."""

import atexit
import importlib.util
import sys

from . import collate, fetch, pin_memory, signal_handling, worker  # noqa: F401

MP_STATUS_CHECK_INTERVAL = 5.0  # seconds after which a waiting process looks whether the other one lives
IS_WINDOWS = sys.platform == "win32"
python_exit_status = False  # True when the interpreter ends: a loader that is deleted then leaves its workers alone


def _set_python_exit_flag():
    global python_exit_status
    python_exit_status = True


atexit.register(_set_python_exit_flag)


def __getattr__(name):
    if name == "HAS_NUMPY":
        return importlib.util.find_spec("numpy") is not None
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
