"""Operators that make, ask and multiply tensors of sparse and opaque layouts, by the names and schemas that PyTorch has for them: for scripts, graphs and archives.

Scripts look operators up by name, so `cresset.jit` loads this module. Each is composite: what it calls is differentiable.
"""

import cresset

from .. import _rare_functions
from .._mkldnn_tensor import to_mkldnn
from . import _sizes, addmm, mm, sampled_addmm
from . import sum as sparse_sum

_OPTIONS = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False"
_COALESCED = "*, ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, bool? is_coalesced=None"

# Methods of tensors, called by the operator's name.
_METHODS = """
_to_dense(Tensor self, ScalarType? dtype=None, bool? masked_grad=None) -> Tensor
to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor
to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor
to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None) -> Tensor
_to_sparse.sparse_dim(Tensor self, int sparse_dim) -> Tensor
_to_sparse(Tensor self, *, Layout? layout=None, int[2]? blocksize=None, int? dense_dim=None) -> Tensor
to_sparse_csr(Tensor self, int? dense_dim=None) -> Tensor
to_sparse_csc(Tensor self, int? dense_dim=None) -> Tensor
to_sparse_bsr(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor
to_sparse_bsc(Tensor self, int[2] blocksize, int? dense_dim=None) -> Tensor
coalesce(Tensor(a) self) -> Tensor(a)
is_coalesced(Tensor self) -> bool
_coalesced_(Tensor(a!) self, bool coalesced) -> Tensor(a!)
indices(Tensor(a) self) -> Tensor(a)
values(Tensor(a) self) -> Tensor(a)
_indices(Tensor(a) self) -> Tensor(a)
_values(Tensor(a) self) -> Tensor(a)
crow_indices(Tensor(a) self) -> Tensor(a)
col_indices(Tensor(a) self) -> Tensor(a)
ccol_indices(Tensor(a) self) -> Tensor(a)
row_indices(Tensor(a) self) -> Tensor(a)
_nnz(Tensor self) -> int
_dimI(Tensor self) -> int
_dimV(Tensor self) -> int
sparse_dim(Tensor self) -> int
dense_dim(Tensor self) -> int
sparse_mask(Tensor self, Tensor mask) -> Tensor
sparse_resize_(Tensor(a!) self, int[] size, int sparse_dim, int dense_dim) -> Tensor(a!)
sparse_resize_and_clear_(Tensor(a!) self, int[] size, int sparse_dim, int dense_dim) -> Tensor(a!)
resize_as_sparse_(Tensor(a!) self, Tensor the_template) -> Tensor(a!)
smm(Tensor self, Tensor mat2) -> Tensor
sspaddmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor
""".strip().splitlines()

# Functions of the package.
_FUNCTIONS = f"""
hspmm(Tensor mat1, Tensor mat2) -> Tensor
sparse_coo_tensor.size(int[] size, {_OPTIONS}) -> Tensor
sparse_coo_tensor.indices(Tensor indices, Tensor values, {_COALESCED}) -> Tensor
sparse_coo_tensor.indices_size(Tensor indices, Tensor values, int[] size, {_COALESCED}) -> Tensor
sparse_csr_tensor.crow_col_value_size(Tensor crow_indices, Tensor col_indices, Tensor values, int[] size, {_OPTIONS}) -> Tensor
sparse_csr_tensor.crow_col_value(Tensor crow_indices, Tensor col_indices, Tensor values, {_OPTIONS}) -> Tensor
sparse_csc_tensor.ccol_row_value_size(Tensor ccol_indices, Tensor row_indices, Tensor values, int[] size, {_OPTIONS}) -> Tensor
sparse_csc_tensor.ccol_row_value(Tensor ccol_indices, Tensor row_indices, Tensor values, {_OPTIONS}) -> Tensor
sparse_bsr_tensor.crow_col_value_size(Tensor crow_indices, Tensor col_indices, Tensor values, int[] size, {_OPTIONS}) -> Tensor
sparse_bsr_tensor.crow_col_value(Tensor crow_indices, Tensor col_indices, Tensor values, {_OPTIONS}) -> Tensor
sparse_bsc_tensor.ccol_row_value_size(Tensor ccol_indices, Tensor row_indices, Tensor values, int[] size, {_OPTIONS}) -> Tensor
sparse_bsc_tensor.ccol_row_value(Tensor ccol_indices, Tensor row_indices, Tensor values, {_OPTIONS}) -> Tensor
sparse_compressed_tensor.comp_plain_value_size(Tensor compressed_indices, Tensor plain_indices, Tensor values, int[] size, {_OPTIONS}) -> Tensor
sparse_compressed_tensor.comp_plain_value(Tensor compressed_indices, Tensor plain_indices, Tensor values, {_OPTIONS}) -> Tensor
""".strip().splitlines()


