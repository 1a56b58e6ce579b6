"""Methods of tensors, and functions of the package, that make or ask sparse tensors; `cresset.sparse` is loaded when one is called."""

from . import _C
from ._overridable import tensor_method
from ._recorded import recorded, recording

_FUNCTIONS = (
    "sparse_coo_tensor", "sparse_csr_tensor", "sparse_csc_tensor", "sparse_bsr_tensor", "sparse_bsc_tensor", "sparse_compressed_tensor", "smm", "sspaddmm",
    "hspmm", "saddmm", "spmm", "dsmm", "hsmm",
)  # fmt: skip
LAZY_NAMES = dict.fromkeys(_FUNCTIONS, "sparse")


def _convert(tensor, layout, blocksize=None, sparse_dim=None, dense_dim=None, node=None):
    from .sparse._create import asked_for

    return asked_for(tensor, layout, blocksize, sparse_dim, dense_dim, node)


@tensor_method
def to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
    """The tensor in a sparse layout (COO without one) with its elements that are not zero; with sparse_dim only that many dimensions are
    sparse. Differentiable. RuntimeError where the layout does not fit the tensor."""
    if isinstance(sparse_dim, _C.layout):
        sparse_dim, layout = None, sparse_dim
    if recording():
        return recorded("to_sparse", self, layout=layout, blocksize=blocksize, dense_dim=dense_dim) if sparse_dim is None else recorded("to_sparse", self, sparse_dim)
    return _convert(self, layout, blocksize, sparse_dim, dense_dim)


@tensor_method
def to_sparse_coo(self):
    """The tensor in coordinates."""
    return to_sparse(self)


@tensor_method
def to_sparse_csr(self, dense_dim=None):
    """The matrix with compressed rows."""
    if recording():
        return recorded("to_sparse_csr", self, dense_dim)
    return _convert(self, _C.sparse_csr, dense_dim=dense_dim, node="ToSparseCsrBackward0")


@tensor_method
def to_sparse_csc(self, dense_dim=None):
    """The matrix with compressed columns."""
    if recording():
        return recorded("to_sparse_csc", self, dense_dim)
    return _convert(self, _C.sparse_csc, dense_dim=dense_dim, node="ToSparseCscBackward0")


@tensor_method
def to_sparse_bsr(self, blocksize, dense_dim=None):
    """The matrix in blocks of this size (two numbers, that divide its own), with compressed rows."""
    if recording():
        return recorded("to_sparse_bsr", self, blocksize, dense_dim)
    return _convert(self, _C.sparse_bsr, blocksize, dense_dim=dense_dim, node="ToSparseBsrBackward0")


@tensor_method
def to_sparse_bsc(self, blocksize, dense_dim=None):
    """The matrix in blocks of this size (two numbers, that divide its own), with compressed columns."""
    if recording():
        return recorded("to_sparse_bsc", self, blocksize, dense_dim)
    return _convert(self, _C.sparse_bsc, blocksize, dense_dim=dense_dim, node="ToSparseBscBackward0")


@tensor_method
def sparse_mask(self, mask):
    """A sparse tensor with the places of the sparse tensor `mask` and the elements of self there; RuntimeError for another shape."""
    if recording():
        return recorded("sparse_mask", self, mask)
    from .sparse import mask_of

    return mask_of(self, mask)


@tensor_method
def smm(self, mat2):
    """The product of a sparse and a strided matrix, as a sparse one."""
    from .sparse import smm

    return smm(self, mat2)


@tensor_method
def sspaddmm(self, mat1, mat2, *, beta=1, alpha=1):
    """beta * self + alpha * (mat1 @ mat2), with sparse self and mat1, as a sparse tensor."""
    from .sparse import sspaddmm

    return sspaddmm(self, mat1, mat2, beta=beta, alpha=alpha)


@tensor_method
def _to_sparse(self, sparse_dim=None, *, layout=None, blocksize=None, dense_dim=None):
    """`to_sparse` by the operator's own name."""
    return self.to_sparse(sparse_dim, layout=layout, blocksize=blocksize, dense_dim=dense_dim)


def _renamed(method):
    def call(self, *args, **kwargs):
        return getattr(self, method)(*args, **kwargs)

    call.__name__ = f"_{method}"
    call.__doc__ = f"`{method}` by the operator's own name."
    return call


def _part(name):
    def refuse(self, *args):
        raise NotImplementedError(f"Could not run 'aten::{name}' with arguments from the '{self._word() if hasattr(self, '_word') else 'CPU'}' backend.")

    refuse.__name__ = name
    refuse.__doc__ = "Raises NotImplementedError: only a sparse tensor of coordinates has it."
    return refuse


@tensor_method
def _to_dense(self, dtype=None, masked_grad=None):
    """`to_dense` by the operator's own name."""
    return self.to_dense(dtype, masked_grad=masked_grad)


@tensor_method
def _sparse_mask_projection(self, mask, accumulate_matches=False):
    """Of a sparse tensor the elements where `mask` has some, at the mask's places. RuntimeError for a strided tensor."""
    if self.layout is not _C.sparse_coo:
        raise RuntimeError("_sparse_mask_projection: a sparse tensor of coordinates was required.")
    return self.sparse_mask(mask)


for _name in ("to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc"):
    tensor_method(_renamed(_name))
for _name in ("_indices", "_values", "_dimI", "_dimV", "_coalesced_"):
    tensor_method(_part(_name))
