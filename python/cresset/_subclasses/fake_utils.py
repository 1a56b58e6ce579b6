"""CrossRefFakeMode: operators on fake tensors beside the same on real ones."""

from cresset._library.opcheck import test_faketensor
from cresset.utils._python_dispatch import TorchDispatchMode


__all__ = ["CrossRefFakeMode"]


class CrossRefFakeMode(TorchDispatchMode):
    """For a block: each operator runs on fake tensors too. RuntimeError where sizes, strides, dtypes or devices of the results differ.

    ignore_op_fn(operator) says which are left alone; with only_check_ops_with_meta (the default) also those without a kernel for fake tensors.
    """

    def __init__(self, ignore_op_fn=None, *, check_strides=True, check_aliasing=True, only_check_ops_with_meta=True):
        super().__init__()
        self._ignored = ignore_op_fn or (lambda op: False)
        self._check_strides, self._checks_missing = check_strides, not only_check_ops_with_meta

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not self._ignored(func) and (self._checks_missing or _has_fake(func)):
            test_faketensor(func, args, kwargs, check_strides=self._check_strides)
        return func(*args, **kwargs)


def _has_fake(op):
    return any(op.has_kernel_for_dispatch_key(key) for key in ("Meta", "CompositeImplicitAutograd", "CompositeExplicitAutograd"))
