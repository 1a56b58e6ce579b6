"""Which optional packages are installed."""

import functools
import importlib.util

__all__ = ["dill_available", "import_dill"]


def _check_module_exists(name):
    """Is there a module of this name? It is not imported."""
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


@functools.cache
def dill_available():
    """Is the package dill installed?"""
    return _check_module_exists("dill")


@functools.cache
def import_dill():
    """The module dill, None where it is not installed. Its import leaves pickle's behaviour as it was."""
    if not dill_available():
        return None
    import dill

    dill.extend(use_dill=False)
    return dill
