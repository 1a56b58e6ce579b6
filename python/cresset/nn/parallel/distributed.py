"""DistributedDataParallel, under the module name that libraries use."""

from cresset.nn.modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """A name for isinstance(): processes do not communicate in Cresset, so there is no process group to make one for."""

    def __init__(self, module, *args, **kwargs):
        raise ValueError("Default process group has not been initialized: communication between processes is not part of Cresset.")
