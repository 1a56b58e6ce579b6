"""`no_grad` and its relatives as classes of scripts, and small helpers of modules that need another spelling there."""

import cresset
from cresset import Tensor


class no_grad:
    def __init__(self):
        self.before = True

    def __enter__(self):
        self.before = cresset.is_grad_enabled()
        cresset.set_grad_enabled(False)

    def __exit__(self, type: object, value: object, traceback: object):
        cresset.set_grad_enabled(self.before)


class enable_grad:
    def __init__(self):
        self.before = True

    def __enter__(self):
        self.before = cresset.is_grad_enabled()
        cresset.set_grad_enabled(True)

    def __exit__(self, type: object, value: object, traceback: object):
        cresset.set_grad_enabled(self.before)


def is_causal(mask, is_causal, size: int) -> bool:
    raise NotImplementedError


_ = Tensor
