"""DistributedDataParallel, under the module name that libraries use."""

from cresset._hints import with_hint
from cresset.nn.modules.module import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """A name for isinstance(): it is not part of Cresset yet. ValueError without a process group, NotImplementedError with one."""

    def __init__(self, module, *args, **kwargs):
        from cresset import distributed

        if distributed.is_initialized():
            raise NotImplementedError(
                "DistributedDataParallel is not part of Cresset yet. Average the gradients after backward(): "
                "distributed.all_reduce(p.grad, distributed.ReduceOp.AVG) for each parameter."
            )
        error = ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
        raise with_hint(error, "DistributedDataParallel is not part of Cresset yet.")
