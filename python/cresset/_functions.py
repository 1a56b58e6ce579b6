"""Functions of the package that are not operators: questions about tensors and thin conveniences over operators."""

import itertools
from collections.abc import Sequence

import cresset

from . import _C
from ._C import Tensor
from ._overridable import asks, overridable

__all__ = [
    "is_tensor", "is_floating_point", "is_complex", "is_nonzero", "numel", "typename", "broadcast_shapes", "asarray",
    "set_default_device", "get_default_device", "compiled_with_cxx11_abi", "is_same_size", "is_inference", "is_signed",
    "nonzero", "split", "einsum", "meshgrid", "broadcast_tensors", "cartesian_prod", "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "lu",
    "unravel_index", "_segment_reduce", "legacy_contiguous_format", "set_num_interop_threads", "get_num_interop_threads", "from_dlpack",
]  # fmt: skip


def is_tensor(obj):
    """Is obj a Tensor?"""
    return isinstance(obj, Tensor)


def _require_tensor(name, input):
    if not isinstance(input, Tensor) and not hasattr(type(input), "__torch_function__"):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")


@overridable
def is_floating_point(input):
    """Is the dtype float16, bfloat16, float32 or float64?"""
    _require_tensor("is_floating_point", input)
    return input.is_floating_point()


@overridable
def is_complex(input):
    """Is the dtype complex?"""
    _require_tensor("is_complex", input)
    return input.is_complex()


@overridable
def is_signed(input):
    """Has the dtype negative values?"""
    _require_tensor("is_signed", input)
    return input.is_signed()


@overridable
def is_inference(input):
    """Was the tensor made in inference mode?"""
    _require_tensor("is_inference", input)
    return input.is_inference()


@overridable
def is_same_size(input, other):
    """Have both tensors the same sizes?"""
    _require_tensor("is_same_size", input)
    return input.is_same_size(other)


@overridable
def is_nonzero(input):
    """The truth of a tensor with one element."""
    _require_tensor("is_nonzero", input)
    return bool(input)


@overridable
def numel(input):
    """Number of elements."""
    _require_tensor("numel", input)
    return Tensor.numel(input)


@overridable
def nonzero(input, *, out=None, as_tuple=False):
    """Positions of the elements that are not zero: one row each, or with as_tuple one index tensor for each dimension.

    RuntimeError for as_tuple with out.
    """
    if as_tuple:
        if out is not None:
            raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
        return _C._VariableFunctions.nonzero_numpy(input)
    return _C._VariableFunctions.nonzero(input) if out is None else _C._VariableFunctions.nonzero(input, out=out)


def _operands(tensors):
    """The tensors of f(a, b) and of f([a, b])."""
    return list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)


_EINSUM_OPERANDS = "einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list"


def _subscripts(numbers):
    """A list of dimensions as letters: 0 is A, 26 is a."""
    for n in numbers:
        if n is not ... and not 0 <= n < 52:
            raise ValueError("einsum(): subscript in subscript list is not within the valid range [0, 52)")
    return "".join("..." if n is ... else chr(ord("A") + n) if n < 26 else chr(ord("a") + n - 26) for n in numbers)


