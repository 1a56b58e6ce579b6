"""CrossRefFakeMode: operators on fake tensors beside the same on real ones."""

from cresset._library.opcheck import test_faketensor
from cresset.utils._python_dispatch import TorchDispatchMode


__all__ = ["CrossRefFakeMode"]


class CrossRefFakeMode(TorchDispatchMode):
    """For a block: each operator runs on fake tensors too. RuntimeError where sizes, strides, dtypes or devices of the results differ,
    NotImplementedError for one that has no kernel for them. ignore_op_fn(operator) says which are left alone.
    """

    def __init__(self, ignore_op_fn=None, *, check_strides=True):
        super().__init__()
        self._ignored = ignore_op_fn or (lambda op: False)
        self._check_strides = check_strides

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not self._ignored(func):
            test_faketensor(func, args, kwargs, check_strides=self._check_strides)
        return func(*args, **kwargs)
