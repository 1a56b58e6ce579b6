"""Sparse tensors of given sizes: entries repeated along dimensions, and room for entries."""

import cresset

from .. import _C
from ._tensor import Compressed, Coordinates

__all__ = ["_sparse_broadcast_to", "_sparse_compressed_tensor_with_dims"]


def _sparse_broadcast_to(input, size):
    """A sparse COO tensor in which dimensions of size 1, and new ones in front, have the given sizes: each entry once for each place. No gradients.

    RuntimeError for other sizes, NotImplementedError for other tensors.
    """
    if not isinstance(input, Coordinates):
        backend = "SparseCsrCPU" if isinstance(input, Compressed) else "CPU"
        raise NotImplementedError(f"Could not run 'aten::_sparse_broadcast_to' with arguments from the '{backend}' backend: a sparse COO tensor was required.")
    size, old = list(size), list(input.shape)
    more = len(size) - len(old)
    if more < 0:
        raise RuntimeError("the requested broadcast shape has fewer dimensions than the input")
    for d, s in enumerate(old):
        if s not in (1, size[more + d]):
            raise RuntimeError(
                f"The input's length {s} at dimension {d} does not broadcast over the requested shape of length {size[more + d]} at dimension {more + d}"
            )
    count = more + input.sparse_dim()
    repeated = [d for d in range(count) if d < more or old[d - more] != size[d]]
    places = cresset.cartesian_prod(*(cresset.arange(size[d]) for d in repeated)).reshape(-1, len(repeated)) if repeated else cresset.zeros(1, 0)
    times, entries = places.shape[0], input._nnz()
    rows = [
        places[:, repeated.index(d)].repeat(entries) if d in repeated else input._i[d - more].repeat_interleave(times) for d in range(count)
    ]  # fmt: skip
    values = input._v.repeat_interleave(times, 0)
    indices = cresset.stack(rows) if rows else input._i
    kept = [d for d in range(count) if d not in repeated]
    ordered = input._ordered and (entries < 2 or not repeated or not kept or max(kept) < min(repeated))
    return Coordinates(indices, values.expand(values.shape[0], *size[count:]), size, ordered)


def _sparse_compressed_tensor_with_dims(nnz, dense_dim, size, blocksize, index_dtype, *, dtype=None, layout=None, device=None, pin_memory=False):
    """A sparse CSR, CSC, BSR or BSC tensor with room for `nnz` entries (or blocks) in each batch; what they are is for the caller to fill in."""
    layouts = {_C.sparse_csr: 0, _C.sparse_bsr: 0, _C.sparse_csc: 1, _C.sparse_bsc: 1}
    if layout not in layouts:
        raise RuntimeError(f"_sparse_compressed_tensor_with_dims: a sparse compressed layout was required; got {layout}.")
    size, block = list(size), list(blocksize) or [1, 1]
    batch = size[: len(size) - dense_dim - 2]
    matrix, dense = size[len(batch) : len(batch) + 2], size[len(batch) + 2 :]
    along = layouts[layout]
    pointers = cresset.zeros(*batch, matrix[along] // block[along] + 1, dtype=index_dtype, device=device)
    others = cresset.zeros(*batch, nnz, dtype=index_dtype, device=device)
    values = cresset.empty(*batch, nnz, *blocksize, *dense, dtype=dtype, device=device, pin_memory=bool(pin_memory))
    return Compressed(pointers, others, values, size, layout)
