"""Where PyTorch keeps its operators that take functions or other operators: those of them that programs import."""

from functools import partial as _partial

from cresset._submodules import submodule as _submodule

__getattr__ = _partial(_submodule, __name__)
