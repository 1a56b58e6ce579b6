"""DistributedSampler: each of several processes visits its own part of a dataset."""

import math
import sys

import cresset

from .sampler import Sampler

__all__ = ["DistributedSampler"]


def _get_distributed_settings():
    """Size and rank of the default process group; 1 and 0 without one."""
    distributed = sys.modules.get("cresset.distributed")
    if distributed is None or not (distributed.is_available() and distributed.is_initialized()):
        return 1, 0
    return distributed.get_world_size(), distributed.get_rank()


class DistributedSampler(Sampler):
    """Indices rank, rank + num_replicas, … of the dataset, shuffled by `seed` plus the epoch of set_epoch.

    Each process gets as many: without `drop_last` the first indices come again at the end, with it the last are left out. What is not given of
    `num_replicas` and `rank` comes from the process group; RuntimeError where there is none, ValueError for a rank out of range.
    """

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False):
        if num_replicas is None or rank is None:
            group = cresset.distributed
            if not group.is_available():
                raise RuntimeError("Requires distributed package to be available")
            num_replicas = group.get_world_size() if num_replicas is None else num_replicas
            rank = group.get_rank() if rank is None else rank
        if rank >= num_replicas or rank < 0:
            raise ValueError(f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]")
        self.dataset, self.num_replicas, self.rank, self.epoch = dataset, num_replicas, rank, 0
        self.drop_last, self.shuffle, self.seed = drop_last, shuffle, seed
        n = len(dataset)
        if drop_last and n % num_replicas != 0:
            n -= num_replicas - 1
        self.num_samples = math.ceil(n / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self):
        n = len(self.dataset)
        if self.shuffle:
            generator = cresset.Generator()
            generator.manual_seed(self.seed + self.epoch)
            indices = cresset.randperm(n, generator=generator).tolist()
        else:
            indices = list(range(n))
        if self.drop_last:
            indices = indices[: self.total_size]
        elif indices:
            indices = (indices * math.ceil(self.total_size / n))[: self.total_size]
        return iter(indices[self.rank : self.total_size : self.num_replicas])

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch):
        """Shuffle differently in this epoch; all processes have to say the same one."""
        self.epoch = epoch
