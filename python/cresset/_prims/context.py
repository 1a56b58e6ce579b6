"""The mode in which functions of the package are those of `_refs`."""

import contextlib

from cresset.overrides import TorchFunctionMode

__all__ = ["TorchRefsMode"]


class TorchRefsMode(TorchFunctionMode):
    """A block in which functions of the package run as those of `_refs`. These are the operators themselves here: every function has one, and the block
    leaves calls as they are, within `prims_mode_cls`."""

    def __init__(self, strict=False, should_fallback_fn=lambda *_: False, prims_mode_cls=contextlib.nullcontext):
        self.strict, self.should_fallback_fn, self.prims_mode_cls = strict, should_fallback_fn, prims_mode_cls

    def __torch_function__(self, func, types, args=(), kwargs=None):
        with self.prims_mode_cls():
            return func(*args, **(kwargs or {}))
