"""Tracing below the functions of the package (proxy_tensor), and other things whose interface may change."""

from functools import partial as _partial

from cresset._submodules import submodule as _submodule

__getattr__ = _partial(_submodule, __name__)
