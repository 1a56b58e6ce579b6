"""Data loading, checkpoints and hooks. `utils.data`, `utils.checkpoint`, `utils.dlpack`, `utils.weak` and `utils.backend_registration` are imported on first use."""

import importlib
import os

from .. import _C
from .._submodules import submodule
from .._devices import generate_methods_for_privateuse1_backend, rename_privateuse1_backend  # noqa: F401
from . import hooks  # noqa: F401
from ._swap import swap_tensors  # noqa: F401


def set_module(obj, mod):
    """Say that a function or class belongs to the module of this name; TypeError unless it is a text."""
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def __getattr__(name):
    if name == "ThroughputBenchmark":
        return importlib.import_module("cresset.utils.throughput_benchmark").ThroughputBenchmark
    if name == "cmake_prefix_path":  # where find_package(Cresset) looks, for CMake projects built against this package
        from .. import _build_info

        return os.path.dirname(_build_info.library_dirs[0])
    return submodule(__name__, name)
