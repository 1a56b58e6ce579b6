"""Views, copies of them, new tensors, and how gradients of views are put back."""

import cresset

from ._rules import aten, last_first, rule


@rule("t")
def t(self):
    if self.dim() > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {self.dim()}D")
    return aten.permute.default(self, [1, 0] if self.dim() == 2 else list(range(self.dim())))


@rule("transpose.int")
def transpose(self, dim0, dim1):
    order = list(range(self.dim()))
    if order:
        dim0, dim1 = dim0 % self.dim(), dim1 % self.dim()
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return aten.permute.default(self, order)


@rule("detach", inplace=False)
def detach(self):
    return aten.alias.default(self)


@rule("squeeze")
def squeeze(self):
    return aten.squeeze.dims(self, [d for d in range(self.dim()) if self.shape[d] == 1])


@rule("squeeze.dim")
def squeeze_dim(self, dim):
    return aten.squeeze.dims(self, [dim])


@rule("unbind.int")
def unbind(self, dim=0):
    return [aten.select.int(self, dim, i) for i in range(self.shape[dim])]


@rule("split.Tensor")
def split(self, split_size, dim=0):
    return aten.split_with_sizes.default(self, _parts(self.shape[dim], split_size), dim)


def _parts(length, size):
    if size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
    if size == 0:
        if length:
            raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {length}")
        return [0]
    count = max((length + size - 1) // size, 1)
    return [size] * (count - 1) + [length - size * (count - 1)]


@rule("unsafe_split.Tensor")
def unsafe_split(self, split_size, dim=0):
    return split(self, split_size, dim)


@rule("unsafe_split_with_sizes")
def unsafe_split_with_sizes(self, split_sizes, dim=0):
    return aten.split_with_sizes.default(self, split_sizes, dim)


@rule("split_with_sizes_copy")
def split_with_sizes_copy(self, split_sizes, dim=0):
    return [part.clone() for part in aten.split_with_sizes.default(self, split_sizes, dim)]


@rule("_unsafe_view")
def _unsafe_view(self, size):
    return aten.view.default(self, size)


@rule("_reshape_alias")
def _reshape_alias(self, size, stride):
    return aten.view.default(self, size)


@rule("diag_embed")
def diag_embed(self, offset=0, dim1=-2, dim2=-1):
    rank = self.dim() + 1
    dim1, dim2 = dim1 % rank, dim2 % rank
    if dim1 == dim2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    if dim1 > dim2:
        dim1, dim2, offset = dim2, dim1, -offset
    last = self.shape[-1]
    if offset:
        shape = [*self.shape[:-1], abs(offset)]
        gap = self.new_zeros(shape)
        self = cresset.cat([gap, self] if offset > 0 else [self, gap], -1)
        last += abs(offset)
    wide = self.unsqueeze(dim1).movedim(-1, dim2)
    rows = cresset.arange(last, device=self.device)
    cond = (rows == (rows + offset).unsqueeze(-1)).reshape([last if d in (dim1, dim2) else 1 for d in range(wide.dim())])
    return cresset.where(cond, wide, 0)


@rule("alias_copy")
def alias_copy(self):
    return aten.clone.default(self)


def _copy_of(view):
    def copy(self, *args, **kwargs):
        return view(self, *args, **kwargs).clone(memory_format=cresset.contiguous_format)

    copy.__name__ = f"{view.overloadpacket.__name__}_copy"
    return copy


for _view, _core in (
    ("diagonal", True), ("expand", True), ("squeeze", True), ("squeeze.dim", True), ("squeeze.dims", True), ("t", True), ("transpose.int", True),
    ("unsqueeze", True), ("unfold", True), ("permute", False), ("view", False), ("view.dtype", False),
):  # fmt: skip
    _name, _, _overload = _view.partition(".")
    rule(f"{_name}_copy.{_overload or 'default'}", core=_core)(_copy_of(getattr(getattr(aten, _name), _overload or "default")))


@rule("select_scatter")
def select_scatter(self, src, dim, index):
    rank = self.dim()
    dim = last_first(dim, rank)
    index = index + self.shape[dim] if index < 0 else index
    here = cresset.arange(0, self.shape[dim], device=self.device).view([-1 if d == dim else 1 for d in range(rank)]) == index
    return cresset.where(here, src.unsqueeze(dim).expand(self.shape), self)


@rule("select_backward")
def select_backward(grad_output, input_sizes, dim, index):
    return aten.select_scatter.default(grad_output.new_zeros(input_sizes), grad_output, dim, index)


@rule("slice_backward")
def slice_backward(grad_output, input_sizes, dim, start, end, step):
    return aten.slice_scatter.default(grad_output.new_zeros(input_sizes), grad_output, dim, start, end, step)


@rule("diagonal_backward")
def diagonal_backward(grad_output, input_sizes, offset, dim1, dim2):
    return aten.diagonal_scatter.default(grad_output.new_zeros(input_sizes), grad_output, offset, dim1, dim2)


@rule("stack")
def stack(tensors, dim=0):
    shape = list(tensors[0].shape)
    for at, tensor in enumerate(tensors):
        if list(tensor.shape) != shape:
            raise RuntimeError(f"stack expects each tensor to be equal size, but got {shape} at entry 0 and {list(tensor.shape)} at entry {at}")
    rank = len(shape) + 1
    dim %= rank
    if dim == rank - 1:
        return cresset.cat([t.unsqueeze(dim) for t in tensors], dim)
    return cresset.cat(tensors, dim).view([*shape[:dim], len(tensors), *shape[dim:]])


@rule("roll")
def roll(self, shifts, dims=()):
    shifts = [shifts] if isinstance(shifts, int) else list(shifts)
    dims = [dims] if isinstance(dims, int) else list(dims)
    if not dims:
        return roll(self.flatten(), shifts, [0]).view(self.shape)
    for shift, dim in zip(shifts, dims):
        length = self.shape[dim]
        if length:
            at = (length - shift) % length
            self = self.index_select(dim, cresset.fmod(cresset.arange(length, device=self.device) + at, length))
    return self.clone() if not shifts else self


@rule("rot90")
def rot90(self, k=1, dims=(0, 1)):
    first, second = dims
    k %= 4
    if k == 1:
        return cresset.transpose(cresset.flip(self, [second]), first, second)
    if k == 2:
        return cresset.flip(self, [first, second])
    if k == 3:
        return cresset.transpose(cresset.flip(self, [first]), first, second)
    return self.clone(memory_format=cresset.contiguous_format)


def _triangle(self, keep):
    rows, columns = cresset.arange(self.shape[-2], device=self.device), cresset.arange(self.shape[-1], device=self.device)
    kept = keep(columns.unsqueeze(-2) - rows.unsqueeze(-1))
    return cresset.logical_and(kept, self) if self.dtype == cresset.bool else cresset.where(kept, self, 0)


@rule("tril")
def tril(self, diagonal=0):
    return _triangle(self, lambda distance: distance <= diagonal)


@rule("triu")
def triu(self, diagonal=0):
    return _triangle(self, lambda distance: distance >= diagonal)


@rule("zero")
def zero(self):
    return cresset.zeros_like(self)


@rule("fill.Scalar")
def fill_scalar(self, value):
    return aten.full_like.default(self, value)


@rule("fill.Tensor")
def fill_tensor(self, value):
    if value.dim():
        raise RuntimeError(f"fill only supports 0-dimension value tensor but got tensor with {value.dim()} dimensions")
    return aten.copy.default(self, value) if hasattr(aten, "copy") else aten.copy_(aten.empty_like(self), value)


def _options(like, dtype, layout, device, pin_memory):
    given = {"dtype": dtype or like.dtype, "layout": layout or like.layout, "device": device or like.device}
    return {**given, "pin_memory": pin_memory or False}


@rule("new_empty")
def new_empty(self, size, *, dtype=None, layout=None, device=None, pin_memory=None):
    return cresset.empty(size, **_options(self, dtype, layout, device, pin_memory))


@rule("new_zeros")
def new_zeros(self, size, *, dtype=None, layout=None, device=None, pin_memory=None):
    return aten.full.default(size, 0, **_options(self, dtype, layout, device, pin_memory))


@rule("new_ones")
def new_ones(self, size, *, dtype=None, layout=None, device=None, pin_memory=None):
    return aten.full.default(size, 1, **_options(self, dtype, layout, device, pin_memory))


@rule("new_full")
def new_full(self, size, fill_value, *, dtype=None, layout=None, device=None, pin_memory=None):
    return aten.full.default(size, fill_value, **_options(self, dtype, layout, device, pin_memory))


@rule("zeros_like")
def zeros_like(self, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    given = {"dtype": dtype, "layout": layout, "device": device, "pin_memory": pin_memory, "memory_format": memory_format}
    return aten.full_like.default(self, 0, **given)


@rule("ones_like")
def ones_like(self, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    given = {"dtype": dtype, "layout": layout, "device": device, "pin_memory": pin_memory, "memory_format": memory_format}
    return aten.full_like.default(self, 1, **given)


@rule("zeros")
def zeros(size, **options):
    return aten.full.default(size, 0, **_defaults(options))


@rule("ones")
def ones(size, **options):
    return aten.full.default(size, 1, **_defaults(options))


def _defaults(options):
    return {**options, "dtype": options.get("dtype") or cresset.get_default_dtype()}


@rule("arange")
def arange(end, **options):
    return aten.arange.start_step(0, end, 1, **options)


@rule("arange.start")
def arange_start(start, end, **options):
    return aten.arange.start_step(start, end, 1, **options)


@rule("eye")
def eye(n, **options):
    return eye_m(n, n, **options)


@rule("eye.m")
def eye_m(n, m, **options):
    device = options.get("device")
    rows, columns = cresset.arange(n, device=device), cresset.arange(m, device=device)
    dtype = options.get("dtype") or cresset.get_default_dtype()
    return cresset.where(rows.unsqueeze(-1) == columns, aten.full.default([1], 1, dtype=dtype, device=device), aten.full.default([1], 0, dtype=dtype, device=device))


@rule("pixel_shuffle")
def pixel_shuffle(self, upscale_factor):
    c, h, w = self.shape[-3:]
    r, front = upscale_factor, list(self.shape[:-3])
    n = len(front)
    parts = self.view([*front, c // r**2, r, r, h, w]).permute([*range(n), n, n + 3, n + 1, n + 4, n + 2])
    return parts.reshape([*front, c // r**2, h * r, w * r])


@rule("pixel_unshuffle")
def pixel_unshuffle(self, downscale_factor):
    c, h, w = self.shape[-3:]
    r, front = downscale_factor, list(self.shape[:-3])
    n = len(front)
    parts = self.view([*front, c, h // r, r, w // r, r]).permute([*range(n), n, n + 2, n + 4, n + 1, n + 3])
    return parts.reshape([*front, c * r**2, h // r, w // r])


@rule("channel_shuffle")
def channel_shuffle(self, groups):
    n, c, *spatial = self.shape
    return self.reshape([n, groups, c // groups, *spatial]).transpose(1, 2).reshape(self.shape)
