"""Passes over graphs: each a module of its own, loaded on first use."""

from cresset._submodules import submodule


def __getattr__(name):
    return submodule(__name__, name)
