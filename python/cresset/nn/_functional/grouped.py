"""Products of groups of rows or columns with matrices of their own."""

from typing import Optional

import cresset
from cresset import Tensor
from cresset._overridable import overridable

__all__ = ["grouped_mm"]


def _bounds(offs):
    ends = offs.tolist()
    return list(zip([0, *ends[:-1]], ends)), ends[-1] if ends else 0


@overridable
def grouped_mm(
    mat_a: Tensor, mat_b: Tensor, *, offs: Optional[Tensor] = None, bias: Optional[Tensor] = None, out_dtype: Optional[cresset.dtype] = None
) -> Tensor:
    """A product for each group. Matrices (M, K) and (G, K, N): rows of mat_a up to offs[g] belong to group g, the result is (M, N), zero behind
    the last group. (G, M, K) and (K, N): columns of mat_b are grouped, the result is (M, N). (M, K) and (K, N): K is grouped, the result is
    (G, M, N). (G, M, K) and (G, K, N): (G, M, N), without offs. offs is int32 and does not descend. Differentiable; out_dtype must be mat_a's.
    RuntimeError otherwise, and for a bias."""
    batched = mat_a.dim() == 3, mat_b.dim() == 3
    if not {mat_a.dim(), mat_b.dim()} <= {2, 3}:
        raise RuntimeError(f"grouped_mm: matrices of two or three dimensions were required; given {mat_a.dim()} and {mat_b.dim()}")
    if (offs is None) != all(batched):
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d")
    if offs is not None and offs.dtype != cresset.int32:
        raise RuntimeError("Offsets have to be int32")
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype is not None and out_dtype != mat_a.dtype:
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")
    if mat_a.shape[-1] != mat_b.shape[-2]:
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    if all(batched):
        return cresset.bmm(mat_a, mat_b)
    groups, end = _bounds(offs)
    if not any(batched):
        return cresset.stack([mat_a[:, start:stop] @ mat_b[start:stop] for start, stop in groups])
    dim = 0 if batched[1] else 1
    count = (mat_b if batched[1] else mat_a).shape[0]
    if len(groups) != count:
        raise RuntimeError(f"matrix batch sizes have to match: {len(groups)} groups, {count} matrices")
    if batched[1]:
        parts = [mat_a[start:stop] @ mat_b[g] for g, (start, stop) in enumerate(groups)]
        rest = mat_a.new_zeros(mat_a.shape[0] - end, mat_b.shape[-1])
    else:
        parts = [mat_a[g] @ mat_b[:, start:stop] for g, (start, stop) in enumerate(groups)]
        rest = mat_a.new_zeros(mat_a.shape[-2], mat_b.shape[-1] - end)
    return cresset.cat([*parts, rest], dim)
