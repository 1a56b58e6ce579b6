"""Nested tensors: a batch of tensors whose shapes differ in one dimension, kept one behind the other without padding.

Of the layout `strided`, which `layout=None` means, components of any sizes have a buffer; of `jagged` they differ in one dimension, and many more
functions take them.
"""

import cresset

from ._internal import ops, reductions  # noqa: F401  what nested tensors can do
from ._internal.nested_tensor import NestedTensor, from_list
from ._internal.strided import StridedNested, strided_from_list

__all__ = ["as_nested_tensor", "masked_select", "narrow", "nested_tensor", "nested_tensor_from_jagged", "to_padded_tensor"]


def _is_jagged(layout):
    if layout not in (None, cresset.strided, cresset.jagged):
        raise RuntimeError(f"Specified layout is unsupported for nested tensors: {layout}")
    return layout is cresset.jagged


def _check_layout(layout):
    if not _is_jagged(layout):
        raise RuntimeError("start and length must be integers for the strided layout NT impl")


def nested_tensor(tensor_list, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """A nested tensor of copies of a list of tensors (or what `tensor` takes), a leaf of the graph.

    All have the same number of dimensions. Of the layout jagged it is at least one, dtypes and devices are the same, and sizes differ in at most one
    dimension. RuntimeError otherwise, TypeError for what is no list. `pin_memory` as `tensor`.
    """
    jagged = _is_jagged(layout)
    if not isinstance(tensor_list, (list, tuple)):
        raise TypeError("Only lists (List[Tensor] and List[List...[Scalar]]) are accepted in nested_tensor")
    parts = [t.detach() if isinstance(t, cresset.Tensor) else t for t in tensor_list]
    with cresset.no_grad():
        made = from_list(parts, dtype=dtype, device=device) if jagged else strided_from_list(parts, dtype, device)
        if pin_memory:
            made = made._like(made.values().pin_memory())
    return made.requires_grad_(requires_grad)


def as_nested_tensor(ts, dtype=None, device=None, layout=None):
    """A nested tensor of a list of tensors, or of the rows of one tensor, through which gradients flow to them. Errors as nested_tensor's."""
    jagged = _is_jagged(layout)
    if isinstance(ts, (NestedTensor, StridedNested)):
        if isinstance(ts, NestedTensor) is not jagged and layout is not None:
            raise RuntimeError("as_nested_tensor(): Converting between nested tensor layouts is not supported")
        return ts.to(dtype=dtype or ts.dtype, device=device or ts.device)
    if isinstance(ts, cresset.Tensor):
        if ts.dim() < 2:
            raise RuntimeError("as_nested_tensor(): Expected tensor argument to have dim() > 1")
        ts = ts.to(dtype=dtype or ts.dtype, device=device or ts.device)
        if not jagged:
            return StridedNested(ts.view(-1), [tuple(ts.shape[1:])] * len(ts)) if ts.is_contiguous() else strided_from_list(ts.unbind())
        n, length = ts.shape[:2]
        offsets = cresset.arange(0, n * length + 1, max(length, 1), device=ts.device) if length else cresset.zeros(n + 1, dtype=cresset.int64)
        return NestedTensor(ts.reshape(n * length, *ts.shape[2:]), offsets, _min_seqlen=length, _max_seqlen=length)
    if not isinstance(ts, (list, tuple)):
        raise TypeError(f"as_nested_tensor(): Expected first argument to be a tensor or a list / tuple of tensors, got {type(ts)}")
    if not all(isinstance(t, cresset.Tensor) for t in ts):
        raise TypeError("as_nested_tensor(): Expected list / tuple of tensors")
    return from_list(ts, dtype=dtype, device=device) if jagged else strided_from_list(ts, dtype, device)


def _is_symbolic_trace(value):
    import sys

    proxies = sys.modules.get(f"{cresset.__name__}.fx.proxy")
    return proxies is not None and isinstance(value, proxies.Proxy)


def nested_tensor_from_jagged(values, offsets=None, lengths=None, jagged_dim=None, min_seqlen=None, max_seqlen=None):
    """A nested tensor over `values`, a view of them.

    `offsets` (B + 1,) are where the components begin in dimension `jagged_dim - 1` of the values, and their end; with `lengths` (B,) they may be
    shorter than up to the next, and without offsets they lie close together. `min_seqlen` and `max_seqlen` are taken as they are.
    RuntimeError with neither.
    """
    if _is_symbolic_trace(values):
        raise RuntimeError("torch.nested.nested_tensor_from_jagged does not support tracing with fx.symbolic_trace. Use fx.wrap to wrap the function that calls it.")
    if offsets is None:
        if lengths is None:
            raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
        offsets = cresset.nn.functional.pad(lengths.cumsum(0), (1, 0))
        lengths = None
    jagged_dim = 1 if jagged_dim is None else jagged_dim
    if not 1 <= jagged_dim <= values.dim():
        raise RuntimeError(f"nested_tensor_from_jagged(): jagged_dim must be from 1 to {values.dim()}, got {jagged_dim}.")
    return NestedTensor(values, offsets, lengths=lengths, _ragged_idx=jagged_dim, _min_seqlen=min_seqlen, _max_seqlen=max_seqlen)


def narrow(tensor, dim, start, length, layout=None):
    """A nested tensor of parts of the rows of a dense one: row i from start[i] on, length[i] long (numbers or tensors of shape (B,)).

    `dim` must be 1 (RuntimeError). A view, with holes where rows are not taken whole.
    """
    _check_layout(layout)
    if dim != 1:
        raise RuntimeError("jagged layout only supports dim=1")
    n, row = tensor.shape[:2]
    device = tensor.device
    start, length = (
        x.to(device=device, dtype=cresset.int64) if isinstance(x, cresset.Tensor) else cresset.full((n,), x, dtype=cresset.int64, device=device) for x in (start, length)
    )  # fmt: skip
    if bool((start < 0).any() | (length < 0).any() | (start + length > row).any()):
        raise RuntimeError("narrow(): start and length must lie within the rows of the tensor")
    begins = cresset.arange(n, device=device) * row + start
    offsets = cresset.cat([begins, begins[-1:] + length[-1:]])
    whole = bool((offsets.diff() == length).all())
    values = tensor.reshape(n * row, *tensor.shape[2:])
    if whole:
        values, offsets = values[int(offsets[0]) : int(offsets[-1])], offsets - offsets[0]
    low, high = (int(length.min()), int(length.max())) if n else (0, 0)
    return NestedTensor(values, offsets, lengths=None if whole else length, _min_seqlen=low, _max_seqlen=high)


def masked_select(tensor, mask):
    """A nested tensor with a row for each row of `tensor` (along its last dimension; other dimensions are flattened, and a number is one row): the
    elements where `mask`, which expands to the shape of `tensor`, is true. RuntimeError for layouts other than strided."""
    if tensor.layout is not cresset.strided:
        raise RuntimeError(f"torch.nested.masked_select requires a strided tensor, given {tensor.layout}")
    if mask.layout is not cresset.strided:
        raise RuntimeError(f"torch.nested.masked_select requires a strided mask, given: {mask.layout}")
    mask = mask.expand(tensor.shape)
    rows = mask.sum(-1).reshape(-1)
    return NestedTensor(tensor.masked_select(mask), cresset.nn.functional.pad(rows.cumsum(0), (1, 0)))


def to_padded_tensor(input, padding, output_size=None):
    """The components of a nested tensor in one dense tensor, filled up with `padding`; see NestedTensor.to_padded_tensor."""
    if not isinstance(input, (NestedTensor, StridedNested)):
        raise RuntimeError(f"to_padded_tensor: a nested tensor was required; {type(input).__name__} was given.")
    return input.to_padded_tensor(padding, output_size)
