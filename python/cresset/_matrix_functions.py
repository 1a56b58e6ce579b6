"""Functions of matrices that stand in front of operators, and randomised decompositions (Halko, Martinsson and Tropp 2009)."""

import cresset

from . import _C
from ._C import Tensor
from ._overridable import overridable

__all__ = ["tensordot", "cdist", "chain_matmul", "svd_lowrank", "pca_lowrank"]

_operators = _C._VariableFunctions
_COMPUTE_MODES = {"use_mm_for_euclid_dist_if_necessary": None, "use_mm_for_euclid_dist": 1, "donot_use_mm_for_euclid_dist": 2}


def _contracted(a, b, dims):
    """The dimensions of a and of b that tensordot's `dims` names."""
    if isinstance(dims, Tensor):
        if dims.numel() != 1:
            return dims[0].tolist(), dims[1].tolist()
        dims = int(dims.item())
    if isinstance(dims, (list, tuple)) and len(dims) == 2:
        return dims
    if not isinstance(dims, int):
        raise RuntimeError(
            "tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] containing two lists, "
            f"but got dims={dims}"
        )
    if dims < 0:
        raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
    if dims > min(a.dim(), b.dim()):
        raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
    return list(range(-dims, 0)), list(range(dims))


@overridable
def tensordot(a, b, dims=2, out=None):
    """Sums of products over the last `dims` dimensions of a and the first of b, or over the two lists of dimensions in `dims`."""
    dims_a, dims_b = _contracted(a, b, dims)
    if out is None:
        return _operators.tensordot(a, b, dims_a, dims_b)
    return _operators.tensordot(a, b, dims_a, dims_b, out=out)


@overridable
def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """p-norm distances between the rows of x1 (…, n, d) and of x2 (…, m, d): (…, n, m). compute_mode says whether 2-norms may come
    from a matrix product, which is faster for many rows and inexact for rows close to each other."""
    if compute_mode not in _COMPUTE_MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    return _operators.cdist(x1, x2, p, _COMPUTE_MODES[compute_mode])


@overridable
def chain_matmul(*matrices, out=None):
    """The product of matrices in the cheapest order; linalg.multi_dot is the newer name."""
    if len(matrices) == 1 and isinstance(matrices[0], (list, tuple)):
        matrices = matrices[0]
    more = {} if out is None else {"out": out}
    return _operators.chain_matmul(list(matrices), **more)


def _range_basis(a, q, niter):
    """Orthonormal columns whose span nearly contains the range of a (…, m, n): q random combinations of its columns, niter times
    multiplied by a @ a.mH (algorithm 4.4)."""
    basis = cresset.linalg.qr(a @ cresset.randn(a.shape[-1], q, dtype=a.dtype, device=a.device))[0]
    for _ in range(niter):
        basis = cresset.linalg.qr(a.mH @ basis)[0]
        basis = cresset.linalg.qr(a @ basis)[0]
    return basis


@overridable
def svd_lowrank(A, q=6, niter=2, M=None):
    """(U, S, V) of nearly the best approximation of rank q of A - M, by a random projection (algorithm 5.1).

    A has sizes (…, m, n), M broadcasts to them; U is (…, m, q), S (…, q), V (…, n, q). Each of the niter iterations makes
    the singular values that are left out count less. A - M is about U @ diag(S) @ V.mH."""
    q = 6 if q is None else q
    niter = 2 if niter is None else niter
    m, n = A.shape[-2:]
    if M is not None:
        A = A - M.expand(A.shape)
    # Random vectors are drawn for the shorter side.
    wide = m < n
    a = A.mH if wide else A
    basis = _range_basis(a, q, niter)
    u, s, vh = cresset.linalg.svd(basis.mH @ a, full_matrices=False)
    u = basis @ u
    return (vh.mH, s, u) if wide else (u, s, vh.mH)


@overridable
def pca_lowrank(A, q=None, center=True, niter=2):
    """Principal components of the rows of A (…, m, n): svd_lowrank of A, with the mean of each column taken off unless center is False.

    q is min(6, m, n) unless given. ValueError for q outside [0, min(m, n)] and for negative niter."""
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(dim=-2, keepdim=True) if center else A, q, niter=niter)
