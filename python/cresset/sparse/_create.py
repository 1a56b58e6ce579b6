"""Making sparse tensors, and turning one layout into another."""

import importlib

import cresset

from .. import _C
from .._recorded import is_fake, recorded, recording
from ._tensor import _COMPRESSED, Compressed, Coordinates, Sparse
from ._validate import check_compressed, check_coordinates

__all__ = ["coalesced", "convert", "dense", "from_dense", "matched", "parts"]


def keys(indices, shape):
    """A number for each column of indices: its place in row-major order."""
    key = cresset.zeros(indices.shape[1], dtype=_C.int64, device=indices.device)
    for row, size in zip(indices, shape):
        key = key * size + row
    return key


def coalesced(sparse):
    """The coalesced tensor, without gradient."""
    if sparse._ordered:
        return sparse
    indices, values = sparse._i, sparse._v
    key = keys(indices, sparse.shape)
    found, inverse = cresset.unique(key, return_inverse=True)
    place = cresset.empty(len(found), dtype=_C.int64).scatter_(0, inverse, cresset.arange(len(key)))
    added = values.new_zeros((len(found), *values.shape[1:]))
    added = added.index_add(0, inverse, values) if values.dtype is not _C.bool else added.index_put((inverse[values.nonzero()[:, 0]],), cresset.tensor(True))
    return Coordinates(indices[:, place], added, sparse.shape, True)


def matched(source, indices, shape):
    """The values of the coordinate tensor `source` at these indices, zeros where it has none."""
    source = coalesced(source)
    have, want = keys(source._i, shape), keys(indices, shape)
    if not len(have):
        return source._v.new_zeros((len(want), *source._v.shape[1:]))
    place = cresset.searchsorted(have, want).clamp_(max=len(have) - 1)
    hit = (have[place] == want).view(-1, *[1] * (source._v.dim() - 1))
    return cresset.where(hit, source._v[place], cresset.zeros((), dtype=source.dtype))


def coordinates(sparse):
    """Any sparse tensor in coordinates, without gradient."""
    if isinstance(sparse, Coordinates):
        return sparse
    if sparse._batch_rank():
        return batched_coordinates(sparse)
    pairs, values = sparse._coordinates(), sparse._v
    rows, cols = sparse.shape[:2]
    if sparse._blocksize():
        height, width = sparse._blocksize()
        inner = cresset.cartesian_prod(cresset.arange(height), cresset.arange(width)).t()
        pairs = (pairs[:, :, None] * cresset.tensor([[[height]], [[width]]]) + inner[:, None, :]).reshape(2, -1)
        values = values.reshape(-1, *values.shape[3:])
    order = keys(pairs, (rows, cols)).argsort(stable=True)
    return Coordinates(pairs[:, order], values[order], sparse.shape, True)


def batched_coordinates(sparse):
    """A batch of compressed matrices in coordinates, without gradient."""
    batch = sparse.shape[: sparse._batch_rank()]
    indices, values = [], []
    for place, matrix in zip(cresset.cartesian_prod(*map(cresset.arange, batch)).reshape(-1, len(batch)), sparse._matrices()):
        coo = coordinates(matrix)
        indices.append(cresset.cat((place[:, None].expand(-1, coo._nnz()), coo._i)))
        values.append(coo._v)
    if not values:
        return Coordinates(cresset.empty(len(batch) + 2, 0, dtype=_C.int64), sparse._v.new_empty((0, *sparse.shape[len(batch) + 2 :])), sparse.shape, True)
    return Coordinates(cresset.cat(indices, 1), cresset.cat(values), sparse.shape, True)


def dense(sparse):
    """Any sparse tensor as a strided one, without gradient."""
    if isinstance(sparse, Compressed) and sparse._batch_rank():
        flat = [dense(matrix) for matrix in sparse._matrices()]
        return cresset.stack(flat).reshape(sparse.shape) if flat else cresset.zeros(sparse.shape, dtype=sparse.dtype)
    sparse = coordinates(sparse)
    if sparse.dtype is _C.complex32:  # index_put does not add them
        return dense(Coordinates(sparse._i, sparse._v.to(_C.complex64), sparse.shape, sparse._ordered)).to(_C.complex32)
    result = cresset.zeros(sparse.shape, dtype=sparse.dtype, device=sparse.device)
    if sparse.sparse_dim() == 0:
        return sparse._v.any(0) if sparse.dtype is _C.bool else result + sparse._v.sum(0, dtype=sparse.dtype)
    if sparse.dtype is _C.bool:
        sparse = coalesced(sparse)
        return result.index_put_(tuple(sparse._i), sparse._v)
    return result.index_put_(tuple(sparse._i), sparse._v, accumulate=True)


