"""Submodules as attributes: `import torch` loads most of PyTorch's, and programs reach them without importing them. Here they are loaded when asked for."""

import importlib
import importlib.util

__all__ = ["submodule"]


def submodule(package, name):
    """The submodule of that name, loaded now; AttributeError where there is none. For `__getattr__` of packages."""
    if not name.startswith("__") and importlib.util.find_spec(f"{package}.{name}"):
        return importlib.import_module(f"{package}.{name}")
    raise AttributeError(f"module {package!r} has no attribute {name!r}")
