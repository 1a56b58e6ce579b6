"""Zeroes the blocks of data that have the smallest norms."""

import cresset

from ... import _blocks
from .base_data_sparsifier import BaseDataSparsifier

__all__ = ["DataNormSparsifier"]


class DataNormSparsifier(BaseDataSparsifier):
    """The fraction `sparsity_level` of the blocks, those of smallest norm, becomes zero.

    `sparse_block_shape` is (rows, columns) of a block; blocks begin at the first element. Of each block `zeros_per_block` elements become zero, those of smallest
    norm; None means all. `norm` is "L1" or "L2". Masks have elements of eight bits.
    """

    def __init__(self, data_list=None, sparsity_level=0.5, sparse_block_shape=(1, 4), zeros_per_block=None, norm="L1"):
        if zeros_per_block is None:
            zeros_per_block = sparse_block_shape[0] * sparse_block_shape[1]
        if norm not in ("L1", "L2"):
            raise AssertionError("only L1 and L2 norm supported at the moment")
        self.norm = norm
        super().__init__(data_list=data_list, sparsity_level=sparsity_level, sparse_block_shape=sparse_block_shape, zeros_per_block=zeros_per_block)

    def update_mask(self, name, data, sparsity_level, sparse_block_shape, zeros_per_block, **kwargs):
        size = _blocks.check_zeros(zeros_per_block, sparse_block_shape)
        if data.dim() > 2:
            raise ValueError("only supports 2-D at the moment")
        mask = self.get_mask(name)
        if sparsity_level <= 0 or zeros_per_block == 0:
            mask.data = cresset.ones_like(mask, dtype=cresset.int8)
            return
        if sparsity_level >= 1.0 and zeros_per_block == size:
            mask.data = cresset.zeros_like(mask, dtype=cresset.int8)
            return
        norms = data.abs() if self.norm == "L1" else data * data
        if norms.dim() < 2:
            norms = norms.reshape(1, -1)
        blocks = _blocks.means(norms, sparse_block_shape)
        count = max(0, min(round(sparsity_level * blocks.numel()), blocks.numel()))
        lowest = cresset.sort(blocks.flatten()).indices[:count]
        made = _blocks.spread(_blocks.zeros_at((blocks.numel(),), lowest, cresset.int8).view(blocks.shape), norms.shape, sparse_block_shape)
        if zeros_per_block != size:
            parts = _blocks.split(norms, sparse_block_shape)
            lowest = cresset.sort(parts, dim=-1).indices[..., :zeros_per_block]
            made = made | _blocks.join(_blocks.zeros_at(parts.shape, lowest, cresset.int8), norms.shape, sparse_block_shape)
        mask.data = made.view(mask.shape)
