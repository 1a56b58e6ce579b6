"""Modules over several devices, as far as there is one: DataParallel passes through."""

from cresset.nn.modules.module import Module
from cresset.nn.modules.parallel import DataParallel

__all__ = ["DataParallel", "DistributedDataParallel", "data_parallel"]


class DistributedDataParallel(Module):
    """A name for isinstance(): processes do not communicate in Cresset, so there is no process group to make one for."""

    def __init__(self, module, *args, **kwargs):
        raise ValueError("Default process group has not been initialized: communication between processes is not part of Cresset.")


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """`module(*inputs, **module_kwargs)` on its one device; RuntimeError when several devices are asked for."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*inputs, **(module_kwargs or {}))
