"""Quantization after training: `ao.quantization.quantize_dynamic`, and the layers it puts into a module (`ao.nn.quantized.dynamic`)."""

import importlib as _importlib

__all__ = ["nn", "quantization"]


def __getattr__(name):
    if name in __all__:
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}: of ao there is dynamic quantization of Linear and of recurrent layers.")
