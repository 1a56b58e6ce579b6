"""Tensors of the layout `_mkldnn`: opaque ones, whose elements nobody can address. `to_mkldnn()` makes them, `to_dense()` gives the elements back.

A Python type of tensor over `__torch_function__`, around the strided tensor that holds the elements and carries the gradient. What PyTorch computes
on such tensors is computed on that one; all else is refused in PyTorch's words.
"""

import copy

import cresset

from . import _C
from ._tensor_str import _add_suffixes, _prefix, _values
from .utils._pytree import tree_map

__all__ = ["MkldnnTensor", "empty", "to_mkldnn"]

_FLOATS = (_C.float32, _C.bfloat16, _C.float16)
_BYTES = (_C.int8, _C.uint8)
# Computed on the elements, by the name of the function; the result has the layout of the first argument.
_COMPUTED = frozenset("""
relu relu_ gelu prelu sigmoid sigmoid_ tanh tanh_ softmax _softmax linear mkldnn_linear conv1d conv2d conv3d convolution _convolution mkldnn_convolution
conv_transpose1d conv_transpose2d conv_transpose3d max_pool2d max_pool3d _max_pool2d _max_pool3d mkldnn_max_pool2d mkldnn_max_pool3d boolean_dispatch
avg_pool2d avg_pool3d adaptive_avg_pool2d mkldnn_adaptive_avg_pool2d batch_norm native_batch_norm dropout clone detach zero_ reshape flatten transpose
transpose_ _mkldnn_transpose t contiguous cpu float add add_ mul mul_ __add__ __radd__ __iadd__ __mul__ __rmul__ __imul__ group_norm layer_norm
new_empty new_zeros
""".split())  # fmt: skip
_BETWEEN = frozenset("add add_ __add__ __radd__ __iadd__ mul mul_ __mul__ __rmul__ __imul__".split())
_DENSE = {  # a name that only this layout has → the function that computes it
    "mkldnn_max_pool2d": "max_pool2d", "mkldnn_max_pool3d": "max_pool3d", "mkldnn_adaptive_avg_pool2d": "adaptive_avg_pool2d", "mkldnn_linear": "linear",
}  # fmt: skip
_GRADIENT = frozenset(f"get {name}" for name in ("requires_grad", "grad_fn", "is_leaf", "_version", "output_nr", "retains_grad")) | {"retain_grad"}
_FACTS = frozenset("""
size dim ndimension numel nelement stride element_size is_floating_point is_complex is_signed get_device __len__ __hash__ is_same_size storage_offset
is_contiguous _is_view __bool__ __reduce_ex__ __deepcopy__ __repr__ __str__ __format__ type to_dense data_ptr storage untyped_storage _typed_storage numpy __array__ tolist is_inference
""".split())  # fmt: skip


class MkldnnTensor(cresset.Tensor):
    """A tensor of float32, bfloat16, float16, int8 or uint8 in the layout `_mkldnn`. Made by `Tensor.to_mkldnn`."""

    @staticmethod
    def __new__(cls, dense):
        self = cresset.Tensor._make_wrapper_subclass(cls, tuple(dense.shape), dtype=dense.dtype, device=dense.device)
        _C._give_layout(self, _C._mkldnn)
        self._dense = dense
        return self

    def to_dense(self, dtype=None, *, masked_grad=None):
        """A strided tensor with the same elements, a copy. RuntimeError for a dtype that these tensors do not have."""
        if dtype is not None and dtype not in (*_FLOATS, *_BYTES):
            raise RuntimeError(f"Unsupported dtype for ideep public tensor: {dtype}")
        return self._dense.clone() if dtype in (None, self._dense.dtype) else self._dense.to(dtype)

    def data_ptr(self):
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    tolist = data_ptr

    def untyped_storage(self):
        raise NotImplementedError("Cannot access storage of OpaqueTensorImpl")

    storage = _typed_storage = untyped_storage

    def numpy(self, *, force=False):
        raise TypeError("can't convert Mkldnn layout tensor to numpy. Use Tensor.to_dense() first.")

    def __array__(self, dtype=None):
        return self.numpy()

    def is_contiguous(self, memory_format=_C.contiguous_format):
        return memory_format is _C.contiguous_format

    def type(self, dtype=None, non_blocking=False, **kwargs):
        raise RuntimeError("Unimplemented backend MkldnnCPU")

    def __reduce_ex__(self, protocol):
        self.untyped_storage()

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = MkldnnTensor(copy.deepcopy(self._dense, memo))
        return memo[id(self)]

    def __repr__(self, *, tensor_contents=None):
        dense, prefix = self._dense, _prefix(cresset.empty(0))
        suffixes = [f"layout={self.layout}"]
        if dense.dtype is not _C.float32:
            suffixes.insert(0, f"dtype={dense.dtype}")
        if dense.grad_fn is not None:
            suffixes.append(f"grad_fn=<{dense.grad_fn.name()}>")
        elif dense.requires_grad:
            suffixes.append("requires_grad=True")
        text = _values(dense.detach(), len(prefix)) if tensor_contents is None else tensor_contents
        return _add_suffixes(prefix + text, suffixes, len(prefix), False)

    __str__ = __repr__

    def __format__(self, spec):
        return object.__format__(self, spec)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, _name_of(func)
        if name in _HANDLERS:
            return _HANDLERS[name](*args, **kwargs)
        if name in _COMPUTED:
            return _computed(func, name, args, kwargs)
        if name in _GRADIENT:
            return func(args[0]._dense, *args[1:], **kwargs)
        if name in _FACTS and type(args[0]) is cls and name in cls.__dict__:
            return cls.__dict__[name](*args, **kwargs)
        if name in _FACTS or name.startswith("get "):
            with _C.DisableTorchFunctionSubclass():
                return func(*args, **kwargs)
        raise NotImplementedError(
            f"Could not run 'aten::{name}' with arguments from the 'MkldnnCPU' backend. This could be because the operator doesn't exist for this backend; "
            "to_dense() gives a tensor that every operator knows."
        )

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        # What reaches an operator past __torch_function__ would compute with the shell, which has no elements.
        raise NotImplementedError(f"Could not run '{func._schema.name}' with arguments from the 'MkldnnCPU' backend.")


