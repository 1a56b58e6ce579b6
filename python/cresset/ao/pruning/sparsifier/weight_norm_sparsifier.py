"""Zeroes the blocks of weights that have the smallest norms."""

import cresset

from .. import _blocks
from .base_sparsifier import BaseSparsifier

__all__ = ["WeightNormSparsifier"]


class WeightNormSparsifier(BaseSparsifier):
    """The fraction `sparsity_level` of the blocks, those of smallest norm, becomes zero.

    `sparse_block_shape` is (rows, columns) of a block; blocks begin at the first element. Of each block `zeros_per_block` elements become zero, those of smallest
    norm; None means all. `norm` is 1, 2 (None, too) or a function of the weights.
    """

    def __init__(self, sparsity_level=0.5, sparse_block_shape=(1, 4), zeros_per_block=None, norm=None):
        if zeros_per_block is None:
            zeros_per_block = sparse_block_shape[0] * sparse_block_shape[1]
        if norm is None:
            norm = 2
        if callable(norm):
            self.norm_fn = norm
        elif norm == 1:
            self.norm_fn = lambda t: t.abs()
        elif norm == 2:
            self.norm_fn = lambda t: t * t
        else:
            raise NotImplementedError(f"L-{norm} is not yet implemented.")
        super().__init__(defaults={"sparsity_level": sparsity_level, "sparse_block_shape": sparse_block_shape, "zeros_per_block": zeros_per_block})

    def _make_tensor_mask(self, data, input_shape, sparsity_level, sparse_block_shape, mask=None):
        """The mask that zeroes whole blocks; one block stays at every level below 1."""
        if sparsity_level <= 0 or sparsity_level >= 1.0:
            made = cresset.full(input_shape, float(sparsity_level <= 0), device=data.device)
        else:
            blocks = _blocks.means(data, sparse_block_shape)
            count = max(0, min(round(sparsity_level * blocks.numel()), blocks.numel() - 1))
            lowest = cresset.topk(blocks.flatten(), k=count, largest=False, sorted=False).indices
            made = _blocks.spread(_blocks.zeros_at((blocks.numel(),), lowest).view(blocks.shape), input_shape, sparse_block_shape)
        return made if mask is None else mask.copy_(made)

    def _make_block_mask(self, data, sparse_block_shape, zeros_per_block, mask=None):
        """The mask that zeroes so many elements of every block."""
        blocks = _blocks.split(data, sparse_block_shape)
        lowest = cresset.topk(blocks, k=zeros_per_block, dim=-1, largest=False, sorted=False).indices
        made = _blocks.join(_blocks.zeros_at(blocks.shape, lowest), data.shape, sparse_block_shape)
        return made if mask is None else mask.copy_(made)

    def update_mask(self, module, tensor_name, sparsity_level, sparse_block_shape, zeros_per_block, **kwargs):
        size = _blocks.check_zeros(zeros_per_block, sparse_block_shape)
        mask = getattr(module.parametrizations, tensor_name)[0].mask
        if sparsity_level <= 0 or zeros_per_block == 0:
            mask.data = cresset.ones_like(mask)
        elif sparsity_level >= 1.0 and zeros_per_block == size:
            mask.data = cresset.zeros_like(mask)
        else:
            norms = self.norm_fn(getattr(module, tensor_name))
            made = self._make_tensor_mask(norms, norms.shape, sparsity_level, sparse_block_shape)
            if zeros_per_block != size:
                made = cresset.logical_or(made, self._make_block_mask(norms, sparse_block_shape, zeros_per_block))
            mask.data = made
