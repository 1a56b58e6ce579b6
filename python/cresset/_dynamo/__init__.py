"""What libraries ask of PyTorch's compiler of Python code under this name; see `cresset.compiler`. Python code runs as it is."""

import importlib as _importlib

import cresset as _cresset
from cresset.compiler import allow_in_graph, assume_constant_result, disable, is_compiling, list_backends, reset, set_stance  # noqa: F401


class OptimizedModule(_cresset.nn.Module):
    """The class of compiled modules, for isinstance(): none is made."""


def __getattr__(name):
    if name in ("utils", "config", "eval_frame", "exc"):
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def graph_break(msg=""):
    """A place where a compiler would stop: nothing is compiled, so nothing stops."""


def optimize(*args, **kwargs):
    """A decorator that gives the function itself."""
    return lambda fn: fn


def run(fn=None):
    """The function itself."""
    return fn


def disallow_in_graph(fn):
    """The function itself."""
    return fn


forbid_in_graph = disallow_in_graph


def mark_dynamic(t, index, **kwargs):
    """A dimension whose size may change: all may, since nothing is compiled for sizes."""


maybe_mark_dynamic = mark_static = mark_static_address = mark_dynamic
