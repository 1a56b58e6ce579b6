"""What operators do with quantized tensors, below autograd: a rule by the operator's name. What has no rule is refused in PyTorch's words."""

import cresset

from .. import _C
from .._dtype_info import word_of
from .._layout_kernels import kernel_of, kernels
from ._functions import quantized
from ._tensor import KINDS, PerChannel, PerTensor, QuantizedTensor

# Views, and what moves elements: they happen to the whole numbers.
_MOVES = frozenset(
    "view _unsafe_view reshape _reshape_alias t transpose permute unsqueeze squeeze select slice expand split split_with_sizes unbind as_strided "
    "unfold reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d replication_pad2d replication_pad3d "
    "flip index_select index gather roll max_pool1d max_pool2d max_pool3d max_pool2d_with_indices max_pool3d_with_indices upsample_nearest1d upsample_nearest2d "
    "upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_nearest_exact3d "
    "repeat narrow diagonal channel_shuffle pixel_shuffle pixel_unshuffle masked_select take max min amax amin sort topk view_as "
    "swapaxes movedim flatten rot90".split()
)
# Copies of views, and tensors with a view written anew, by the view.
_COPIES = {"narrow_copy": "narrow", "unsafe_split": "split", "unsafe_split_with_sizes": "split_with_sizes"} | {
    f"{view}_copy": view
    for view in "alias as_strided detach diagonal expand permute select slice split split_with_sizes squeeze t transpose unbind unfold unsqueeze view".split()
}
_SCATTERS = {f"{view}_scatter": view for view in ("as_strided", "diagonal", "select", "slice")}
_TURNS = frozenset("transpose_ t_ squeeze_ unsqueeze_ as_strided_".split())  # a tensor becomes a view of itself
_SAME = frozenset("detach alias clone contiguous".split())  # of a tensor with several scales too
# What operators of one scale say of a tensor with several.
_ONE_SCALE = {
    "index_select": "Only per_tensor quantized quantized tensors are supported by index_select",
    "topk": "Top-K is only supported on per-tensor quantization",
    "cat": "Only per-tensor quantization is supported in 'cat'!",
    "constant_pad_nd": "Only per-tensor padding is supported",
} | {
    name: f"{name.title()} operator for quantized tensors only works for per tensor quantized tensors. Please open an issue on "
    "https://github.com/pytorch/pytorch/issues if you need per channel quantized tensor support."
    for name in ("max", "min")
}
_COMPARED = frozenset("eq ne lt le gt ge".split())
# Computed with real numbers, the result with the same scale.
_REAL = frozenset(
    "mean std avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d adaptive_avg_pool2d _adaptive_avg_pool2d adaptive_avg_pool3d _adaptive_avg_pool3d gelu "
    "upsample_bilinear2d grid_sampler_2d leaky_relu threshold".split()
)


def apply(func, args, kwargs):
    """The operator `func` with a quantized tensor among its arguments."""
    if kernels and (kernel := kernel_of(func, "QuantizedCPU")) is not None:
        return kernel(*args, **kwargs)
    namespace, _, name = func._schema.name.partition("::")
    if namespace in ("quantized", "_quantized", "sparse"):
        from ._operators._register import functions

        return functions[func.name()](*args, **kwargs)
    first = next(_quantized_among(args), None)
    if first is None:
        _refuse(func)
    q = first._quantizer
    if name in _RULES:
        return _RULES[name](*args, **kwargs)
    if name in _COPIES:
        made = getattr(cresset.ops.aten, _COPIES[name])(*args, **kwargs)
        return made.clone() if isinstance(made, cresset.Tensor) else [part.clone() for part in made]
    if name in _SCATTERS:
        made = args[0].clone()
        _copy_(getattr(cresset.ops.aten, _SCATTERS[name])(made, *args[2:], **kwargs), args[1])
        return made
    if "nearest" in name and isinstance(q, PerTensor) and first._numbers.dtype is not cresset.uint8:  # other numbers are resized as real ones, exactly
        real = func(*(a.double() if a is first._numbers else a for a in _plain(args)), **{k: _plain(v) for k, v in kwargs.items()})
        return _wrapped(real.to(first._numbers.dtype), first)
    if name in _TURNS:
        return _turned(first, getattr(cresset.ops.aten, name[:-1])(*args, **kwargs))
    if name in _SAME or (name in _MOVES and isinstance(q, PerTensor)):
        return _wrapped(func(*_plain(args), **{k: _plain(v) for k, v in kwargs.items()}), first)
    if name in _CUTS and isinstance(q, PerChannel) and not q.zero_points.is_floating_point():
        return _cut(func, name, args, kwargs)
    if name in ("view", "_unsafe_view", "reshape", "_reshape_alias") and isinstance(q, PerChannel):
        return _reshaped(func, args)
    if name in ("squeeze", "unsqueeze") and isinstance(q, PerChannel):
        return _resized(func, args)
    if name in _MOVES:
        raise RuntimeError(_ONE_SCALE.get(name, "Setting strides is possible only on uniformly quantized tensor"))
    if name in _COMPARED:
        return func(*_real(args), **kwargs)
    if name in _REAL:
        return quantized(func(*_real(args), **kwargs), first._uniform())
    return _refuse(func)


