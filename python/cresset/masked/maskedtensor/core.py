"""The class MaskedTensor: its checks, its text, and how functions and operators reach their rules."""

import warnings

import cresset

_DTYPES = (cresset.float16, cresset.float32, cresset.float64, cresset.bool, cresset.int8, cresset.int16, cresset.int32, cresset.int64)
_rules = {}
""""function" and "operator": what gives the rule of one, or None. The module of the rules enters them here."""
_LAYOUTS = (cresset.strided, cresset.sparse_coo, cresset.sparse_csr)


def is_masked_tensor(obj):
    """Whether `obj` is a MaskedTensor."""
    return isinstance(obj, MaskedTensor)


def _indices(tensor):
    if tensor.layout is cresset.sparse_coo:
        return (tensor._indices(),)
    return tensor.crow_indices(), tensor.col_indices()


def _same(a, b):
    """Whether two tensors have the same layout, size and elements."""
    if a.layout is not b.layout or a.shape != b.shape:
        return False
    if a.layout is cresset.strided:
        return cresset.equal(a, b)
    return all(map(cresset.equal, (*_indices(a), a._values() if a.is_sparse else a.values()), (*_indices(b), b._values() if b.is_sparse else b.values())))


def _tensors_match(a, b, exact=True, rtol=1e-05, atol=1e-08):
    """Whether two plain tensors have the same layout, dtype and size, and the same (or, with exact=False, nearly the same) elements. ValueError
    for MaskedTensors."""
    if is_masked_tensor(a) or is_masked_tensor(b):
        raise ValueError("Neither `a` nor `b` can be a MaskedTensor.")
    if a.layout is not b.layout:
        raise ValueError(f"`a` and `b` must have the same layout. Got {a.layout} and {b.layout}")
    if a.dtype != b.dtype:
        b = b.to(a.dtype)
    if a.layout is not cresset.strided:
        if a.shape != b.shape or not all(map(cresset.equal, _indices(a), _indices(b))):
            return False
        a, b = values(a), values(b)
    if a.shape != b.shape:
        return False
    return cresset.equal(a, b) if exact else cresset.allclose(a, b, rtol=rtol, atol=atol)


def _masks_match(a, b):
    """Whether two MaskedTensors have the same mask; True where one of them is none."""
    return _same(a._mask, b._mask) if is_masked_tensor(a) and is_masked_tensor(b) else True


def values(tensor):
    """What a plain tensor keeps: the elements of a strided one, the values of a sparse one."""
    if tensor.layout is cresset.strided:
        return tensor
    return tensor._values() if tensor.is_sparse else tensor.values()


def with_values(tensor, new):
    """A plain tensor like `tensor` with other values."""
    if tensor.layout is cresset.strided:
        return new
    if tensor.is_sparse:
        return cresset.sparse_coo_tensor(tensor._indices(), new, tensor.shape, is_coalesced=True)
    return cresset.sparse_csr_tensor(tensor.crow_indices(), tensor.col_indices(), new, tensor.shape)


def dense(tensor):
    return tensor if tensor.layout is cresset.strided else tensor.to_dense()


def check(data, mask):
    """The errors of a pair that makes no MaskedTensor."""
    if not isinstance(data, cresset.Tensor) or is_masked_tensor(data):
        raise TypeError("data must be a Tensor")
    if not isinstance(mask, cresset.Tensor) or is_masked_tensor(mask):
        raise TypeError("mask must be a Tensor")
    if data.layout is not mask.layout:
        raise TypeError("data and mask must have the same layout.")
    if data.layout not in _LAYOUTS:
        raise TypeError(f"data layout of {data.layout} is not supported.")
    if data.layout is not cresset.strided and data.shape == mask.shape and not all(map(cresset.equal, _indices(data), _indices(mask))):
        if data.is_sparse:
            raise ValueError("data and mask are both sparse COO tensors but do not have the same indices.")
        raise ValueError("data and mask are both sparse CSR tensors but do not share either crow or col indices.")
    if mask.dtype != cresset.bool:
        raise TypeError("mask must have dtype bool.")
    if data.dtype not in _DTYPES:
        raise TypeError(f"{data.dtype} is not supported in MaskedTensor.")
    if data.dim() != mask.dim():
        raise ValueError("data.dim() must equal mask.dim()")
    if data.shape != mask.shape:
        raise ValueError("data.size() must equal mask.size()")


def make(data, mask, requires_grad=False):
    """A MaskedTensor of these very tensors, unchecked."""
    strided = data.layout is cresset.strided
    result = cresset.Tensor._make_wrapper_subclass(
        MaskedTensor, data.shape, strides=data.stride() if strided else None, dtype=data.dtype, device=data.device, requires_grad=requires_grad,
        dispatch_layout=not strided,
    )  # fmt: skip
    result._data, result._mask = data.detach(), mask.detach()
    return result


