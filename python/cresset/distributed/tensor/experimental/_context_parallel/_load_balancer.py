"""In which order a sequence is cut among ranks, so that causal attention costs all of them the same."""

from abc import ABC, abstractmethod

import cresset

__all__ = []


class _LoadBalancer(ABC):
    """An order of the positions of a sequence, of which rank r of n gets the r-th of n equal parts."""

    @abstractmethod
    def _generate_indices(self, restore=False):
        """Positions in their new order, of shape (1, length); with `restore` the permutation that undoes it."""


class _HeadTailLoadBalancer(_LoadBalancer):
    """Rank r of n gets the parts r and 2n - 1 - r of 2n. ValueError where the length has no 2n equal parts."""

    def __init__(self, seq_length, world_size, device):
        if seq_length % (2 * world_size):
            raise ValueError(f"context_parallel: a sequence length that is a multiple of {2 * world_size} was required, two parts for each of {world_size} ranks, not {seq_length}.")
        self.seq_length, self.world_size, self.device = seq_length, world_size, device

    def _generate_indices(self, restore=False):
        size = self.world_size
        parts = cresset.arange(self.seq_length, device=self.device).chunk(2 * size)
        order = cresset.cat([part for rank in range(size) for part in (parts[rank], parts[2 * size - 1 - rank])])
        return (order.argsort() if restore else order).unsqueeze(0)
