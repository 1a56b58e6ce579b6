"""Padded batches as nested tensors of the layout strided: the functions that transformers call for a padding mask. Gradients flow to the batch."""

import cresset
from cresset._dtype_info import word_of

from .strided import strided_of

__all__ = []


def _nested_tensor_from_mask_left_aligned(t, mask):
    """Does each row of a mask (N, L) for a batch (N, L, D) consist of true elements and then of false ones? RuntimeError for other shapes."""
    if t.dim() != 3:
        raise RuntimeError("Input should be a 3D tensor, N * L * D")
    if mask.dim() != 2:
        raise RuntimeError("Padding mask should be 2D")
    if mask.shape != t.shape[:2]:
        raise RuntimeError("Mask size should match input size")
    return not bool((mask[:, 1:] & ~mask[:, :-1]).any())


def _nested_tensor_from_mask(t, mask, mask_check=True):
    """The rows of a batch (N, L, D) where the mask (N, L) is true. RuntimeError for what is no bool, and with `mask_check` for a row of the mask in
    which a true element follows a false one; without it, a row begins at the left and is as long as the mask has true elements."""
    if mask.dtype is not cresset.bool:
        raise RuntimeError(f"Expected mask to be of ScalarType Bool, but got {word_of(mask.dtype)} instead.")
    if not _nested_tensor_from_mask_left_aligned(t, mask) and mask_check:
        raise RuntimeError("Mask must be left-aligned without gaps")
    return strided_of([row[:count] for row, count in zip(t.unbind(), mask.sum(1).tolist(), strict=True)], t.new_empty(0))


def _nested_from_padded(padded, cpu_nested_shape_example, fuse_transform_0213=False):
    """The first sizes of each row of a batch, as a table (N, dimensions of a row) says them. With `fuse_transform_0213` the batch is (N, H, L, D), of
    which (N, L, H * D) is taken. RuntimeError for other shapes, and for sizes that a row does not have."""
    if fuse_transform_0213:
        padded = padded.permute(0, 2, 1, 3).flatten(2)
    if cpu_nested_shape_example.dtype is not cresset.int64:
        raise RuntimeError(f"expected scalar type Long but found {word_of(cpu_nested_shape_example.dtype)}")
    sizes = cpu_nested_shape_example.tolist()
    if len(sizes) != padded.shape[0] or any(len(size) != padded.dim() - 1 for size in sizes):
        raise RuntimeError(f"_nested_from_padded: sizes of shape {[padded.shape[0], padded.dim() - 1]} were required; got {list(cpu_nested_shape_example.shape)}.")
    rows = []
    for row, size in zip(padded.unbind(), sizes, strict=True):
        for dim, (want, have) in enumerate(zip(size, row.shape, strict=True)):
            if not 0 <= want <= have:
                raise RuntimeError(f"The size of tensor a ({want}) must match the size of tensor b ({have}) at non-singleton dimension {dim + 1}")
            row = row.narrow(dim, 0, want)
        rows.append(row)
    return strided_of(rows, padded.new_empty(0))


def _nested_from_padded_and_nested_example(padded, nt_example):
    """The rows of a batch in the sizes of a nested tensor's components."""
    return _nested_from_padded(padded, nt_example._nested_tensor_size())


def _nested_tensor_from_tensor_list(list, dtype=None, layout=None, device=None, pin_memory=None):
    """The nested tensor of a list, through which gradients flow: nested.as_nested_tensor for scripts. RuntimeError for other layouts than strided."""
    if layout not in (None, cresset.strided):
        raise RuntimeError(f"_nested_tensor_from_tensor_list: the layout torch.strided was required; got {layout}.")
    made = cresset.nested.as_nested_tensor(list, dtype=dtype, device=device)
    return made._like(made._buffer.pin_memory()) if pin_memory else made


def _offsets_of(offsets):
    if len(offsets) != 1:
        raise RuntimeError(f"jagged tensors: only a single jagged dim is supported; offsets of {len(offsets)} were given.")
    if offsets[0].dim() != 1:
        raise RuntimeError(f"jagged tensors: expected 1D offsets, but got offsets.dim() == {offsets[0].dim()}")
    return offsets[0]


def _jagged_to_padded_dense_forward(values, offsets, max_lengths, padding_value=0.0):
    """Components that lie one behind the other as a batch (B, length, …): what is longer is cut, what is shorter filled up. RuntimeError for other than one tensor of
    offsets (B + 1,)."""
    offsets = _offsets_of(offsets)
    (length,) = max_lengths
    counts = offsets.diff()
    column = cresset.arange(length, device=values.device)
    kept = column < counts[:, None]
    component, position = kept.nonzero().unbind(1)
    result = values.new_full((len(counts), length, *values.shape[1:]), padding_value)
    return result.index_put((component, position), values[offsets[:-1][component] + position])


def _padded_dense_to_jagged_forward(dense, offsets, total_L=None):
    """The components of a batch (B, length, …), one behind the other. RuntimeError for offsets as above, for those that end elsewhere than at `total_L`, and for
    components that are longer than the batch has room for."""
    offsets = _offsets_of(offsets)
    if dense.dim() < 2:
        raise RuntimeError(f"_padded_dense_to_jagged_forward: expected padded dim >= 2, but padded.dim() == {dense.dim()}")
    total = int(offsets[-1])
    if total_L is not None and total != total_L:
        raise RuntimeError(f"_padded_dense_to_jagged_forward: final offset should match total_L value, but got {total} and {total_L}")
    counts = offsets.diff()
    if counts.numel() and int(counts.max()) > dense.shape[1]:
        raise RuntimeError(f"_padded_dense_to_jagged_forward: found batch item of length {int(counts.max())} when max length specified by padded input is {dense.shape[1]}")
    component, position = (cresset.arange(dense.shape[1], device=dense.device) < counts[:, None]).nonzero().unbind(1)
    return dense[component, position]


for _function in (_nested_tensor_from_mask_left_aligned, _nested_tensor_from_mask, _nested_from_padded, _nested_from_padded_and_nested_example,
                  _nested_tensor_from_tensor_list):  # fmt: skip
    _function._script_operator = f"aten::{_function.__name__}"
