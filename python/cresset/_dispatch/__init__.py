"""Dispatch to kernels written in Python; see `python`."""

from functools import partial as _partial

from cresset._submodules import submodule as _submodule

__getattr__ = _partial(_submodule, __name__)