# Operators that take parts of a tensor along one dimension, and which argument the dimension is.
_CUTS = {"select": 1, "slice": 1, "narrow": 1, "unbind": 1, "split": 2, "split_with_sizes": 2}


def _cut(func, name, args, kwargs):
    """Parts of a tensor with several scales: each has the scales of its channels, one with a single channel has one scale."""
    t, q = args[0], args[0]._quantizer
    place = _CUTS[name]
    dim = (args[place] if len(args) > place else kwargs.get("dim", 0)) % t.dim()
    parts = func(t._numbers, *args[1:], **kwargs)
    channels = cresset.arange(len(q.scales)).view([-1 if d == q.axis else 1 for d in range(t.dim())]).expand(t.shape)
    gone = name in ("select", "unbind")

    def with_scales(numbers, channels):
        if gone and dim == q.axis:
            kept = channels.flatten()[:1]
        else:
            axis = q.axis - (gone and dim < q.axis)
            kept = channels.movedim(axis, 0).reshape(channels.shape[axis], -1)[:, 0] if channels.numel() else channels.new_empty(0)
        if len(kept) == 1 and dim == q.axis:
            return QuantizedTensor(numbers, PerTensor(q.dtype, q.scales[kept].item(), int(q.zero_points[kept])))
        return t._with(numbers, q._replace(axis=axis, scales=q.scales[kept], zero_points=q.zero_points[kept]))

    cut = func(channels, *args[1:], **kwargs)
    return with_scales(parts, cut) if isinstance(parts, cresset.Tensor) else tuple(map(with_scales, parts, cut))


def _turned(t, view):
    """`t` with the sizes, numbers and quantizer of a view of it."""
    t._numbers, t._quantizer = view._numbers, view._quantizer
    _C._take_sizes(t, t._numbers)
    return t


def _reshaped(func, args):
    """Other sizes for a tensor with several scales; the channels' dimension, and what stands before it, stay."""
    t, q = args[0], args[0]._quantizer
    numbers = func(t._numbers, *args[1:])
    before, after = t.shape[: q.axis], numbers.shape[: q.axis]
    have = numbers.shape[q.axis] if numbers.dim() > q.axis else 0
    if have != len(q.scales) or cresset.Size(before).numel() != cresset.Size(after).numel():
        raise RuntimeError(f"length of scales must equal to channel, expected {have} got, {len(q.scales)}")
    return t._with(numbers, q)


def _resized(func, args):
    """squeeze or unsqueeze of a tensor with several scales: their dimension moves along, and must stay."""
    t, dims = args[0], args[1:]
    q = t._quantizer
    if func._schema.name.endswith("::squeeze"):
        asked = range(t.dim()) if not dims else [k % t.dim() for k in (dims[0] if isinstance(dims[0], (list, tuple)) else dims)]
        gone = [d for d in asked if t.shape[d] == 1]
        if q.axis in gone:
            raise RuntimeError("Squeeze is only possible on non-axis dimension for Per-Channel Quantized Tensors.")
        axis = q.axis - sum(d < q.axis for d in gone)
    else:
        axis = q.axis + (dims[0] % (t.dim() + 1) <= q.axis)
    return t._with(func(t._numbers, *dims), q._replace(axis=axis))


