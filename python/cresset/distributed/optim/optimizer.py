"""Optimizers of parameters that other processes own need distributed.rpc, which is not part of Cresset."""

__all__ = ["DistributedOptimizer"]


class DistributedOptimizer:
    """NotImplementedError from the constructor."""

    def __init__(self, optimizer_class, params_rref, *args, **kwargs):
        raise NotImplementedError("DistributedOptimizer needs distributed.rpc, which is not part of Cresset. Use ZeroRedundancyOptimizer, or an optimizer on each rank.")
