"""`no_grad`, `enable_grad` and the profiler's `record_function` as classes of scripts."""

from typing import Any, Optional

import cresset
from cresset import _C


class no_grad:
    def __init__(self):
        self.before = True

    def __enter__(self):
        self.before = cresset.is_grad_enabled()
        _C._set_grad_enabled(False)

    def __exit__(self, type: Any, value: Any, traceback: Any):
        _C._set_grad_enabled(self.before)


class enable_grad:
    def __init__(self):
        self.before = True

    def __enter__(self):
        self.before = cresset.is_grad_enabled()
        _C._set_grad_enabled(True)

    def __exit__(self, type: Any, value: Any, traceback: Any):
        _C._set_grad_enabled(self.before)


class record_function:
    def __init__(self, name: str, args: Optional[str] = None):
        self.name = name
        self.args = args
        self.range = cresset.zeros(1)

    def __enter__(self):
        self.range = cresset.ops.profiler._record_function_enter(self.name, self.args)

    def __exit__(self, type: Any, value: Any, traceback: Any):
        cresset.ops.profiler._record_function_exit(self.range)