class Data(cresset.autograd.Function):
    """The data of a MaskedTensor as a plain tensor; the gradient has its mask."""

    @staticmethod
    def forward(ctx, masked):
        ctx.mask = masked._mask
        return masked._data.detach()

    @staticmethod
    def backward(ctx, grad):
        if is_masked_tensor(grad):
            return grad
        mask = ctx.mask
        if grad.layout is not mask.layout:
            grad = grad.sparse_mask(mask) if grad.layout is cresset.strided else grad.to_dense()
        return make(grad, mask)


class Masked(cresset.autograd.Function):
    """A plain tensor under a mask; the gradient is a plain one, 0 where the mask is False."""

    @staticmethod
    def forward(ctx, data, mask):
        return make(data, mask)

    @staticmethod
    def backward(ctx, grad):
        return to_tensor(grad, 0) if is_masked_tensor(grad) else grad, None


class AsMasked(cresset.autograd.Function):
    """A plain tensor under a mask; the gradient stays a MaskedTensor."""

    @staticmethod
    def forward(ctx, data, mask):
        return make(data.clone(), mask)

    @staticmethod
    def backward(ctx, grad):
        return grad, None


def to_tensor(masked, value):
    """A plain tensor with `value` where the mask is False, detached."""
    if masked._data.layout is not cresset.strided:
        return with_values(masked._data, values(masked._data).masked_fill(~values(masked._mask), value))
    return masked._data.masked_fill(~masked._mask, value)


def _read(data, mask, requires_grad):
    """A MaskedTensor of a file, over the file's own tensors: those of older formats have no data yet."""
    from cresset.serialization._options import when_read

    when_read(lambda: check(data, mask))
    return make(data, mask, requires_grad)


class MaskedTensor(cresset.Tensor):
    """A tensor with a mask of its shape: elements where the mask is False are left out of reductions, and operators keep the mask.

    `MaskedTensor(data, mask, requires_grad=False)` copies both. `data` is strided, sparse COO or sparse CSR, of a real floating, integer or bool
    dtype; `mask` is bool, of the same shape and layout (and indices, where sparse). TypeError or ValueError otherwise. Elementwise operators take
    two MaskedTensors of equal masks, or one and a plain operand; an operator without a rule raises TypeError.
    """

    @staticmethod
    def __new__(cls, data, mask, requires_grad=False):
        check(data, mask)
        if data.requires_grad:
            warnings.warn(
                "It is not recommended to create a MaskedTensor with a tensor that requires_grad. "
                "To avoid this, you can use data.detach().clone()",
                UserWarning,
                stacklevel=2,
            )
        return make(data.detach().clone(), mask.detach().clone(), requires_grad)

    def __reduce_ex__(self, protocol):
        return _read, (self._data, self._mask, self.requires_grad)

    def __deepcopy__(self, memo):
        return memo.setdefault(id(self), MaskedTensor(self._data, self._mask, self.requires_grad))

    def __repr__(self, *, tensor_contents=None):
        return text(self)

    __str__ = __repr__

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        rule = _rules["function"](func)
        if rule is not None:
            with cresset._C.DisableTorchFunctionSubclass():
                return rule(*args, **(kwargs or {}))
        if not all(issubclass(cls, t) for t in types):
            return NotImplemented
        with cresset._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        rule = _rules["operator"](func)
        return NotImplemented if rule is None else rule(func, *args, **(kwargs or {}))

    def get_data(self):
        """The elements as a plain tensor, differentiably; what stands where the mask is False is not defined."""
        return Data.apply(self)

    def get_mask(self):
        """The mask: a bool tensor of this shape and layout, True where an element counts."""
        return self._mask

    def to_tensor(self, value):
        """A plain tensor with `value` where the mask is False, differentiably."""
        data = self.get_data()
        return with_values(data, values(data).masked_fill(~values(self._mask), value))

    def is_sparse_coo(self):
        """Whether the layout is sparse_coo."""
        return self.layout is cresset.sparse_coo

    def is_sparse_csr(self):
        """Whether the layout is sparse_csr."""
        return self.layout is cresset.sparse_csr


def _number(value):
    return f"{value:8.4f}" if isinstance(value, float) else str(value)


def _rows(data, mask, indent):
    if data.dim() == 1:
        row = [_number(x) if kept else "--".rjust(8) for x, kept in zip(data.tolist(), mask.tolist(), strict=True)]
        return indent + "[" + ", ".join(row) + "]"
    rows = ",\n".join(_rows(d, m, indent + "  ") for d, m in zip(data, mask, strict=True))
    return f"{indent}[\n{rows}\n{indent}]"


def text(masked):
    data, mask = dense(masked._data), dense(masked._mask)
    if data.dim() == 0:
        return f"MaskedTensor({_number(data.item()) if mask.item() else '--'}, {mask.item()})"
    return f"MaskedTensor(\n{_rows(data, mask, '  ')}\n)"
