"""Operators that look at values only to refuse some of them, by operators that give the same without the look."""

import math

import cresset

__all__ = ["UNCHECKED"]


def _inverse(a):
    return cresset.linalg.inv_ex(a)[0]


def _cholesky(a, upper=False):
    return cresset.linalg.cholesky_ex(a, upper=upper)[0]


def _tensorinv(a, ind=2):
    return _inverse(a.reshape(math.prod(a.shape[ind:]), -1)).reshape(*a.shape[ind:], *a.shape[:ind])


def _tensorsolve(a, b, dims=None):
    if dims is not None:
        dims = [d % a.dim() for d in dims]
        a = a.permute(*[d for d in range(a.dim()) if d not in dims], *dims)
    shape = a.shape[b.dim() :]
    return _solve(a.reshape(b.numel(), -1), b.reshape(-1)).reshape(shape)


def _solve(a, b, left=True):
    return cresset.linalg.solve_ex(a, b, left=left)[0]


def _matrix_power(a, n):
    return cresset.linalg.matrix_power(_inverse(a), -n) if n < 0 else cresset.linalg.matrix_power(a, n)


def _lu_factor(a, pivot=True):
    return cresset.linalg.lu_factor_ex(a, pivot=pivot)[:2]


def _ldl_factor(a, hermitian=False):
    return cresset.linalg.ldl_factor_ex(a, hermitian=hermitian)[:2]


UNCHECKED = {
    "aten.linalg_inv.default": _inverse,
    "aten.inverse.default": _inverse,
    "aten.linalg_solve.default": _solve,
    "aten.linalg_cholesky.default": _cholesky,
    "aten.cholesky.default": _cholesky,
    "aten.linalg_lu_factor.default": _lu_factor,
    "aten.linalg_ldl_factor.default": _ldl_factor,
    "aten.linalg_tensorinv.default": _tensorinv,
    "aten.linalg_tensorsolve.default": _tensorsolve,
    "aten.linalg_matrix_power.default": _matrix_power,
    "aten.matrix_power.default": _matrix_power,
}
