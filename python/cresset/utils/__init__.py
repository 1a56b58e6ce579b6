"""Data loading and hooks. `utils.data` is imported on first use."""

import importlib

from . import hooks  # noqa: F401


def __getattr__(name):
    if name == "data":
        return importlib.import_module("cresset.utils.data")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
