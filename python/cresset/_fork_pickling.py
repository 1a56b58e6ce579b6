"""Tensors that Python's multiprocessing sends are shared, also where a program never names cresset.multiprocessing.

multiprocessing is not imported for this: its pickler learns of tensors when a program imports it.
"""

import importlib
import importlib.machinery
import sys

__all__ = ["register"]

_reducers = {}  # name of a function of cresset.multiprocessing.reductions, by class
_MODULE = "multiprocessing.reduction"


def _teach(module, kind):
    def reduce(value):
        return getattr(importlib.import_module("cresset.multiprocessing.reductions"), _reducers[kind])(value)

    module.ForkingPickler.register(kind, reduce)


class _Finder:
    """Finds the module of the pickler once, as others would."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != _MODULE:
            return None
        sys.meta_path.remove(cls)
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def exec_module(module):
                run(module)
                for kind in _reducers:
                    _teach(module, kind)

            spec.loader.exec_module = exec_module
        return spec


def register(kind, reducer):
    """Objects of exactly this class are pickled for other processes by that function of cresset.multiprocessing.reductions."""
    if not _reducers and _MODULE not in sys.modules:
        sys.meta_path.insert(0, _Finder)
    _reducers[kind] = reducer
    if hasattr(sys.modules.get(_MODULE), "ForkingPickler"):
        _teach(sys.modules[_MODULE], kind)
