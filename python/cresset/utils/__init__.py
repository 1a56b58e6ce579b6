"""Data loading, checkpoints and hooks. `utils.data` and `utils.checkpoint` are imported on first use."""

import importlib

from .._devices import generate_methods_for_privateuse1_backend, rename_privateuse1_backend  # noqa: F401
from . import hooks  # noqa: F401


def __getattr__(name):
    if name in ("data", "checkpoint"):
        return importlib.import_module(f"cresset.utils.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