def _name_of(func):
    name = getattr(getattr(func, "overloadpacket", func), "__name__", "")
    if name in ("__get__", "__set__"):
        return f"{name.strip('_')} {func.__self__.__name__}"
    return name.rpartition("::")[2]


def _computed(func, name, args, kwargs):
    opaque = [x for x in (*args, *kwargs.values()) if isinstance(x, MkldnnTensor)]
    if name in _BETWEEN:
        if not (all(isinstance(x, MkldnnTensor) for x in args[:2]) or _scaled(name, args)):
            raise RuntimeError("itensor_from_mkldnn expects MKL-DNN tensor input")
        if any(x.numel() == 0 for x in opaque) and cresset.is_grad_enabled() and any(x._dense.requires_grad for x in opaque):
            raise RuntimeError("add and mul of mkldnn tensors: 0-dimension Tensor in training is not supported.")
    if name.endswith(("max_pool2d", "max_pool3d")):
        dilation = kwargs.get("dilation", args[4] if len(args) > 4 else 1)
        if any(d != 1 for d in (dilation if isinstance(dilation, (tuple, list)) else (dilation,))):
            raise RuntimeError(f"mkldnn_{name[-10:]} does not support dilation case")
    if name == "gelu" and kwargs.get("approximate", "none") != "none":
        raise RuntimeError("mkldnn_gelu: fast, approximate gelu is not supported")
    if name in _DENSE:
        func = getattr(cresset.nn.functional, _DENSE[name])
    if name.startswith(("conv", "_conv", "mkldnn_conv", "linear")) and isinstance(args[0], MkldnnTensor):  # dense weights are read in the input's dtype
        args = [x.to(args[0].dtype) if isinstance(x, cresset.Tensor) and not isinstance(x, MkldnnTensor) else x for x in args]
    result = func(*map(_plain, args), **{k: _plain(v) for k, v in kwargs.items()})
    for x in opaque:
        if result is x._dense:  # in place, or out=
            return x
    return MkldnnTensor(result) if isinstance(result, cresset.Tensor) and args and isinstance(args[0], MkldnnTensor) else result


def _scaled(name, args):
    """Is it a product with a number?"""
    return "mul" in name and any(isinstance(x, (int, float)) for x in args[:2])


def _plain(x):
    return x._dense if isinstance(x, MkldnnTensor) else x


def among(values):
    """Is there a tensor of this layout among the values?"""
    return any(isinstance(x, MkldnnTensor) for x in values)


def apply_function(function, args):
    """`function.apply(*args)` of an autograd.Function: the graph sees the strided tensors, the function those of this layout."""
    separate = function.setup_context is not cresset.autograd.Function.setup_context
    given, made = [isinstance(x, MkldnnTensor) for x in args], []

    def opaque(values, which):
        return tuple(MkldnnTensor(x) if there and x is not None else x for x, there in zip(values, which, strict=True))

    def dense(result):
        parts = result if isinstance(result, tuple) else (result,)
        made[:] = [isinstance(x, MkldnnTensor) for x in parts]
        return tuple(map(_plain, parts)) if isinstance(result, tuple) else _plain(result)

    def results(value):
        return opaque(value, made) if isinstance(value, tuple) else opaque((value,), made)[0]

    def forward(*values):
        ctx, values = ((), values) if separate else (values[:1], values[1:])
        return dense(function.forward(*ctx, *opaque(values, given)))

    def backward(ctx, *gradients):
        found = function._resolve_backward()(ctx, *opaque(gradients, made))
        return tuple(map(_plain, found)) if isinstance(found, tuple) else _plain(found)

    methods = {"forward": staticmethod(forward), "backward": staticmethod(backward), "vjp": cresset.autograd.Function.vjp}
    if separate:
        methods["setup_context"] = staticmethod(lambda ctx, inputs, output: function.setup_context(ctx, opaque(inputs, given), results(output)))
    return results(type(function.__name__, (function,), methods).apply(*map(_plain, args)))


