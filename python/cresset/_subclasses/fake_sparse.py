"""Fakes of sparse tensors: they keep no element, and say nothing of how many the real ones keep.

Behind one stands a real sparse tensor of the same size without elements, on which operators run.
"""

import cresset
from cresset import _C
from cresset._recorded import recorded, recording
from cresset.sparse._validate import _COMPRESSED
from cresset.utils._python_dispatch import _disable_current_modes, no_dispatch
from cresset.utils._pytree import tree_map_only

from .fake_tensor import DynamicOutputShapeException, FakeTensor, with_gradient

__all__ = ["FakeSparse", "fake_of", "of_parts", "run"]


class FakeSparse(FakeTensor):
    """The fake of a sparse tensor; `_elem` is the tensor without elements."""

    @staticmethod
    def __new__(cls, fake_mode, elem, device):
        self = cresset.Tensor._make_wrapper_subclass(cls, tuple(elem.shape), dtype=elem.dtype, device=device)
        _C._give_layout(self, elem.layout)
        self._elem, self.fake_mode, self.fake_device, self.constant, self.real_tensor = elem, fake_mode, cresset.device(device), None, None
        return self

    layout = property(lambda self: self._elem.layout)
    is_sparse = property(lambda self: self._elem.is_sparse)
    is_sparse_csr = property(lambda self: self._elem.is_sparse_csr)

    def _of_elem(self, name, *args, **kwargs):
        with _disable_current_modes():
            return _wrapped(self.fake_mode, self.fake_device, getattr(self._elem, name)(*args, **kwargs))

    def to_dense(self, dtype=None, *, masked_grad=None):
        """The fake of the strided tensor."""
        if recording():
            return recorded("to_dense", self, dtype, **({} if masked_grad is None else {"masked_grad": masked_grad}))
        with no_dispatch():
            meta = cresset.empty(self.shape, dtype=dtype or self.dtype, device="meta")
        return self.fake_mode._wrap(meta, self.fake_device)

    _to_dense = to_dense

    def to_sparse(self, sparse_dim=None, **options):
        """The fake in another sparse layout."""
        if recording():
            return recorded("to_sparse", self, *([] if sparse_dim is None else [sparse_dim]), **options)
        return self._of_elem("to_sparse", sparse_dim, **options)

    def to_sparse_coo(self):
        """The fake in coordinates."""
        return self.to_sparse()

    def sparse_mask(self, mask):
        """A fake with the layout and the size of the mask."""
        if recording():
            return recorded("sparse_mask", self, mask)
        return FakeSparse(self.fake_mode, mask._elem.to(self.dtype), self.fake_device)

    def untyped_storage(self):
        raise NotImplementedError("Cannot access storage of SparseTensorImpl")

    storage = _typed_storage = untyped_storage

    def __repr__(self, *, tensor_contents=None):
        elem, pad = self._elem, ",\n" + " " * len("FakeTensor(")
        names = ("indices", "values") if elem.is_sparse else (*_COMPRESSED[elem.layout][:2], "values")
        parts = elem._parts()[: len(names)]
        shown = pad.join(f"{name}=tensor(..., size={tuple(part.shape)})" for name, part in zip(names, parts))
        return f"FakeTensor({shown}{pad if elem.is_sparse else ', '}size={tuple(self.shape)}, layout={self.layout})"

    def __deepcopy__(self, memo):
        return memo.setdefault(id(self), FakeSparse(self.fake_mode, self._elem, self.fake_device))


def _method(name, recorded_too):
    def method(self, *args, **kwargs):
        return recorded(name, self, *args, **kwargs) if recorded_too and recording() else self._of_elem(name, *args, **kwargs)

    method.__name__ = name
    method.__doc__ = f"`{name}` of a sparse tensor, without its elements."
    return method


for _name in ("coalesce", "indices", "values", "_indices", "_values", "crow_indices", "col_indices", "ccol_indices", "row_indices"):
    setattr(FakeSparse, _name, _method(_name, True))
for _name in ("to_sparse_csr", "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc"):
    setattr(FakeSparse, _name, _method(_name, True))
for _name in ("sparse_dim", "dense_dim", "is_coalesced", "_nnz", "_dimI", "_dimV"):
    setattr(FakeSparse, _name, _method(_name, False))


def _emptied(sparse):
    from cresset.sparse._create import empty_like

    return empty_like(sparse.detach())


def fake_of(mode, sparse):
    """The fake of a real sparse tensor."""
    with _disable_current_modes(), cresset.no_grad():
        fake = FakeSparse(mode, _emptied(sparse), sparse.device)
    return with_gradient(fake, sparse.requires_grad)


def of_parts(size, dtype, layout, parts, **form):
    """The fake of a sparse tensor of this size that is made of tensors of which some are fake; form: blocksize, sparse_dim or dense_dim."""
    part = next(p for p in parts if isinstance(p, FakeTensor))
    if size is None:
        raise DynamicOutputShapeException(cresset.ops.aten.sparse_coo_tensor.indices)
    with _disable_current_modes(), cresset.no_grad():
        zeros = cresset.zeros(1, dtype=dtype).expand(tuple(size))
        elem = zeros.to_sparse(form["sparse_dim"]) if "sparse_dim" in form else zeros.to_sparse(layout=layout, **form)
        return FakeSparse(part.fake_mode, _emptied(elem), part.device)


def _wrapped(mode, device, results):
    def wrap(real):
        if isinstance(real, FakeTensor):
            return real
        if real.layout is not cresset.strided:
            return FakeSparse(mode, _emptied(real), device)
        with no_dispatch():
            return mode._wrap(real.to("meta"), device)

    return tree_map_only(cresset.Tensor, wrap, results)


def run(mode, func, args, kwargs, device):
    """An operator with fakes of sparse tensors among its arguments: on tensors without elements, and on zeros in place of strided ones."""
    originals = {}

    def example(fake):
        if isinstance(fake, FakeSparse):
            originals[id(fake._elem)] = fake
            return fake._elem
        zero = cresset.zeros((), dtype=fake.dtype)
        return zero if not fake.dim() else zero.expand(fake.shape)

    with _disable_current_modes(), cresset.no_grad():
        real_args, real_kwargs = tree_map_only(FakeTensor, example, (args, kwargs))
        results = func(*real_args, **real_kwargs)
        same = lambda real: originals.get(id(real), real)  # noqa: E731  in place
        return _wrapped(mode, device, tree_map_only(cresset.Tensor, same, results))
