"""Operators of matrices of which one is sparse, by the names that PyTorch has for them."""

import cresset

from . import mm


def _sparse_addmm(self, mat1, mat2, *, beta=1, alpha=1):
    return cresset.addmm(self, mat1, mat2, beta=beta, alpha=alpha)


_library = cresset.library.Library("aten", "FRAGMENT")
for _schema, _function in (
    ("_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor", _sparse_addmm),
    ("_sparse_mm(Tensor sparse, Tensor dense) -> Tensor", mm),
    ("_sparse_mm.reduce(Tensor sparse, Tensor dense, str reduce) -> Tensor", mm),
):
    _library.define(_schema)
    _library.impl(_schema.partition("(")[0], _function, "CompositeImplicitAutograd")
