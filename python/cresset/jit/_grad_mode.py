"""`no_grad` and `enable_grad` as classes of scripts."""

from typing import Any

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
