"""What indices and values of sparse tensors have to satisfy."""

from .. import _C
from .._dtype_info import word_of

__all__ = ["check_compressed", "check_coordinates"]

_COMPRESSED = {  # layout: (name of the pointers, name of the others, whether rows are compressed, whether its elements are blocks)
    _C.sparse_csr: ("crow_indices", "col_indices", True, False), _C.sparse_csc: ("ccol_indices", "row_indices", False, False),
    _C.sparse_bsr: ("crow_indices", "col_indices", True, True), _C.sparse_bsc: ("ccol_indices", "row_indices", False, True),
}  # fmt: skip


def _require(holds, text):
    if not holds:
        raise RuntimeError(text)


def check_compressed(plain, other, values, size, layout):
    """RuntimeError, with the condition that does not hold, unless these are the parts of a tensor with a compressed layout."""
    if layout not in _COMPRESSED:
        kind = str(layout).rpartition(".")[2].capitalize()
        raise RuntimeError(f"validate_sparse_compressed_tensor_args expected sparse compressed tensor layout but got {kind}")
    first, second, by_row, blocks = _COMPRESSED[layout]
    _require(plain.dim() == other.dim(), f"{first} and {second} dimensionalities must be equal but got {plain.dim()} and {other.dim()}, respectively")
    batch = plain.dim() - 1
    _require(batch >= 0, f"{first} must have dimensionality >= 1 but got 0")
    dense = values.dim() - batch - (3 if blocks else 1)
    _require(dense >= 0, f"values must have dimensionality > sum of batch and block dimensionalities (={batch} + {2 * blocks}) but got {values.dim()}")
    _require(
        len(size) == batch + 2 + dense,
        f"tensor dimensionality must be sum of batch, base, and dense dimensionalities (={batch} + 2 + {dense}) but got {len(size)}",
    )
    block = tuple(values.shape[batch + 1 : batch + 3]) if blocks else (1, 1)
    for i in (0, 1):
        _require(
            size[batch + i] % block[i] == 0 if block[i] else True,
            f"tensor shape[{batch + i}] (={size[batch + i]}) must be divisible with blocksize[{i}] (={block[i]}) as defined by values shape",
        )
    rows, columns = (size[batch + i] // (block[i] or 1) for i in (0, 1))
    lines, places = (rows, columns) if by_row else (columns, rows)
    what, count_of = ("rows", "ncols") if by_row else ("columns", "nrows")
    _require(plain.shape[-1] == lines + 1, f"{first}.shape[-1] must be equal to the number of {what} + 1 (={lines + 1}), but got {plain.shape[-1]}")
    nnz = values.shape[batch]
    _require(other.shape[-1] == nnz, f"{second}.shape[-1] must be equal to nnz (={nnz}) as defined by values.shape[{batch}], but got {other.shape[-1]}")
    _require(
        plain.dtype == other.dtype, f"{first} and {second} must have the same dtype, bot got {word_of(plain.dtype)} and {word_of(other.dtype)}, respectively"
    )
    _require(plain.dtype in (_C.int32, _C.int64), f"{first} and {second} dtype must be Int or Long, but got {word_of(plain.dtype)}")
    steps = plain[..., 1:] - plain[..., :-1]
    _require(bool((plain[..., 0] == 0).all()), f"`{first}[..., 0] == 0` is not satisfied.")
    _require(bool((plain[..., -1] == nnz).all()), f"`{first}[..., -1] == nnz` is not satisfied.")
    _require(bool(((steps >= 0) & (steps <= places)).all()), f"`0 <= {first}[..., 1:] - {first}[..., :-1] <= {count_of}` is not satisfied.")
    _require(bool(((other >= 0) & (other < places)).all()), f"`0 <= {second} < {count_of}` is not satisfied.")
    lines_name = "nrows" if by_row else "ncols"
    for starts, indices in zip(plain.reshape(-1, plain.shape[-1]).tolist(), other.reshape(-1, nnz) if nnz else (), strict=False):
        rising = indices[1:] > indices[:-1]
        within = [i for i in starts[1:-1] if 0 < i < nnz]  # where a line begins, indices may fall
        if within:
            rising[[i - 1 for i in within]] = True
        _require(
            bool(rising.all()),
            f"`{second}[..., {first}[..., i - 1]:{first}[..., i]] for all i = 1, ..., {lines_name} are sorted and distinct along the last dimension "
            "values` is not satisfied.",
        )


def _validate_compressed_sparse_indices(is_crow, compressed_idx, plain_idx, cdim, dim, nnz):
    """`torch._validate_compressed_sparse_indices`: RuntimeError unless these are the indices of `nnz` elements in `cdim` lines with `dim` places each."""
    batch = compressed_idx.shape[:-1]
    size = (*batch, cdim, dim) if is_crow else (*batch, dim, cdim)
    check_compressed(compressed_idx, plain_idx, plain_idx.new_empty((*batch, nnz)), size, _C.sparse_csr if is_crow else _C.sparse_csc)


def check_coordinates(indices, size, is_coalesced=None):
    """RuntimeError unless every index is in range, and, for a tensor that is said to be coalesced, they are sorted and distinct."""
    for dim, row in enumerate(indices):
        if row.numel() and int(row.min()) < 0:
            raise RuntimeError(f"found negative index {int(row.min())} for dim {dim}")
        if row.numel() and int(row.max()) >= size[dim]:
            raise RuntimeError(f"size is inconsistent with indices: for dim {dim}, size is {size[dim]} but found index {int(row.max())}")
    if is_coalesced:
        key = indices.new_zeros(indices.shape[1])
        for row, length in zip(indices, size, strict=False):
            key = key * length + row
        _require(bool((key[1:] > key[:-1]).all()), "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor")