@asks
def einsum(equation, *operands):
    """The sum of products that the equation names: einsum("ij,jk->ik", a, b), or einsum(a, [0, 1], b, [1, 2], [0, 2]).

    The operands may be one list. ValueError for a dimension that is not in [0, 52), or without operands.
    """
    if not isinstance(equation, str):
        args = (equation, *operands)
        if len(args) < 2:
            if _C._has_torch_function(args):
                from .overrides import handle_torch_function

                return handle_torch_function(einsum, args, *args)
            raise ValueError(_EINSUM_OPERANDS)
        equation = ",".join(map(_subscripts, args[1::2])) + (f"->{_subscripts(args[-1])}" if len(args) % 2 else "")
        operands = args[: len(args) // 2 * 2 : 2]
    operands = _operands(operands)
    if len(operands) == 0:
        raise ValueError(_EINSUM_OPERANDS)
    if _C._has_torch_function(operands):
        from .overrides import handle_torch_function

        return handle_torch_function(einsum, operands, equation, *operands)
    return _C._VariableFunctions.einsum(equation, operands)


@overridable
def meshgrid(*tensors, indexing=None):
    """One coordinate grid for each one-dimensional tensor; indexing is "ij" or "xy"."""
    if indexing is None:
        return _C._VariableFunctions.meshgrid(_operands(tensors))
    return _C._VariableFunctions.meshgrid(_operands(tensors), indexing=indexing)


@overridable
def broadcast_tensors(*tensors):
    """The tensors expanded to their common size."""
    return _C._VariableFunctions.broadcast_tensors(_operands(tensors))


@overridable
def atleast_1d(*tensors):
    """The tensor, or a tuple of all tensors, with a dimension where there was none."""
    return _C._VariableFunctions.atleast_1d(tensors[0] if len(tensors) == 1 else tensors)


@overridable
def atleast_2d(*tensors):
    """The tensor, or a tuple of all tensors, with new first dimensions where there were less than two."""
    return _C._VariableFunctions.atleast_2d(tensors[0] if len(tensors) == 1 else tensors)


@overridable
def atleast_3d(*tensors):
    """The tensor, or a tuple of all tensors, with new dimensions around where there were less than three."""
    return _C._VariableFunctions.atleast_3d(tensors[0] if len(tensors) == 1 else tensors)


@overridable
def cartesian_prod(*tensors):
    """Every combination of elements of the one-dimensional tensors, one a row."""
    return _C._VariableFunctions.cartesian_prod(_operands(tensors))


@overridable
def block_diag(*tensors):
    """A matrix with the tensors along its diagonal."""
    return _C._VariableFunctions.block_diag(_operands(tensors))


@overridable
def unravel_index(indices, shape):
    """Coordinates of flat indices in a tensor of sizes `shape`: one tensor for each dimension. TypeError for indices that are not
    integers or a shape that is not an int or a sequence of ints, ValueError for negative sizes."""
    if not (isinstance(indices, Tensor) and _is_integer(indices.dtype)):
        raise TypeError(f"expected 'indices' to be integer dtype, but got {getattr(indices, 'dtype', type(indices))}")
    if isinstance(shape, Tensor) or not isinstance(shape, (int, Sequence)):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    for size in sizes:
        if not isinstance(size, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(size)}")
    if any(size < 0 for size in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {sizes}")
    if not sizes:
        return ()
    below = list(itertools.accumulate(reversed(sizes[1:]), lambda a, b: a * b, initial=1))[::-1]
    coordinates = indices.unsqueeze(-1).floor_divide(cresset.tensor(below, dtype=cresset.int64, device=indices.device))
    return coordinates.remainder(cresset.tensor(sizes, dtype=cresset.int64, device=indices.device)).unbind(-1)


def _is_integer(dtype):
    return not (dtype.is_floating_point or dtype.is_complex or dtype == cresset.bool)


def typename(obj):
    """The kind of a tensor ("torch.FloatTensor"), the qualified name of a function or class, or that of another object's type."""
    if isinstance(obj, Tensor):
        return obj.type()
    if type(obj).__name__ == "tensortype":
        return f"torch.{obj.__name__}"
    named = obj if isinstance(getattr(obj, "__qualname__", None), str) and isinstance(getattr(obj, "__module__", None), str) else type(obj)
    return named.__qualname__ if named.__module__ in ("builtins", None) else f"{named.__module__}.{named.__qualname__}"


def broadcast_shapes(*shapes):
    """The common size to which tensors of these sizes broadcast; RuntimeError when there is none, ValueError for a negative length."""
    sizes = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    out = [1] * max((len(s) for s in sizes), default=0)
    for place, size in enumerate(sizes):
        for i in range(-1, -1 - len(size), -1):
            if size[i] < 0:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            if size[i] == 1 or size[i] == out[i]:
                continue
            if out[i] != 1:
                given = size if isinstance(shapes[place], int) else shapes[place]
                raise RuntimeError(
                    f"Attempting to broadcast a dimension of length {size[i]} at {i}! Mismatching argument at index {place} had {given}; "
                    f"but expected shape should be broadcastable to {out}"
                )
            out[i] = size[i]
    return cresset.Size(out)


@overridable
def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=None):
    """A tensor of obj; shares memory where it can unless copy is True, and raises ValueError when copy is False and it cannot.

    requires_grad: None keeps what obj has (False for what is no tensor), with its history; False cuts the history.
    """
    given = obj
    if not isinstance(obj, Tensor):
        obj = _over_memory(obj, dtype, copy)
    if obj is None:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        return cresset.tensor(given, dtype=dtype, device=device, requires_grad=bool(requires_grad))
    if copy is False:
        target = obj.device if device is None else cresset.device(device)
        if (target.type, target.index or 0) != (obj.device.type, obj.device.index or 0):
            raise ValueError(f"can't alias tensor from device '{obj.device}' to '{target}'.")
        if dtype is not None and dtype != obj.dtype:
            raise ValueError(f"can't alias tensor with dtype '{_dtype_name(obj.dtype)}' into dtype '{_dtype_name(dtype)}'.")
    out = cresset.as_tensor(obj, dtype=dtype, device=device)
    if copy and out.data_ptr() == obj.data_ptr():
        out = out.clone()
    if requires_grad is None or out.requires_grad == requires_grad:
        return out
    return out.requires_grad_(requires_grad) if out.is_leaf else out.detach()


def from_dlpack(ext_tensor, *, device=None, copy=None):
    """A tensor over the memory of an object with `__dlpack__`, or of a DLPack capsule.

    device: where the tensor lies; on another one it is a copy. copy: True for memory of its own, False for none. BufferError when copy=False and
    device contradict each other.
    """
    if device is None and copy is None:
        return _C.from_dlpack(ext_tensor)
    if type(ext_tensor).__name__ == "PyCapsule":
        raise AssertionError("device and copy kwargs not supported when ext_tensor is already a DLPack capsule.")
    tensor = _C.from_dlpack(ext_tensor)
    there = tensor.device if device is None else cresset.device(device)
    if there.type != tensor.device.type or there.index not in (None, tensor.device.index):
        if copy is False:
            raise BufferError(f"Cannot move the tensor from {tensor.device} to {there} without copying.")
        return tensor.to(there)
    return tensor.clone() if copy else tensor


def _dtype_name(dtype):
    """The dtype's name as messages have it: Float, Long, …"""
    return cresset.empty(0, dtype=dtype).type().rpartition(".")[2].removesuffix("Tensor")


def _over_memory(obj, dtype, copy):
    """A tensor over the memory of an array, a DLPack capsule or a buffer; None for an object that has no memory to share."""
    if hasattr(obj, "__array_interface__"):
        if any(cls.__name__ == "generic" and cls.__module__ == "numpy" for cls in type(obj).__mro__):
            if copy is False:
                raise RuntimeError("can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. ")
            return None
        return cresset.as_tensor(obj)
    if hasattr(obj, "__dlpack__") or type(obj).__name__ == "PyCapsule":
        return cresset.from_dlpack(obj)
    try:
        memoryview(obj)
    except TypeError:
        return None
    return cresset.frombuffer(obj, dtype=cresset.get_default_dtype() if dtype is None else dtype)


def get_default_device():
    """The device on which factory functions make tensors now."""
    from cresset.utils import _device

    return _device.get_default_device()


def set_default_device(device):
    """The device on which factory functions make tensors when they are given none; None for the CPU."""
    from cresset.utils import _device

    _device.set_default_device(device)


@overridable
def split(tensor, split_size_or_sections, dim=0):
    """Views of pieces along `dim`: of `split_size_or_sections` elements each, the last of what is left, or of the lengths in a list."""
    return _C._VariableFunctions.split(tensor, split_size_or_sections, dim)


@overridable
def lu(A, pivot=True, get_infos=False, out=None):
    """(LU, pivots) of linalg.lu_factor without its error for singular matrices; with get_infos (LU, pivots, info). TypeError for an out of another length."""
    factors = _C._VariableFunctions._lu_with_info(A, pivot, not get_infos)
    results = tuple(factors) if get_infos else tuple(factors[:2])
    if out is None:
        return results
    if not isinstance(out, (tuple, list)) or len(out) != len(results):
        raise TypeError(f"expected tuple of {len(results)} elements but got {len(out) if isinstance(out, (tuple, list)) else type(out).__name__}")
    for target, result in zip(out, results):
        target.resize_as_(result).copy_(result)
    return out


def compiled_with_cxx11_abi():
    """Always True."""
    return True


def set_num_interop_threads(n):
    """Threads that run forks of scripts and tasks of at::launch; once, and before the first of them."""
    if n <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    _C._set_num_interop_threads(n)


def get_num_interop_threads():
    """Threads that run forks of scripts and tasks of at::launch."""
    return _C._get_num_interop_threads()


# Names that PyTorch has for values of other modules.
_segment_reduce = _C._VariableFunctions.segment_reduce
legacy_contiguous_format = _C.contiguous_format
