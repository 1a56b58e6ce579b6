"""Layers for quantization: fused ones (`intrinsic`), those that are trained to be quantized (`qat`), those that can be (`quantizable`), those that
are (`quantized`), and those of them with blocks of zeros (`sparse`)."""

import importlib as _importlib

__all__ = ["intrinsic", "qat", "quantizable", "quantized", "sparse"]


def __getattr__(name):
    if name in __all__:
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
