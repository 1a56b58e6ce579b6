"""PyTorch's module of functions that are made of several operators; all of them are functions of `cresset`, too."""

from . import (
    atleast_1d, atleast_2d, atleast_3d, block_diag, broadcast_shapes, broadcast_tensors, cartesian_prod, cdist, chain_matmul, einsum, istft,
    lu, meshgrid, norm, pca_lowrank, split, stft, svd_lowrank, tensordot, unique, unique_consecutive, unravel_index,
)  # fmt: skip
from .nn import functional as F  # noqa: F401, N812  where PyTorch has it

__all__ = [
    "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes", "broadcast_tensors", "cartesian_prod", "cdist",
    "chain_matmul", "einsum", "istft", "lu", "meshgrid", "norm", "pca_lowrank", "split", "stft", "svd_lowrank", "tensordot", "unique",
    "unique_consecutive", "unravel_index",
]  # fmt: skip