def from_dense(tensor, sparse_dim=None):
    """A strided tensor in coordinates: the elements (or rows of the dimensions behind sparse_dim) that are not zero."""
    count = tensor.dim() if sparse_dim is None else sparse_dim
    if not 0 <= count <= tensor.dim():
        raise RuntimeError(f"sparse_dim argument must be in [0,{tensor.dim()}] range, but {count} is given")
    rest = tuple(range(count, tensor.dim()))
    kept = (tensor != 0).any(rest) if rest else tensor != 0
    if count == 0:
        return Coordinates(cresset.zeros(0, 1 if bool((tensor != 0).any()) else 0, dtype=_C.int64), tensor[None] if bool((tensor != 0).any()) else tensor[None][:0], tensor.shape, True)
    indices = kept.nonzero().t().contiguous()
    return Coordinates(indices, tensor[tuple(indices)], tensor.shape, True)


def compress(sparse, layout, blocksize):
    """A matrix in coordinates as one of the compressed layouts."""
    if sparse.dim() - sparse.dense_dim() != 2:
        word = "Sparse" + str(layout).rpartition("_")[2].capitalize()
        raise RuntimeError(f"sparse_coo_to_sparse: conversion from Sparse to {word} for input tensors with sparse_dim()!=2 is not supported")
    by_row, blocks = _COMPRESSED[layout][2:]
    sparse = coalesced(sparse)
    indices, values, shape = sparse._i, sparse._v, sparse.shape[:2]
    if blocks:
        if not blocksize or any(size % step for size, step in zip(shape, blocksize)):
            raise RuntimeError(f"tensor sparse size ({shape[0]}, {shape[1]}) must be divisible by given blocksize ({', '.join(map(str, blocksize or ()))})")
        step = cresset.tensor(blocksize)[:, None]
        shape = [size // step for size, step in zip(shape, blocksize)]
        found, inverse = cresset.unique(keys(indices // step, shape), return_inverse=True)
        filled = values.new_zeros((len(found), *blocksize, *values.shape[1:]))
        values = filled.index_put_((inverse, *(indices % step)), values)
        indices = cresset.stack((found // shape[1], found % shape[1]))
    if not by_row:
        order = (indices[1] * max(shape[0], 1) + indices[0]).argsort()
        indices, values = indices[:, order], values[order]
    major, other = (indices[0], indices[1]) if by_row else (indices[1], indices[0])
    pointers = cresset.zeros(shape[0 if by_row else 1] + 1, dtype=_C.int64)
    pointers[1:] = cresset.bincount(major, minlength=len(pointers) - 1).cumsum(0)
    return Compressed(pointers, other, values, sparse.shape, layout)


def batched(matrices, batch, layout):
    """Compressed matrices as one tensor with the dimensions `batch` before theirs."""
    if len({m._nnz() for m in matrices}) > 1:
        raise RuntimeError("Expect the same number of specified elements per batch.")
    join = lambda parts: cresset.stack(parts).reshape(*batch, *parts[0].shape)
    pointers, others, values = (join([getattr(m, field) for m in matrices]) for field in ("_p", "_o", "_v"))
    return Compressed(pointers, others, values, (*batch, *matrices[0].shape), layout)


def convert(tensor, layout, blocksize=None, sparse_dim=None, dense_dim=None, node="ToSparseBackward1"):
    """A strided or sparse tensor in this layout, differentiable."""
    from ._gradients import Convert, under

    if layout is tensor.layout and sparse_dim is None and (not blocksize or tuple(blocksize) == tensor._blocksize()):
        return tensor
    return under(Convert, node).apply(tensor, layout, blocksize, sparse_dim, dense_dim)


NAMES = {
    _C.strided: "Strided", _C.sparse_coo: "Sparse", _C.sparse_csr: "SparseCsr", _C.sparse_csc: "SparseCsc", _C.sparse_bsr: "SparseBsr",
    _C.sparse_bsc: "SparseBsc",
}  # fmt: skip


def _two_sizes(blocksize, who):
    """The height and width of blocks; one number stands for both."""
    if blocksize is None:
        return None
    sizes = (blocksize, blocksize) if isinstance(blocksize, int) else blocksize
    if isinstance(blocksize, bool) or not isinstance(sizes, (tuple, list)) or not all(isinstance(n, int) for n in sizes):
        raise TypeError(f"{who}: argument 'blocksize' must be tuple of ints, not {type(blocksize).__name__}")
    if len(sizes) != 2:
        raise RuntimeError(f"{who}: blocksize needs to be a tuple of size 2, but got {len(sizes)}")
    if min(sizes) < 1:
        raise RuntimeError(f"{who}: blocksize needs to be positive, but got {list(sizes)}")
    return tuple(sizes)


def asked_for(tensor, layout=None, blocksize=None, sparse_dim=None, dense_dim=None, node=None):
    """`convert` as Tensor.to_sparse: a RuntimeError for arguments that say nothing about this pair of layouts, or contradict the tensor."""
    if sparse_dim is not None and layout is not None:
        raise TypeError("to_sparse() takes 0 positional arguments but 1 was given")
    node = node or f"ToSparseBackward{int(sparse_dim is None)}"
    layout = layout or _C.sparse_coo
    strided, same = tensor.layout is _C.strided, tensor.layout is layout
    compressed = isinstance(tensor, Compressed)
    who = "dense_to_sparse" if strided else "to_sparse" if same else "sparse_compressed_to_sparse" if compressed else "sparse_coo_to_sparse"
    what = f"{who}: conversion from {NAMES[tensor.layout]} to {NAMES[layout]} with"
    blocks = layout in (_C.sparse_bsr, _C.sparse_bsc)
    blocksize = _two_sizes(blocksize, who)
    # PyTorch refuses these, and programs may rely on it; from one layout to the other there is the way over to_sparse_coo().
    if tensor.layout is _C.sparse_coo and layout is not _C.sparse_coo and tensor.sparse_dim() != 2:
        raise RuntimeError(f"{what[:-5]} for input tensors with sparse_dim()!=2 is not supported")
    if compressed and blocks and not tensor._blocksize() and tensor._batch_rank():
        raise RuntimeError(f"{what[:-5]} for batched inputs is not supported")
    if compressed and tensor._blocksize():
        if layout in (_C.sparse_csr, _C.sparse_csc) and blocksize is None:
            kind = str(layout).rpartition("_")[2]
            raise RuntimeError(f"sparse_compressed_to_sparse_{kind}: expected SparseCsr or SparseCsc layout but got {NAMES[tensor.layout]}")
        if blocks and blocksize is not None and tuple(blocksize) != tuple(tensor._blocksize()):
            raise RuntimeError(f"{what} blocksize changed from {list(tensor._blocksize())} to {list(blocksize)} is not supported")
    if blocksize is not None and not blocks:
        raise RuntimeError(f"{what} blocksize argument given is not supported")
    if blocks and blocksize is None:
        raise RuntimeError(f"{what}out blocksize argument given is not supported")
    if strided:
        rows, columns = tensor.shape[-2 - (dense_dim or 0) :][:2] if blocks and tensor.dim() >= 2 else (0, 0)
        if blocks and (rows % blocksize[0] or columns % blocksize[1]):
            raise RuntimeError(f"{who}: tensor sparse size ({rows},{columns}) must be divisible by given blocksize ({blocksize[0]},{blocksize[1]})")
        if sparse_dim is not None and not 0 <= sparse_dim <= tensor.dim():
            raise RuntimeError(f"{who}: sparse_dim argument must be in [0,{tensor.dim()}] range, but {sparse_dim} is given")
        if sparse_dim == 0 and tensor.dim():
            raise RuntimeError(f"{who}: sparse_dim argument must be in >0 when self.dim()>0")
        most = tensor.dim() - (0 if layout is _C.sparse_coo else 2)
        if dense_dim is not None and not 0 <= dense_dim <= most:
            raise RuntimeError(f"{who}: dense_dim argument must be in [0,{most}] range, but {dense_dim} is given")
        if layout is _C.sparse_coo and dense_dim is not None:
            if dense_dim == tensor.dim() > 0:
                raise RuntimeError(f"{who}: dense_dim argument must be !=self.dim() when self.dim()>0")
            sparse_dim, dense_dim = tensor.dim() - dense_dim, None
    else:
        own = tensor.sparse_dim()
        if sparse_dim not in (None, own):
            raise RuntimeError(f"{what} sparse_dim argument !={own if compressed else 'self.sparse_dim()'} is not supported")
        if dense_dim is not None:
            raise RuntimeError(f"{what} dense_dim argument given is not supported")
    if is_fake(tensor):
        of_parts = importlib.import_module("cresset._subclasses.fake_sparse").of_parts
        form = {"blocksize": blocksize, "sparse_dim": sparse_dim if strided else None, "dense_dim": dense_dim}
        return of_parts(tensor.shape, tensor.dtype, layout, [tensor], **{k: v for k, v in form.items() if v is not None})
    return convert(tensor, layout, blocksize, sparse_dim if strided else None, dense_dim, node)


def converted(tensor, layout, blocksize, sparse_dim=None, dense_dim=None):
    """`convert` without gradient."""
    if layout is _C.strided:
        return dense(tensor)
    if layout is _C.sparse_coo:
        if isinstance(tensor, Sparse):
            return coordinates(tensor)
        return from_dense(tensor, tensor.dim() - dense_dim if dense_dim and sparse_dim is None else sparse_dim)
    if isinstance(tensor, Coordinates):
        return compress(tensor, layout, blocksize)
    if isinstance(tensor, Compressed):
        if tensor._batch_rank():
            made = [converted(m, layout, blocksize) for m in tensor._matrices()]
            return batched(made, tensor.shape[: tensor._batch_rank()], layout)
        made = compress(coordinates(tensor), layout, blocksize)
        made._p, made._o = made._p.to(tensor._p.dtype), made._o.to(tensor._o.dtype)
        return made
    rank = tensor.dim() - 2 - (dense_dim or 0)
    if rank > 0:
        batch = tensor.shape[:rank]
        if 0 in batch:
            raise RuntimeError(f"to_{str(layout).rpartition('.')[2]}: Expected product of batch dimensions to be non-zero.")
        return batched([compress(from_dense(t, 2), layout, blocksize) for t in tensor.flatten(0, rank - 1)], batch, layout)
    return compress(from_dense(tensor, 2), layout, blocksize)


def parts(indices, values, dtype, device):
    """Tensors of what a caller gave."""
    if not isinstance(indices, _C.Tensor):
        indices = cresset.tensor(indices)
    if not isinstance(values, _C.Tensor):
        values = cresset.tensor(values, dtype=dtype)
    if dtype is not None or device is not None:
        values = values.to(device=device, dtype=dtype)
    return indices, values


def sparse_coo_tensor(indices=None, values=None, size=None, *, dtype=None, device=None, pin_memory=False, requires_grad=False, check_invariants=None, is_coalesced=None):
    """A sparse tensor of `size` with `values` (nnz, *dense sizes) at the places `indices` (sparse_dim, nnz); values of one place count together.

    Without a size the smallest that holds the indices; sparse_coo_tensor(size) is empty. Differentiable with respect to values. RuntimeError
    where the numbers of indices, values and sizes do not fit; check_invariants=True checks every index as well.
    """
    from . import check_sparse_tensor_invariants as checks
    from ._gradients import FromParts, under

    if indices is None and size is None:
        raise TypeError("sparse_coo_tensor() received an invalid combination of arguments: indices and values, or a size, are required.")
    if values is None:
        size = tuple(indices if size is None else size)
        values = cresset.empty(0, dtype=dtype, device=device)
        return Coordinates(cresset.empty(len(size), 0, dtype=_C.int64, device=values.device), values, size, True).requires_grad_(requires_grad)
    indices, values = parts(indices, values, dtype, device)
    if recording():
        leaf = values.detach() if requires_grad else values
        return recorded("sparse_coo_tensor", indices, leaf, *([] if size is None else [list(size)]), is_coalesced=is_coalesced).requires_grad_(requires_grad)
    if is_fake(indices) or is_fake(values):
        of_parts = importlib.import_module("cresset._subclasses.fake_sparse").of_parts
        return of_parts(size, values.dtype, _C.sparse_coo, (indices, values), sparse_dim=indices.shape[0])
    if indices.dim() == 1 and not indices.numel() and size is not None and not len(size):
        indices = indices.reshape(0, values.shape[0] if values.dim() else 1)
    if indices.dim() != 2:
        indices = indices.reshape(len(indices), -1) if indices.dim() else indices.reshape(0, 1)
    indices = indices.to(_C.int64)
    values = values[None] if values.dim() == 0 else values
    if indices.shape[1] != values.shape[0]:
        raise RuntimeError(f"indices and values must have same nnz, but got nnz from indices: {indices.shape[1]}, nnz from values: {values.shape[0]}")
    if size is None:
        if indices.numel() and (lowest := int(indices.min())) < 0:
            raise RuntimeError(f"found negative index {lowest} for dim {int((indices < 0).any(1).nonzero()[0])}")
        largest = (indices.amax(1) + 1).tolist() if indices.numel() else [0] * indices.shape[0]
        size = (*largest, *values.shape[1:])
    size = tuple(size)
    ranks = (indices.shape[0], values.dim() - 1)
    if len(size) != sum(ranks):
        raise RuntimeError(f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {ranks[0]}, dense_dim = {ranks[1]}")
    if tuple(values.shape[1:]) != size[ranks[0] :]:
        raise RuntimeError(f"values has incorrect size, expected {[len(values), *size[ranks[0] :]]}, got {list(values.shape)}")
    if (checks.is_enabled() if check_invariants is None else check_invariants) and not indices.is_meta:
        check_coordinates(indices, size, is_coalesced)
    leaf = values.detach() if requires_grad else values
    make = under(FromParts, "SparseCooTensorWithDimsAndTensorsBackward0")
    return make.apply(indices, leaf, size, bool(is_coalesced)).requires_grad_(requires_grad or values.requires_grad)


def sparse_compressed_tensor(plain, other, values, size=None, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False, check_invariants=None):
    """A matrix (or batch) in the compressed `layout`: where each row (column) begins among `values`, and the column (row) of each. Without
    a size the smallest that holds them. Differentiable with respect to values."""
    from ._gradients import FromParts

    if layout not in _COMPRESSED:
        raise RuntimeError(f"expected sparse compressed layout, but got {layout}")
    by_row, blocks = _COMPRESSED[layout][2:]
    plain = plain if isinstance(plain, _C.Tensor) else cresset.tensor(plain, dtype=_C.int64)
    other, values = parts(other, values, dtype, device)
    if recording():
        leaf = values.detach() if requires_grad else values
        made = recorded("sparse_compressed_tensor", plain, other, leaf, *([] if size is None else [list(size)]), layout=layout)
        return made.requires_grad_(requires_grad)
    if is_fake(plain) or is_fake(other) or is_fake(values):
        of_parts = importlib.import_module("cresset._subclasses.fake_sparse").of_parts
        batch = plain.dim() - 1
        form = {"blocksize": tuple(values.shape[batch + 1 : batch + 3])} if _COMPRESSED[layout][3] else {}
        return of_parts(size, values.dtype, layout, (plain, other, values), **form)
    other = other if isinstance(other, _C.Tensor) and other.dtype in (_C.int32, _C.int64) else other.to(_C.int64)
    batch = plain.dim() - 1
    block = tuple(values.shape[batch + 1 : batch + 3]) if blocks else (1, 1)
    from . import check_sparse_tensor_invariants as checks

    checked = (checks.is_enabled() if check_invariants is None else check_invariants) and not plain.is_meta
    if other.shape[-1] != values.shape[batch] and not (checked and size is not None):
        raise RuntimeError(f"number of values ({values.shape[batch]}) must be that of the indices ({other.shape[-1]})")
    if size is None:
        lengths = [plain.shape[-1] - 1, int(other.max()) + 1 if other.numel() else 0]
        lengths = lengths if by_row else lengths[::-1]
        size = (*plain.shape[:-1], lengths[0] * block[0], lengths[1] * block[1], *values.shape[batch + 1 + 2 * blocks :])
    if checked:
        check_compressed(plain, other, values, tuple(size), layout)
    expected = size[batch + (0 if by_row else 1)] // block[0 if by_row else 1] + 1
    if plain.shape[-1] != expected:
        name = _COMPRESSED[layout][0]
        raise RuntimeError(f"{name}.shape[-1] must be equal to the number of {'rows' if by_row else 'columns'} + 1 = {expected}, but got {plain.shape[-1]}")
    leaf = values.detach() if requires_grad else values
    return FromParts.apply((plain, other, layout), leaf, tuple(size), True).requires_grad_(requires_grad or values.requires_grad)


def _of(layout):
    def create(plain, other, values, size=None, **options):
        return sparse_compressed_tensor(plain, other, values, size, layout=layout, **options)

    create.__name__ = f"{str(layout).rpartition('.')[2]}_tensor"
    pointers, others = _COMPRESSED[layout][:2]
    create.__doc__ = f"A matrix with layout {layout}: `{pointers}`, `{others}`, `values`; see sparse_compressed_tensor."

    def with_names(*args, **kwargs):
        names = (pointers, others, "values", "size")
        given = dict(zip(names, args)) | kwargs
        return create(given.pop(pointers), given.pop(others), given.pop("values"), given.pop("size", None), **given)

    with_names.__name__, with_names.__doc__ = create.__name__, create.__doc__
    return with_names


sparse_csr_tensor, sparse_csc_tensor, sparse_bsr_tensor, sparse_bsc_tensor = map(_of, (_C.sparse_csr, _C.sparse_csc, _C.sparse_bsr, _C.sparse_bsc))
for _function in (sparse_coo_tensor, sparse_compressed_tensor, sparse_csr_tensor, sparse_csc_tensor, sparse_bsr_tensor, sparse_bsc_tensor):
    _function._script_operator = f"aten::{_function.__name__}"


def spdiags(diagonals, offsets, shape, layout=None):
    """A matrix of `shape` with the rows of `diagonals` on the diagonals `offsets` (distinct): row k gives element [j - offsets[k], j] its j-th."""
    if len(shape) != 2:
        raise RuntimeError("Output shape must be 2d")
    if offsets.dim() > 1:
        raise RuntimeError("Offsets must be scalar or vector")
    offsets = offsets.reshape(-1)
    diagonals = diagonals.reshape(1, -1) if diagonals.dim() == 1 else diagonals
    if diagonals.dim() != 2:
        raise RuntimeError("Diagonals must be vector or matrix")
    if len(diagonals) != len(offsets):
        raise RuntimeError(f"Number of diagonals ({len(diagonals)}) does not match the number of offsets ({len(offsets)})")
    if layout not in (None, _C.sparse_coo, _C.sparse_csc, _C.sparse_csr):
        raise RuntimeError(f"Only output layouts (Sparse, SparseCsc, SparseCsr) are supported, got {NAMES.get(layout, layout)}")
    if offsets.dtype != _C.int64:
        raise RuntimeError(f"Offset Tensor must have dtype Long but got {cresset.empty(0, dtype=offsets.dtype).type().split('.')[-1].removesuffix('Tensor')}")
    if len(offsets.unique()) != len(offsets):
        raise RuntimeError("Offset tensor contains duplicate values")
    columns = cresset.arange(diagonals.shape[1]).expand(len(offsets), -1)
    rows = columns - offsets[:, None]
    kept = (rows >= 0) & (rows < shape[0]) & (columns < shape[1])
    made = sparse_coo_tensor(cresset.stack((rows[kept], columns[kept])), diagonals[kept], tuple(shape))
    return made if layout is None else made.to_sparse(layout=layout)


def empty_like(sparse):
    """A tensor of the same size that keeps nothing."""
    if isinstance(sparse, Compressed):
        batch = sparse._batch_rank()
        return Compressed(cresset.zeros_like(sparse._p), sparse._o[..., :0], sparse._v.narrow(batch, 0, 0), sparse.shape, sparse.layout)
    count = sparse.sparse_dim()
    return Coordinates(cresset.empty(count, 0, dtype=_C.int64), sparse._v.new_empty((0, *sparse.shape[count:])), sparse.shape, True)


def new(size, dtype, layout, device=None):
    """A tensor of these sizes that keeps nothing, or of the layout `_mkldnn` and zeros. RuntimeError for block layouts, which have no size of blocks, and for less than a matrix."""
    size = tuple(size)
    if layout is _C._mkldnn:
        from .._mkldnn_tensor import empty

        return empty(size, dtype, device)
    if layout is _C.sparse_coo:
        return sparse_coo_tensor(size, dtype=dtype, device=device)
    if len(size) < 2:
        raise RuntimeError(f"torch.empty: Only batched sparse compressed (non-block) tensors are supported, but got size {list(size)}")
    by_row, blocks = _COMPRESSED[layout][2:]
    if blocks:
        raise RuntimeError(f"empty_sparse_compressed expected sparse compressed (non-block) tensor layout but got {NAMES[layout]}")
    plain = cresset.zeros((*size[:-2], size[-2 if by_row else -1] + 1), dtype=_C.int64, device=device)
    other, values = (cresset.empty((*size[:-2], 0), dtype=kind, device=device) for kind in (_C.int64, dtype))
    return Compressed(plain, other, values, size, layout)
