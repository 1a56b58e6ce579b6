"""Where PyTorch keeps its operators that take functions or other operators: those of them that programs import."""

from functools import partial as _partial

from cresset._submodules import submodule as _submodule

# Functions that have the names of their modules, which are loaded here so that no later import puts a module in the place of a function.
from .associative_scan import associative_scan
from .cond import cond
from .map import map
from .scan import scan
from .while_loop import while_loop

__all__ = ["associative_scan", "cond", "map", "scan", "while_loop"]

__getattr__ = _partial(_submodule, __name__)