_HANDLERS = {}


def _handles(*names):
    def put(function):
        _HANDLERS.update(dict.fromkeys(names, function))
        return function

    return put


@_handles("requires_grad_")
def _requires_grad_(opaque, requires_grad=True):
    opaque._dense.requires_grad_(requires_grad)
    return opaque


@_handles("set requires_grad")
def _set_requires_grad(opaque, value):
    opaque._dense.requires_grad_(value)


@_handles("detach_")
def _detach_(opaque):
    opaque._dense.detach_()
    return opaque


@_handles("get grad")
def _grad(opaque):
    return None if opaque._dense.grad is None else MkldnnTensor(opaque._dense.grad)


@_handles("set grad")
def _set_grad(opaque, value):
    opaque._dense.grad = _plain(value)


@_handles("backward")
def _backward(opaque, gradient=None, *args, **kwargs):
    opaque._dense.backward(_plain(gradient), *args, **kwargs)


@_handles("grad")
def _gradients(outputs, inputs, grad_outputs=None, *args, **kwargs):
    given = (inputs,) if isinstance(inputs, cresset.Tensor) else inputs
    outputs, plain, grad_outputs = tree_map(_plain, (outputs, tuple(given), grad_outputs))
    found = cresset.autograd.grad(outputs, plain, grad_outputs, *args, **kwargs)
    return tuple(MkldnnTensor(g) if isinstance(x, MkldnnTensor) and g is not None else g for x, g in zip(given, found, strict=True))


@_handles("copy_")
def _copy_(to, source, non_blocking=False):
    if not (isinstance(to, MkldnnTensor) and isinstance(source, MkldnnTensor)):
        words = [f"{'Mkldnn' * isinstance(t, MkldnnTensor)}{cresset.Tensor.type(_plain(t))}" for t in (to, source)]
        raise RuntimeError(f"copy_mkldnn_: between mkldnn layout and dense Tensors is not implemented! Found self type = {words[0]} and src type = {words[1]}")
    if to.shape != source.shape:
        raise RuntimeError("copy_mkldnn_: only support same size tensor.")
    to._dense.copy_(source._dense)
    return to


@_handles("view", "view_as")
def _view(opaque, *size):
    raise RuntimeError("Currently Mkldnn tensor does not support view. Change to use reshape instead")


@_handles("to_mkldnn")
def _again(opaque, dtype=None):
    raise NotImplementedError("Could not run 'aten::to_mkldnn' with arguments from the 'MkldnnCPU' backend. The tensor has this layout.")


@_handles("new")
def _new(opaque, *args, **kwargs):
    raise RuntimeError("new(): expected key in DispatchKeySet(CPU, CUDA, HIP, XLA, MPS, IPU, XPU, HPU, Lazy, PrivateUse1, Meta) but got: MkldnnCPU")


def to_mkldnn(dense, dtype=None):
    """The tensor in the layout `_mkldnn`, a copy, in float32, bfloat16, float16, int8 or uint8: its own dtype unless another one is asked for. RuntimeError for
    other dtypes and for tensors of another device or layout."""
    if dense.device.type != "cpu" or dense.layout is not _C.strided:
        raise RuntimeError("dense_to_mkldnn expects strided CPU tensor input")
    if dense.dtype not in (*_FLOATS, *_BYTES):
        raise RuntimeError("dense_to_mkldnn expects float, bfloat16, half, uint8, int8 tensor input")
    wanted = dense.dtype if dtype is None else dtype
    if dense.dtype in _BYTES and wanted is not dense.dtype:
        raise RuntimeError("For int8, uint8 cpu_tensor input, we should not change the data type.")
    if wanted not in (*_FLOATS, *_BYTES):
        raise RuntimeError("cpu tensor only can be converted to be a float, bfloat16, half, uint8, int8 mkldnn tensor")
    if wanted is dense.dtype:
        return MkldnnTensor(dense.clone(memory_format=_C.contiguous_format))
    return MkldnnTensor(dense.to(wanted).contiguous())


def empty(size, dtype, device=None):
    """A tensor of zeros of this layout. RuntimeError for a dtype that these tensors do not have."""
    if dtype not in _FLOATS:
        raise RuntimeError("get_mkldnn_dtype: unsupported data type")
    return MkldnnTensor(cresset.zeros(tuple(size), dtype=dtype, device=device))