def _called(name):
    def method(self, *args, **kwargs):
        return getattr(self, name)(*args, **kwargs)

    return method


def _made(function):
    """A constructor without the arguments that nobody gave."""
    compressed = function.__name__ == "sparse_compressed_tensor"

    def make(*args, layout=None, **options):
        own = {} if layout is None or not compressed else {"layout": layout}
        return function(*args, **own, **{k: v for k, v in options.items() if v is not None})

    return make


def _sparse_addmm(self, mat1, mat2, *, beta=1, alpha=1):
    return addmm(self, mat1, mat2, beta=beta, alpha=alpha)


def _sparse_sum(self, dim=None, *, dtype=None):
    return sparse_sum(self, dim, dtype)


def _softmax(function):
    def apply(self, dim, dtype=None):
        return function(self, dim, dtype=dtype)

    return apply


_OTHERS = {
    "_sparse_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor": _sparse_addmm,
    "_sparse_mm(Tensor sparse, Tensor dense) -> Tensor": mm,
    "_sparse_mm.reduce(Tensor sparse, Tensor dense, str reduce) -> Tensor": mm,
    "sparse_sampled_addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor": sampled_addmm,
    "_sparse_sum(Tensor self) -> Tensor": _sparse_sum,
    "_sparse_sum.dtype(Tensor self, *, ScalarType dtype) -> Tensor": _sparse_sum,
    "_sparse_sum.dim(Tensor self, int[1] dim) -> Tensor": _sparse_sum,
    "_sparse_sum.dim_dtype(Tensor self, int[1] dim, *, ScalarType dtype) -> Tensor": _sparse_sum,
    "_sparse_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor": _softmax(cresset.sparse.softmax),
    "_sparse_log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor": _softmax(cresset.sparse.log_softmax),
    "_sparse_broadcast_to(Tensor(a) self, int[] size) -> Tensor(a)": _sizes._sparse_broadcast_to,
    "_sparse_compressed_tensor_with_dims(int nnz, int dense_dim, int[] size, int[] blocksize, ScalarType index_dtype, *, ScalarType? dtype=None, "
    "Layout? layout=None, Device? device=None, bool? pin_memory=False) -> Tensor": _sizes._sparse_compressed_tensor_with_dims,
    "_validate_sparse_coo_tensor_args(Tensor indices, Tensor values, int[] size, bool? is_coalesced=None) -> ()": _rare_functions._validate_sparse_coo_tensor_args,
    "_validate_sparse_csr_tensor_args(Tensor crow_indices, Tensor col_indices, Tensor values, int[] size) -> ()": _rare_functions._validate_sparse_csr_tensor_args,
}  # fmt: skip


def _name_of(schema):
    return schema.partition("(")[0]


def _rows():
    for schema in _METHODS:
        yield schema, _called(_name_of(schema).partition(".")[0])
    for schema in _FUNCTIONS:
        function = getattr(cresset, _name_of(schema).partition(".")[0])
        yield schema, function if schema.startswith("hspmm") else _made(function)
    yield from _OTHERS.items()
    yield "to_mkldnn(Tensor self, ScalarType? dtype=None) -> Tensor", to_mkldnn


_library = cresset.library.Library("aten", "FRAGMENT")
for _schema, _function in _rows():
    _library.define(_schema)
    _library.impl(_name_of(_schema), _function, "CompositeImplicitAutograd")
