"""Masks by blocks of a matrix: which blocks are lowest, and which elements of each block. Blocks begin at the first element; those at the far edges may be smaller."""

import cresset
from cresset.nn import functional as F


def check_zeros(zeros_per_block, sparse_block_shape):
    """The number of elements of a block, with ValueError when there are fewer than the zeros that are wanted."""
    size = sparse_block_shape[0] * sparse_block_shape[1]
    if zeros_per_block > size:
        raise ValueError("Number of zeros per block cannot be more than the total number of elements in that block.")
    if zeros_per_block < 0:
        raise ValueError("Number of zeros per block should be positive.")
    return size


def means(data, sparse_block_shape):
    """The mean of each block, over the elements that it has."""
    return F.avg_pool2d(data[None, None, :], kernel_size=sparse_block_shape, stride=sparse_block_shape, ceil_mode=True)[0, 0]


def spread(blocks, shape, sparse_block_shape):
    """A matrix of `shape` whose elements have the values of their blocks."""
    height, width = sparse_block_shape
    return blocks.repeat_interleave(height, 0).repeat_interleave(width, 1)[: shape[0], : shape[1]]


def split(data, sparse_block_shape):
    """(rows of blocks, columns of blocks, elements of a block), with infinity where the matrix has ended."""
    height, width = sparse_block_shape
    padded = F.pad(data, (0, -data.shape[1] % width, 0, -data.shape[0] % height), value=float("inf"))
    return padded.unflatten(1, (-1, width)).unflatten(0, (-1, height)).transpose(1, 2).flatten(2)


def join(blocks, shape, sparse_block_shape):
    """What `split` splits, of `shape`."""
    return blocks.unflatten(2, sparse_block_shape).transpose(1, 2).flatten(2).flatten(0, 1)[: shape[0], : shape[1]]


def zeros_at(shape, indices, dtype=cresset.float32):
    """Ones, with zeros at the indices along the last dimension."""
    return cresset.ones(shape, dtype=dtype, device=indices.device).scatter(-1, indices, 0)
