"""Layers whose activations and weights are quantized."""

from . import dynamic, functional, modules  # noqa: F401
from .modules import MaxPool2d  # noqa: F401

__all__ = list(modules.__all__)
globals().update({name: getattr(modules, name) for name in __all__ if name not in modules._LATER})


def __getattr__(name):
    if name in modules._LATER:
        return getattr(modules, name)
    if name == "reference":
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *__all__, "dynamic", "functional", "reference"})
