"""Functions of the package that few programs call by this name: compositions of operators."""

import math
import warnings
from typing import Optional

import cresset

from ._C import Tensor
from ._dtype_info import word_of
from ._overridable import overridable

__all__ = [
    "from_file", "hash_tensor", "mkldnn_convolution", "mkldnn_max_pool2d", "mkldnn_max_pool3d", "mkldnn_adaptive_avg_pool2d", "_mkldnn_transpose",
    "cond", "while_loop", "_grouped_mm",
    "_rowwise_prune", "_transform_bias_rescale_qkv", "_masked_softmax",
    "sym_constrain_range", "sym_constrain_range_for_size",
    "cudnn_is_acceptable", "lobpcg", "init_num_threads",
    "_assert_scalar", "_assert_tensor_metadata", "_has_compatible_shallow_copy_type", "_efficientzerotensor", "_validate_sparse_bsc_tensor_args", "_validate_sparse_bsr_tensor_args",
    "_validate_sparse_compressed_tensor_args", "_validate_sparse_coo_tensor_args", "_validate_sparse_csc_tensor_args", "_validate_sparse_csr_tensor_args", "_debug_has_internal_overlap",
    "_neg_view", "set_vital",
]  # fmt: skip


@overridable
def _neg_view(input: Tensor) -> Tensor:
    """The negative of each element: computed, as by `neg`, not a view that is negated when it is read."""
    return cresset.neg(input)


def _convolution_double_backward(ggI, ggW, ggb, gO, weight, self, stride, padding, dilation, transposed, output_padding, groups, output_mask):
    """The gradients (for gO, self, weight) of convolution_backward, from those of its results (any may be None), whatever the mask asks for; None where
    nothing that was given reaches."""
    aten, options = cresset.ops.aten, (stride, padding, dilation, transposed, output_padding, groups)
    parts = [aten.convolution(i, w, None, *options) for i, w in ((ggI, weight), (self, ggW)) if i is not None and w is not None]
    if ggb is not None:
        parts.append(ggb.view(1, -1, *[1] * (gO.dim() - 2)).expand(gO.shape))
    ggO = sum(parts[1:], parts[0]) if parts else None
    gI = None if ggW is None else aten.convolution_backward(gO, self, ggW, None, *options, [True, False, False])[0]
    gW = None if ggI is None else aten.convolution_backward(gO, ggI, weight, None, *options, [False, True, False])[1]
    return ggO, gI, gW


def set_vital(vital, attr, value):
    """Nothing, with a warning: what programs tell PyTorch about themselves is kept nowhere."""
    warnings.warn("'set_vital' is deprecated, please do not call", stacklevel=2)


def _debug_has_internal_overlap(input: Tensor) -> int:
    """Do elements of a tensor lie in the same memory? 0: no, 1: yes, 2: it takes more than a look at one stride to know."""
    step, dense = 1, True
    for stride, size in sorted((stride, size) for size, stride in zip(input.shape, input.stride()) if size != 1):
        dense, step = dense and stride == step, step * size
    if dense or input.numel() == 0:
        return 0
    return 1 if any(stride == 0 and size > 1 for size, stride in zip(input.shape, input.stride())) else 2


def from_file(filename, shared=None, size=0, *, dtype=None, layout=None, device=None, pin_memory=None, requires_grad=False):
    """A tensor of `size` elements over a file's memory: with `shared` what is written reaches the file. RuntimeError for files that are too short."""
    if device is not None and cresset.device(device).type != "cpu":
        raise RuntimeError("from_file: the device cpu was required.")
    dtype = dtype or cresset.get_default_dtype()
    storage = cresset.UntypedStorage.from_file(str(filename), bool(shared), size * dtype.itemsize)
    return cresset.storage.tensor_of_storage(storage, dtype, size=[size]).requires_grad_(requires_grad)


_recorders = None  # while export or make_fx records: what runs in the place of cond, while_loop, map, scan and associative_scan, by these names