def _quantized_among(args):
    for arg in args:
        if isinstance(arg, QuantizedTensor):
            yield arg
        elif isinstance(arg, (list, tuple)):
            yield from _quantized_among(arg)


def _mapped(value, change):
    if isinstance(value, QuantizedTensor):
        return change(value)
    return type(value)(_mapped(v, change) for v in value) if type(value) in (list, tuple) else value


def _plain(args):
    return _mapped(args, lambda t: t._numbers)


def _real(args):
    return _mapped(args, lambda t: t.dequantize())


def _wrapped(result, like):
    if isinstance(result, cresset.Tensor):
        return like._with(result) if result.dtype == like._numbers.dtype else result
    return type(result)(_wrapped(r, like) for r in result) if type(result) in (list, tuple) else tuple(_wrapped(r, like) for r in result)


def _refuse(func):
    overload = func._schema.overload_name
    raise NotImplementedError(
        f"Could not run '{func._schema.name}{'.' + overload if overload else ''}' with arguments from the 'QuantizedCPU' backend. This could be because "
        "the operator doesn't exist for this backend; dequantize() gives a tensor that every operator knows."
    )


def _word(t):
    return KINDS[t._quantizer.dtype][3] if isinstance(t, QuantizedTensor) else word_of(t.dtype)


def _isclose(a, b, *args, **kwargs):
    if _word(a) != _word(b):
        raise RuntimeError(f"{_word(a)} did not match {_word(b)}")
    raise RuntimeError("isclose is not supported for quantized inputs.")


def _limits(t, low, high):
    """The whole numbers of two real ones, in t's range."""
    q = t._uniform()
    bounds = cresset.tensor([float("-inf") if low is None else float(low), float("inf") if high is None else float(high)])
    return quantized(bounds.nan_to_num(posinf=3e38, neginf=-3e38), q)._numbers.tolist()


def _clamped(t, low=None, high=None):
    a, b = _limits(t, low, high)
    return t._with(t._numbers.clamp(a, b))


def _joined(tensors, dim=0, *, stacked=False):
    first = next(_quantized_among(tensors))
    quantizer = first._uniform(_ONE_SCALE["cat"])
    numbers = [t._numbers if t._quantizer == quantizer else quantized(t.dequantize(), quantizer)._numbers for t in tensors]
    return first._with((cresset.stack if stacked else cresset.cat)(numbers, dim))


def _copy_(target, source, non_blocking=False):
    if not isinstance(target, QuantizedTensor):
        raise RuntimeError("Copying from quantized Tensor to non-quantized Tensor is not allowed, please use dequantize to get a float Tensor from a quantized Tensor")
    if isinstance(source, QuantizedTensor):
        if source._quantizer.qscheme is not target._quantizer.qscheme:
            raise RuntimeError("Quantized Copy only works with same qscheme")
        if source.dtype is not target.dtype:
            raise RuntimeError("Expected self.scalar_type() == src.scalar_type() to be true, but got false.")
        target._quantizer = source._quantizer
        target._numbers.copy_(source._numbers)
    else:
        if source.dtype != cresset.float32:
            raise RuntimeError("Quantized copy only works with kFloat as source Tensor")
        if source.shape != target.shape:
            raise RuntimeError("Quantized copy only works with Tensors with the same shape")
        target._numbers.copy_(quantized(source, target._quantizer)._numbers)
    return target


def _fill_(target, value):
    target._numbers.copy_(quantized(cresset.full(target.shape, float(value)), target._quantizer)._numbers)
    return target


def _to_copy(t, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None):
    if dtype is not None and dtype is not t.dtype:
        raise RuntimeError("Creation of quantized tensor requires quantized dtype like torch.quint8")
    numbers = t._numbers.to(device=device, memory_format=memory_format, copy=True)
    return t._with(numbers)


