"""Constructors of sparse tensors from before dtypes: sparse.FloatTensor(indices, values, size) and its kin."""

import operator
import warnings

import cresset
from cresset import _legacy

_ONLY_SIZES = (
    "torch.sparse.SparseTensor(sequence) only accepts sizes.  Please use torch.sparse_coo_tensor() or construct a strided tensor and convert it "
    "to sparse via to_sparse."
)
_FORMS = "(), (*size), (Tensor indices, Tensor values) or (Tensor indices, Tensor values, tuple of ints size), each with a device by name"


class sparsetype(_legacy.tensortype):  # noqa: N801
    """The type of the legacy types of sparse tensors. They make coordinate tensors; `isinstance` asks for layout, dtype and device."""

    def __call__(cls, *args, device=None, **named):
        for name in ("indices", "values", "size")[len(args) :]:
            if name not in named:
                break
            args = (*args, named.pop(name))
        if named:
            raise TypeError(f"new() received an invalid combination of arguments - got {', '.join(named)} by name, but expected {_FORMS}")
        if device is not None and cresset.device(device).type != "cpu":
            raise RuntimeError(f"legacy constructor expects device type: cpu but device type: {cresset.device(device).type} was passed")
        warnings.warn(f"torch.sparse.{cls.__name__} is deprecated. Use torch.sparse_coo_tensor(indices, values, size, dtype=, device=).", stacklevel=2)
        if len(args) in (2, 3) and all(isinstance(a, cresset.Tensor) for a in args[:2]):
            return cresset.sparse_coo_tensor(*args)  # of the dtype of its values
        if len(args) == 1 and isinstance(args[0], cresset.Size):
            args = tuple(args[0])
        if len(args) == 1 and isinstance(args[0], (list, tuple)):
            raise TypeError(_ONLY_SIZES)
        try:
            size = [operator.index(a) for a in args] if args else [0]
        except TypeError:
            given = ", ".join(type(a).__name__ for a in args)
            raise TypeError(f"new() received an invalid combination of arguments - got ({given}), but expected {_FORMS}") from None
        return cresset.sparse_coo_tensor(size, dtype=cls.dtype)

    @property
    def layout(cls):
        return cresset.sparse_coo

    is_sparse = True


def types():
    """The legacy types of sparse tensors by name."""
    return _legacy.types(sparsetype, "cresset.sparse", "Sparse tensors", (cresset.bool,))
