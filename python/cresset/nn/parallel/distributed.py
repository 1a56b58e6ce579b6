"""DistributedDataParallel, under the module name that libraries use."""

from cresset._hints import with_hint
from cresset.nn.modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """A name for isinstance(): processes do not communicate in Cresset, so there is no process group to make one for."""

    def __init__(self, module, *args, **kwargs):
        error = ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
        raise with_hint(error, "Communication between processes is not part of Cresset.")
