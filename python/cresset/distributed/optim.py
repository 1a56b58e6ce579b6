"""Optimizers over several processes: types that programs compare with, and that say without a process group that there is none."""

import cresset

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(cresset.optim.Optimizer):
    """An optimizer whose state is divided among processes. ValueError from the constructor: there is no process group."""

    def __init__(self, params, optimizer_class, process_group=None, parameters_as_bucket_view=False, overlap_with_ddp=False, **defaults):
        from cresset import distributed

        if distributed.is_initialized():
            raise NotImplementedError("ZeroRedundancyOptimizer is not part of Cresset yet: use the optimizer itself on every rank.")
        raise ValueError("Default process group has not been initialized, please make sure to call init_process_group.")