def _empty_like(t, *, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    return t._with(cresset.empty_like(t._numbers, device=device, memory_format=memory_format or cresset.preserve_format))


def _equal(a, b):
    same = isinstance(a, QuantizedTensor) and isinstance(b, QuantizedTensor) and a.dtype is b.dtype and a.qscheme() is b.qscheme()
    return same and a.shape == b.shape and str(a._quantizer) == str(b._quantizer) and cresset.equal(a._numbers, b._numbers)


def _fixed(function, low, high):
    """A function whose results lie between two numbers, which all whole numbers of the dtype cover, so that the quantizer is always the same."""

    def quantizer_of(dtype):
        _, smallest, largest, _ = KINDS[dtype]
        middle = (smallest + largest + 1) // 2 if low < 0 else smallest
        return PerTensor(dtype, (high - low) / (largest - smallest + 1), 0 if dtype is cresset.qint32 else middle)

    def made(t):
        t._uniform()
        return quantized(function(t.dequantize()), quantizer_of(t.dtype))

    return made


def _in_place(name):
    """The function of that name, written into its argument, which gets the result's quantizer."""

    def write(target, *args, **kwargs):
        made = _RULES[name](target, *args, **kwargs) if name in _RULES else getattr(cresset.nn.functional, name)(target, *args, **kwargs)
        target._quantizer = made._quantizer
        target._numbers.copy_(made._numbers)
        return target

    return write


def _constant_pad(t, pad, value=0):
    whole = quantized(cresset.tensor([float(value)]), t._uniform(_ONE_SCALE["constant_pad_nd"]))._numbers.item()
    return t._with(cresset.constant_pad_nd(t._numbers, pad, whole))


def _masked_fill_(target, mask, value):
    whole = quantized(cresset.tensor([float(value)]), target._uniform())._numbers.item()
    target._numbers.masked_fill_(mask, whole)
    return target


def _index_put_(target, indices, values, accumulate=False):
    quantizer = target._quantizer
    if not isinstance(quantizer, PerTensor):
        raise RuntimeError("index_put for quantized tensors is currently only supported for per tensor quantized tensors")
    if accumulate:
        raise RuntimeError("index_put for quantized tensors is currently only supported for accumulate=False")
    if isinstance(values, QuantizedTensor):
        raise RuntimeError("Value argument for quantized input_put should not be quantized")
    target._numbers.index_put_(indices, quantized(values.float(), quantizer)._numbers)
    return target


def _resize_(t, size, memory_format=None):
    if not isinstance(t._quantizer, PerTensor):
        raise RuntimeError("Can only resize quantized tensors with per-tensor schemes!")
    t._numbers.resize_(size)
    _C._take_sizes(t, t._numbers)
    return t


_RULES = {
    "isclose": _isclose, "resize_": _resize_,
    "allclose": _isclose,
    "index_put_": _index_put_, "_index_put_impl_": lambda t, indices, values, accumulate=False, unsafe=False: _index_put_(t, indices, values, accumulate),
    "index_put": lambda t, indices, values, accumulate=False: _index_put_(t._with(t._numbers.clone()), indices, values, accumulate),
    "constant_pad_nd": _constant_pad, "masked_fill_": _masked_fill_,
    "masked_fill": lambda t, mask, value: _masked_fill_(t._with(t._numbers.clone()), mask, value),
    "equal": _equal, "copy_": _copy_, "fill_": _fill_, "_to_copy": _to_copy, "empty_like": _empty_like, "clamp": _clamped,
    "copy": lambda t, source, non_blocking=False: _copy_(t.clone(), source), "fill": lambda t, value: _fill_(t.clone(), value),
    "ones_like": lambda t, **options: _fill_(_empty_like(t, **options), 1), "full_like": lambda t, value, **options: _fill_(_empty_like(t, **options), value),
    "hardtanh": lambda t, min_val=-1, max_val=1: _clamped(t, min_val, max_val),
    "cat": _joined, "stack": lambda tensors, dim=0: _joined(tensors, dim, stacked=True),
    "relu": lambda t: _clamped(t, 0.0), "relu6": lambda t: _clamped(t, 0.0, 6.0),
    "_local_scalar_dense": lambda t: t.dequantize().item(),
    "sigmoid": _fixed(cresset.sigmoid, 0, 1), "hardsigmoid": _fixed(cresset.nn.functional.hardsigmoid, 0, 1), "tanh": _fixed(cresset.tanh, -1, 1),
}  # fmt: skip
_RULES |= {name + "_": _in_place(name) for name in ("relu", "relu6", "hardtanh", "hardsigmoid", "leaky_relu", "gelu")}
