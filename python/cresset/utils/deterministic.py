"""What deterministic algorithms mean for new memory.

`fill_uninitialized_memory` (True at first): with use_deterministic_algorithms(True), `empty` and its like, and what `resize_` adds, are filled
with NaN, the largest integer or True. RuntimeError when it is set to something else than a bool.
"""

import sys
import types

from cresset import _C


class _Deterministic(types.ModuleType):
    @property
    def fill_uninitialized_memory(self):
        """Whether new memory is filled in deterministic mode."""
        return _C._get_deterministic_fill_uninitialized_memory()

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode):
        _C._set_deterministic_fill_uninitialized_memory(mode)


sys.modules[__name__].__class__ = _Deterministic