def cond(pred, true_fn, false_fn, operands=()):
    """`true_fn(*operands)` if `pred`, a bool or a tensor of one element, is true, else `false_fn(*operands)`. RuntimeError for other arguments."""
    if not isinstance(pred, (bool, Tensor)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(f"Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, but got {operands}.")
    if _recorders is not None:
        if isinstance(pred, Tensor):
            return _recorders["cond"](pred, true_fn, false_fn, tuple(operands))
        warnings.warn(
            "Pred is a Python constant. When used with torch.cond, it specializes on one of the branches. If you want torch.cond to preserve two branches, please "
            "make the predicate a boolean tensor or a SymBool.",
            stacklevel=2,
        )
    if _without_values(pred):
        return _either(true_fn(*operands), false_fn(*operands))
    return (true_fn if pred else false_fn)(*operands)


def _without_values(truth):
    """Is it a tensor on the meta device, or a fake one whose value is not known?"""
    fake = getattr(type(truth), "_has_no_values", False)
    return fake and truth.constant is None if fake else isinstance(truth, Tensor) and truth.is_meta


def _forms(values):
    return [(x.shape, x.dtype, x.device) if isinstance(x, Tensor) else type(x) for x in values]


def _either(one, other):
    """What both branches gave where nobody knows which is run: the first, of the same form as the second."""
    from .utils import _pytree as pytree

    (values, spec), (others, other_spec) = pytree.tree_flatten(one), pytree.tree_flatten(other)
    if spec != other_spec or _forms(values) != _forms(others):
        raise RuntimeError(f"torch.cond: results of the same form were required of both branches; given {_forms(values)} and {_forms(others)}.")
    return one


def while_loop(cond_fn, body_fn, carried_inputs):
    """`carried = body_fn(*carried)` while `cond_fn(*carried)`, a bool or a tensor of one element, is true. It begins with a tuple of tensors and numbers, or of structures of them.

    Each pass gives as many values, and tensors of the same sizes, dtypes and devices. RuntimeError for other arguments and results.
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(f"Expect carried_inputs to be a tuple of tensors and numbers, but got {type(carried_inputs)}.")
    from .utils import _pytree as pytree

    carried, spec = pytree.tree_flatten(tuple(carried_inputs))
    if spec != pytree.tree_structure((0,) * len(carried)):  # a structure: the same loop over its values

        def body(*values):
            new, new_spec = pytree.tree_flatten(body_fn(*pytree.tree_unflatten(values, spec)))
            if new_spec != spec:
                raise RuntimeError(f"Expected body_fn_output and carried_inputs to have the same structure but found: {new_spec} and {spec}")
            return tuple(new)

        return pytree.tree_unflatten(while_loop(lambda *values: cond_fn(*pytree.tree_unflatten(values, spec)), body, tuple(carried)), spec)
    carried = tuple(carried)
    if _recorders is not None and all(isinstance(x, Tensor) for x in carried):
        return _recorders["while_loop"](cond_fn, body_fn, carried)
    unknown = False
    while not unknown:  # once, where nobody knows how often
        goes_on = cond_fn(*carried)
        unknown = _without_values(goes_on)
        if not unknown and not goes_on:
            break
        new = body_fn(*carried)
        new = tuple(new) if isinstance(new, (tuple, list)) else (new,)
        before, after = _forms(carried), _forms(new)
        if before != after:
            raise RuntimeError(f"Expected body_fn_output and carried_inputs to have same metadata but found: {after} and {before}")
        carried = new
    return carried


@overridable
def _grouped_mm(
    input: Tensor, mat2: Tensor, offs: Optional[Tensor] = None, bias: Optional[Tensor] = None, out_dtype: Optional[cresset.dtype] = None
) -> Tensor:
    """nn.functional.grouped_mm under its older name."""
    return cresset.nn.functional.grouped_mm(input, mat2, offs=offs, bias=bias, out_dtype=out_dtype)


# --- sizes ----------------------------------------------------------------------------------------------------------------------------


def sym_constrain_range(size, *, min=None, max=None):
    """RuntimeError unless min <= size <= max."""
    low, high = (-(2**63) if min is None else min), (2**63 - 1 if max is None else max)
    if not low <= int(size) <= high:
        raise RuntimeError(f"Invalid value range for {int(size)} between [{low}, {high}].")


def sym_constrain_range_for_size(size, *, min=None, max=None):
    """RuntimeError unless min <= size <= max, where min is at least 0."""
    if max is not None and max <= 2:
        raise RuntimeError(f"Max value to constrain_range_for_size must be greater than 2. got: {max}")
    sym_constrain_range(size, min=0 if min is None else min, max=max)


@overridable
def cudnn_is_acceptable(input):
    """False: there is no cuDNN."""
    return False


def _efficientzerotensor(*size, dtype=None, device=None, requires_grad=False):
    """Zeros of a size that share the memory of one: to be read, not written."""
    size = size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
    zero = cresset.zeros((), dtype=dtype, device=device)
    return zero.expand(size).requires_grad_(requires_grad)


def _validate_sparse_compressed_tensor_args(compressed_indices, plain_indices, values, size, layout):
    """RuntimeError, with the condition that does not hold, unless these are the parts of a sparse tensor of the layout."""
    from .sparse._validate import check_compressed

    check_compressed(compressed_indices, plain_indices, values, tuple(size), layout)


def _validator(layout):
    def validate(compressed_indices, plain_indices, values, size):
        _validate_sparse_compressed_tensor_args(compressed_indices, plain_indices, values, size, getattr(cresset, f"sparse_{layout}"))

    validate.__name__ = f"_validate_sparse_{layout}_tensor_args"
    validate.__doc__ = f"_validate_sparse_compressed_tensor_args for cresset.sparse_{layout}."
    return validate


_validate_sparse_csr_tensor_args, _validate_sparse_csc_tensor_args = _validator("csr"), _validator("csc")
_validate_sparse_bsr_tensor_args, _validate_sparse_bsc_tensor_args = _validator("bsr"), _validator("bsc")


def _validate_sparse_coo_tensor_args(indices, values, size, is_coalesced=None):
    """RuntimeError unless every index is in range, and, where is_coalesced says so, they are sorted and distinct."""
    from .sparse._validate import check_coordinates

    cresset.sparse_coo_tensor(indices, values, tuple(size), check_invariants=False)  # numbers of dimensions
    check_coordinates(indices, tuple(size), is_coalesced)


# --- eigenvalues ------------------------------------------------------------------------------------------------------------------------


@overridable
def lobpcg(A, k=None, B=None, X=None, n=None, iK=None, niter=None, tol=None, largest=None, method=None, tracker=None, ortho_iparams=None,
           ortho_fparams=None, ortho_bparams=None):  # fmt: skip
    """(E, X): the k largest (or smallest) eigenvalues of A X = B X E and their vectors, for symmetric A and positive definite B, batches included.

    Locally optimal block preconditioned conjugate gradients, from the vectors `X` or random ones, with the preconditioner `iK`, until the residuals
    are below `tol` or after `niter` steps (by default 1000). A needs at least 3 k rows (ValueError otherwise).
    """
    largest = True if largest is None else largest
    if A.shape[-2] != A.shape[-1]:
        raise AssertionError(f"A must be square, got shape {A.shape}")
    if A.dim() > 2:
        flat = A.reshape(-1, *A.shape[-2:])
        parts = [lobpcg(a, k, None if B is None else (B if B.dim() == 2 else B.reshape(flat.shape)[i]), None if X is None else X.reshape(len(flat), *X.shape[-2:])[i],
                        n, iK, niter, tol, largest) for i, a in enumerate(flat)]  # fmt: skip
        values, vectors = (cresset.stack(p) for p in zip(*parts))
        return values.view(*A.shape[:-2], -1), vectors.view(*A.shape[:-1], -1)
    m = A.shape[-1]
    k = (1 if X is None else X.shape[-1]) if k is None else k
    if m < 3 * k:
        raise ValueError(f"LPBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the number of requested eigenpairs (={k})")
    times = lambda M, v: v if M is None else M @ v  # noqa: E731
    n = k if n is None else n
    vectors = cresset.randn(m, n, dtype=A.dtype, device=A.device) if X is None else X[:, :n]
    tol = cresset.finfo(A.dtype).eps ** 0.5 if tol is None else tol
    direction, sign = None, -1 if largest else 1
    scale = A.norm()

    def ritz(basis):
        """The best combinations of a basis, which is made orthonormal in B first."""
        lengths, turn = cresset.linalg.eigh(basis.mT @ times(B, basis))
        keep = lengths > lengths.max() * cresset.finfo(A.dtype).eps * 10
        basis = basis @ (turn[:, keep] / lengths[keep].sqrt())
        values, mix = cresset.linalg.eigh(basis.mT @ (A @ basis) * sign)
        return values[:n] * sign, basis @ mix[:, :n]

    values, vectors = ritz(vectors)
    for _ in range(1000 if niter is None or niter < 0 else niter):
        residual = A @ vectors - times(B, vectors) * values
        if (residual.norm(dim=0)[:k] <= tol * scale * vectors.norm(dim=0)[:k]).all():
            break
        steepest = times(iK, residual)
        steepest = steepest / steepest.norm(dim=0).clamp_min(cresset.finfo(A.dtype).tiny)
        basis = cresset.cat([vectors, steepest] + ([] if direction is None else [direction]), 1)
        values, new = ritz(basis)
        direction = new - vectors @ (vectors.mT @ times(B, new))
        direction = direction / direction.norm(dim=0).clamp_min(cresset.finfo(A.dtype).tiny)
        vectors = new
    return values[:k], vectors[:, :k]


def init_num_threads() -> None:
    """Threads of operators begin anew with the number that is set, as a thread that starts operators does by itself."""
    cresset.set_num_threads(cresset.get_num_threads())


@overridable
def _assert_tensor_metadata(a: Tensor, size=None, stride=None, dtype=None, *, device=None, layout=None) -> None:
    """RuntimeError where a tensor has another size, stride, dtype, device or layout than those given."""
    cresset.ops.aten._assert_tensor_metadata(a, size, stride, dtype, device=device, layout=layout)


def _has_compatible_shallow_copy_type(input: Tensor, from_: Tensor) -> bool:
    """Could `.data` of the input be set to the other tensor: have both the same layout, and both values or neither?"""
    return input.layout == from_.layout and input.is_meta == from_.is_meta


def _assert_scalar(self, assert_msg: str) -> None:
    """RuntimeError with the words given where a number is zero."""
    cresset.ops.aten._assert_scalar(self, assert_msg)


def _folded(bits, dims):
    """Exclusive or of int64 elements along dimensions, which are kept with the size 1."""
    for dim in dims:
        while (n := bits.shape[dim]) > 1:
            half = n // 2
            pairs = bits.narrow(dim, 0, half) ^ bits.narrow(dim, half, half)
            bits = cresset.cat([pairs, bits.narrow(dim, 2 * half, n % 2)], dim) if n % 2 else pairs
        if bits.shape[dim] == 0:
            bits = bits.new_zeros([1 if d == dim else s for d, s in enumerate(bits.shape)])
    return bits


@overridable
def hash_tensor(input, dim=(), *, keepdim=False, mode=0):
    """Exclusive or of the elements' 64 bits, as int64 or float64, over all dimensions or those given; uint64. Equal tensors have equal numbers.

    RuntimeError for a `mode` other than 0, and without a `dim` for no elements; NotImplementedError for complex numbers.
    """
    if mode != 0:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    if input.is_complex():
        name = input.type().rpartition(".")[2].removesuffix("Tensor")
        raise NotImplementedError(f'"xor_sum_cpu" not implemented for \'{name}\'')
    dims = [dim] if isinstance(dim, int) else list(dim)
    if not dims and input.numel() == 0:
        raise RuntimeError("hash_tensor: Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.")
    wide = input.detach()
    wide = wide.double().view(cresset.int64) if wide.is_floating_point() else wide.view(cresset.int64) if wide.dtype == cresset.uint64 else wide.long()
    rank = max(wide.dim(), 1)
    for d in dims:
        if not -rank <= d < rank:
            raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {d})")
    dims = sorted({d % rank for d in dims}) if dims else range(wide.dim())
    folded = _folded(wide.contiguous(), dims if wide.dim() else ()).view(cresset.uint64)
    return folded if keepdim or not wide.dim() else folded.squeeze(tuple(dims))


@overridable
def mkldnn_convolution(input, weight, bias, padding, stride, dilation, groups):
    """`convolution` with its arguments in oneDNN's order."""
    return cresset.convolution(input, weight, bias, stride, padding, dilation, False, [0] * (input.dim() - 2), groups)


def _mkldnn_only(name):
    def refuse(input, *args, **kwargs):
        raise NotImplementedError(f"Could not run 'aten::{name}' with arguments from the '{input.device.type.upper()}' backend: to_mkldnn() gives a tensor that has it.")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"`{name.removeprefix('mkldnn_')}` of a tensor of the layout `_mkldnn`; NotImplementedError of another one."
    return overridable(refuse)


mkldnn_max_pool2d, mkldnn_max_pool3d, mkldnn_adaptive_avg_pool2d = map(_mkldnn_only, ("mkldnn_max_pool2d", "mkldnn_max_pool3d", "mkldnn_adaptive_avg_pool2d"))


@overridable
def _mkldnn_transpose(self, dim0, dim1):
    """`transpose` of a tensor of the layout `_mkldnn`, or of another one."""
    return self.transpose(dim0, dim1)


@overridable
def _rowwise_prune(weight, mask, compressed_indices_dtype):
    """The rows of a matrix where the mask (bool, one of a row) is true, and for each old row its new number, or -1. RuntimeError for other shapes and
    dtypes; the numbers are int32 or int64."""
    if weight.dim() != 2:
        raise RuntimeError("'weights' should have 2 dimensions.")
    if mask.dtype is not cresset.bool:
        raise RuntimeError(f"expected scalar type Bool but found {word_of(mask.dtype)}")
    if mask.numel() != weight.shape[0]:
        raise RuntimeError("Number of elements in 'mask' should be equivalent to the number of rows in 'weights'.")
    if compressed_indices_dtype not in (cresset.int32, cresset.int64):
        raise RuntimeError("compressed_indices_dtype should be either int(int32) or long(int64).")
    mask = mask.reshape(-1)
    return weight[mask], cresset.where(mask, mask.cumsum(0) - 1, -1).to(compressed_indices_dtype)


@overridable
def _masked_softmax(input, mask, dim=None, mask_type=None):
    """Softmax over `dim`, the last one by default, of the elements where the mask (bool) is false; where it is true the result is 0, NaN where it is true for all. The mask has the
    sizes of the input, or with mask_type 0 is (L, L) and with 1 (B, L) for an input (B, H, L, L). RuntimeError for others."""
    if mask.dtype is not cresset.bool:
        raise RuntimeError("Mask should be a boolean tensor")
    if mask_type in (0, 1) and input.dim() == 4 and mask.shape != input.shape:
        batch, length = input.shape[0], input.shape[2]
        if tuple(mask.shape) != ((length, length), (batch, length))[mask_type] or input.shape[3] != length:
            raise RuntimeError(f"For mask_type == {mask_type} mask shape should be {'(B, L)' if mask_type else '(L, L)'}")
        mask = mask.view((1, 1, length, length) if mask_type == 0 else (batch, 1, 1, length)).expand(input.shape)
    elif mask.shape != input.shape:
        raise RuntimeError("For mask_type == 2 mask shape should match input shape")
    if not input.is_floating_point():
        raise NotImplementedError(f"\"masked_softmax\" not implemented for '{word_of(input.dtype)}'")
    return input.masked_fill(mask, -float("inf")).softmax(input.dim() - 1 if dim is None else dim)


@overridable
def _transform_bias_rescale_qkv(qkv, qkv_bias, num_heads):
    """The three parts of (N, L, 3 D) with their biases added, as (N, num_heads, L, D / num_heads); the first divided by the square root of the last size.
    A nested tensor is filled up with zeros. RuntimeError where the sizes do not fit."""
    if qkv.is_nested:
        qkv = qkv.to_padded_tensor(0.0)
    if qkv.dim() != 3 or qkv.shape[-1] % 3 or qkv_bias.shape != qkv.shape[-1:]:
        raise RuntimeError(f"_transform_bias_rescale_qkv: (N, L, 3 D) and a bias of size 3 D were required; got {list(qkv.shape)} and {list(qkv_bias.shape)}.")
    size = qkv.shape[-1] // 3
    if num_heads <= 0 or size % num_heads:
        raise RuntimeError(f"_transform_bias_rescale_qkv: a number of heads that divides {size} was required; got {num_heads}.")
    parts = (qkv + qkv_bias).unflatten(-1, (3, num_heads, size // num_heads)).unbind(2)
    q, k, v = (part.transpose(1, 2).contiguous() for part in parts)
    return q / math.sqrt(size // num_heads), k, v
