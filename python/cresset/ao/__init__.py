"""Quantization (`ao.quantization`), the layers it needs (`ao.nn`), comparisons of models before and after (`ao.ns`), and sparsity (`ao.pruning`)."""

import importlib as _importlib

__all__ = ["nn", "ns", "pruning", "quantization"]


def __getattr__(name):
    if name in __all__:
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
