"""Modules over several devices of one process: the batch in parts, a copy of the module on each device, the results joined."""

from cresset.nn.parallel.data_parallel import DataParallel, data_parallel
from cresset.nn.parallel.distributed import DistributedDataParallel
from cresset.nn.parallel.parallel_apply import parallel_apply
from cresset.nn.parallel.replicate import replicate
from cresset.nn.parallel.scatter_gather import gather, scatter

__all__ = ["replicate", "scatter", "parallel_apply", "gather", "data_parallel", "DataParallel", "DistributedDataParallel"]
