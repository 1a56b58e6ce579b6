"""Masks the rows nearest to all others (arXiv 1811.00250)."""

import cresset

from .base_structured_sparsifier import BaseStructuredSparsifier

__all__ = ["FPGMPruner"]


class FPGMPruner(BaseStructuredSparsifier):
    """The fraction `sparsity_level` of the rows (filters), those with the smallest sum of distances to the others, is masked.

    `dist` is 1 or 2 (None, too), the norm, or a function that gives the distances of all rows of a matrix.
    """

    def __init__(self, sparsity_level=0.5, dist=None):
        if dist is None:
            dist = 2
        if callable(dist):
            self.dist_fn = dist
        elif dist in (1, 2):
            self.dist_fn = lambda t: cresset.cdist(t, t, p=dist)
        else:
            raise NotImplementedError("Distance function is not yet implemented.")
        super().__init__(defaults={"sparsity_level": sparsity_level})

    def _compute_distance(self, t):
        """The sum of each row's distances to all rows."""
        return cresset.abs(self.dist_fn(t.flatten(1))).sum(1)

    def update_mask(self, module, tensor_name, sparsity_level, **kwargs):
        mask = getattr(module.parametrizations, tensor_name)[0].mask
        if sparsity_level <= 0:
            mask.data = cresset.ones_like(mask)
        elif sparsity_level >= 1.0:
            mask.data = cresset.zeros_like(mask)
        else:
            distance = self._compute_distance(getattr(module, tensor_name))
            count = max(0, min(round(sparsity_level * len(distance)), len(distance)))
            made = cresset.ones_like(mask)
            made[cresset.topk(distance, k=count, largest=False).indices] = False
            mask.data = made
