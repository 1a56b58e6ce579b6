"""Constructors and methods from before dtypes: FloatTensor(2, 3) and its kin, Tensor.new, apply_, map_."""

import operator

import cresset

from ._dtype_info import DTYPE_WORDS, word_of
from ._overridable import overridable, tensor_attribute, tensor_method

_TYPES = {f"{word}Tensor": dtype for dtype, word in DTYPE_WORDS.items() if not dtype.is_complex}


_NO_CONSTRUCTOR = "Legacy tensor constructor of the form torch.Tensor(tensor, device=device) is not supported.  Use torch.tensor(...) or torch.as_tensor(...) instead."
_NO_NEW = "Legacy tensor new of the form tensor.new(tensor, device=device) is not supported.  Use torch.as_tensor(...) instead."


def _is_size(value):
    if isinstance(value, cresset.Tensor):
        return value.numel() == 1 and not value.is_floating_point() and not value.is_complex() and value.dtype != cresset.bool
    return hasattr(value, "__index__") and not isinstance(value, bool) and not hasattr(value, "__len__")


def _sizes(args):
    """The arguments as sizes. The first one decides that they are; bools behind it are numbers."""
    for place, value in enumerate(args, 1):
        if not (_is_size(value) or isinstance(value, bool)):
            raise TypeError(f"new(): argument 'size' failed to unpack the object at pos {place} with error \"type must be tuple of ints,but got {type(value).__name__}\"")
    return list(map(operator.index, args))


def _check_device(device, expected, args, form):
    """A device may be named beside anything but a tensor, and must be that of the type."""
    if device is None:
        return
    if len(args) == 1 and isinstance(args[0], cresset.Tensor):
        raise RuntimeError(form)
    given = cresset.device(device).type
    if given != expected:
        raise RuntimeError(f"legacy constructor expects device type: {expected} but device type: {given} was passed")


def _make(dtype, args, device="cpu"):
    """The tensor of a legacy constructor: sizes, a sequence of values, a tensor of the same type, or a storage."""
    if not args:
        return cresset.empty(0, dtype=dtype, device=device)
    first = args[0]
    if len(args) == 1 and isinstance(first, cresset.Tensor):
        if first.dtype != dtype:
            raise TypeError(f"expected a tensor of {dtype} (got {first.dtype}). Use tensor.to({dtype}) to convert.")
        return cresset.ops.aten.alias.default(first)
    if len(args) == 1 and cresset.is_storage(first):
        return cresset.storage.tensor_of_storage(first, dtype)
    if len(args) == 1 and isinstance(first, cresset.Size):
        return cresset.empty(first, dtype=dtype, device=device)
    if _is_size(first):
        return cresset.empty(_sizes(args), dtype=dtype, device=device)
    if len(args) > 1:
        raise TypeError(
            f"new() received an invalid combination of arguments: sizes, or one sequence, tensor or storage were required; got {len(args)} arguments, the first one a {type(first).__name__}"
        )
    if len(args) == 1 and hasattr(first, "__len__"):
        return cresset.tensor(first, dtype=dtype, device=device)
    raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")


class tensortype(type):  # noqa: N801
    """The type of the legacy tensor types. They make tensors; `isinstance` asks for dtype and device."""

    def __call__(cls, *args, device=None, **kwargs):
        if kwargs:
            raise TypeError(f"{cls.__name__}() got an unexpected keyword argument '{next(iter(kwargs))}'")
        _check_device(device, "cpu", args, _NO_CONSTRUCTOR)
        return _make(cls.dtype, args)

    def __instancecheck__(cls, instance):
        return isinstance(instance, cresset.Tensor) and (instance.dtype, instance.layout, instance.device.type) == (cls.dtype, cls.layout, "cpu")

    def __repr__(cls):
        return f"<class '{cls.__module__.replace('cresset', 'torch', 1)}.{cls.__name__}'>"

    @property
    def layout(cls):
        return cresset.strided

    is_cuda = False
    is_sparse = False


def types(kind=tensortype, module="cresset", what="Tensors", without=()):
    """The legacy tensor types by name, as classes of the metaclass `kind`."""
    return {
        name: kind(name, (), {"dtype": dtype, "__module__": module, "__doc__": f"{what} of {str(dtype).rpartition('.')[2]} on the CPU."})
        for name, dtype in _TYPES.items() if dtype not in without
    }  # fmt: skip


def _new_sparse(dtype, args, device):
    if args and isinstance(args[0], cresset.Tensor):
        return cresset.sparse_coo_tensor(*args, dtype=dtype, device=device)
    size = args[0] if len(args) == 1 and isinstance(args[0], (tuple, list)) else args or (0,)
    return cresset.zeros(size, dtype=dtype, device=device, layout=cresset.sparse_coo)


# --- methods of Tensor ---------------------------------------------------------------------------------------------------------


@tensor_method
def new(self, *args, device=None):
    """A tensor of this dtype: of sizes, of a sequence of values, or over a storage. A sparse one of sizes, or of indices, values and perhaps sizes."""
    _check_device(device, self.device.type, args, _NO_NEW)
    if self.layout is cresset.sparse_coo:
        return _new_sparse(self.dtype, args, self.device if device is None else device)
    return _make(self.dtype, args, self.device if device is None else device)


def _refuse_recorded(self, name):
    if self.requires_grad:
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")


def _store(self, values):
    """Numbers in row-major order into the tensor. TypeError for what is not one."""
    for value in values:
        if not isinstance(value, (int, float, complex, cresset.Tensor)) and not hasattr(value, "__index__") and not hasattr(value, "__float__"):
            wanted = "must be real number, not {}" if self.dtype.is_floating_point or self.dtype.is_complex else "'{}' object cannot be interpreted as an integer"
            raise TypeError(wanted.format(type(value).__name__))
    return self.copy_(cresset.tensor(values, dtype=self.dtype).reshape(self.shape)) if values else self


@tensor_method
def apply_(self, callable):
    """Replace every element x of a CPU tensor by callable(x)."""
    _refuse_recorded(self, "apply_")
    if self.is_meta:
        return self
    if self.device.type != "cpu":
        raise TypeError("apply_ is only implemented on CPU tensors")
    return _store(self, [callable(x) for x in self.reshape(-1).tolist()])


def _map(self, name, others, callable):
    _refuse_recorded(self, name)
    lists = [self.reshape(-1).tolist()]
    for i, other in enumerate(others):
        argument = "other" if len(others) == 1 else "xy"[i]
        if not isinstance(other, cresset.Tensor):
            raise TypeError(f"{name}(): argument '{argument}' must be Tensor, not {type(other).__name__}")
        if other.requires_grad:
            raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead.")
        if other.type() != self.type():
            raise TypeError(f"{name}: expected {self.type()} for '{argument}' (got {other.type()})")
        lists.append(other.expand(self.shape).reshape(-1).tolist())
    return _store(self, [callable(*x) for x in zip(*lists)])


@tensor_method
def map_(self, tensor, callable):
    """Replace every element a of a CPU tensor by callable(a, b), b from the other tensor."""
    return _map(self, "map_", [tensor], callable)


@tensor_method
def map2_(self, x, y, callable):
    """Replace every element a of a CPU tensor by callable(a, b, c), b and c from the other tensors."""
    return _map(self, "map2_", [x, y], callable)


_type = cresset.Tensor.type


@tensor_method(name="type")
def type_(self, dtype=None, non_blocking=False, **kwargs):
    """The name of the tensor's kind, or the tensor converted to a dtype (also "torch.FloatTensor" or FloatTensor)."""
    if isinstance(dtype, tensortype):
        dtype = dtype.dtype
    sparse = self.layout == cresset.sparse_coo
    if isinstance(dtype, str) and sparse:
        dtype = dtype.replace("torch.sparse.", "torch.", 1)
    if dtype is not None:
        return _type(self, dtype, non_blocking)
    return _type(self).replace("torch.", "torch.sparse.", 1) if sparse else _type(self)


@tensor_method
def dim_order(self, *, ambiguity_check=False):
    """Dimensions from the slowest in memory to the fastest; with ambiguity_check RuntimeError when several orders fit."""
    if not isinstance(ambiguity_check, bool) and not all(isinstance(f, cresset.memory_format) for f in ambiguity_check):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    strides, sizes = self.stride(), self.shape
    order = []
    for d in range(self.dim()):
        # A stride of 0 says nothing about the order, so it stops the way forward.
        at = len(order)
        while at > 0 and 0 != strides[order[at - 1]] < strides[d]:
            at -= 1
        order.insert(at, d)
    order = tuple(order)
    if not ambiguity_check:
        return order
    if ambiguity_check is True:
        if len(set(strides)) == len(strides) and all(n > 1 for n in sizes):
            return order
    else:
        fitting = [f for f in ambiguity_check if self.is_contiguous(memory_format=f)]
        if len(fitting) == 1:
            return tuple(range(self.dim())) if fitting[0] == cresset.contiguous_format else (0, *range(2, self.dim()), 1)
    raise RuntimeError("The tensor does not have unique dim order, or cannot map to exact one of the given memory formats.")


@tensor_method
def is_distributed(self):
    """Tensors live in one process: False."""
    return False


@tensor_method
def record_stream(self, stream):
    """Keep the tensor's memory, once it is freed, until the work that the stream has by then is done: for a tensor that is used in another stream than
    the one it was made in. NotImplementedError on CPU, which has no streams."""
    if not isinstance(stream, cresset.Stream):
        raise TypeError(f"record_stream(): argument 's' (position 1) must be Stream, not {type(stream).__name__}")
    return cresset.ops.aten.record_stream.default(self, stream)


@tensor_method
def const_data_ptr(self):
    """Address of the first element, for reading."""
    return self.data_ptr()


@tensor_method
def resize(self, *sizes):
    """Deprecated: a view of another shape with as many elements."""
    return _resized(self, sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes)


@tensor_method
def resize_as(self, tensor):
    """Deprecated: a view of another tensor's shape with as many elements."""
    return _resized(self, tensor.shape)


def _resized(self, size):
    if cresset.Size(size).numel() != self.numel():
        raise RuntimeError(f"requested resize to {list(size)}, but the given tensor has a size of {list(self.shape)}: the number of elements must stay. Use resize_ to change it.")
    return self.contiguous().view(size)


@tensor_method(asks=True)
def reinforce(self, reward):
    raise RuntimeError("reinforce() was removed. Sample with cresset.multinomial and weigh the logarithm of the probability with the reward.")


@tensor_method
def module_load(self, other, assign=False):
    """What Module.load_state_dict puts in the place of this tensor when parameters are swapped: this tensor with the other's values, or with assign
    the other tensor; in each case another object than both."""
    return other.detach() if assign else self.copy_(other).detach()


@tensor_method
def xpu(self, *args, **kwargs):
    raise AssertionError("Torch not compiled with XPU enabled")


@tensor_method
def ipu(self, *args, **kwargs):
    raise RuntimeError("PyTorch is not linked with support for ipu devices")


@tensor_method
def mtia(self, *args, **kwargs):
    raise AssertionError(
        "Torch not compiled with MTIA enabled. Ensure you have `import mtia.host_runtime.torch_mtia.dynamic_library` in your python src "
        "file and include `//mtia/host_runtime/torch_mtia:torch_mtia` as your target dependency!"
    )


@overridable
def closed_range(start=0, end=None, step=1, *, out=None, dtype=None, layout=cresset.strided, device=None, requires_grad=False):
    """The numbers from start to end, end included where a step meets it, of the default dtype unless one is given. Use arange, which leaves end out.

    RuntimeError for a step of 0 or of the wrong sign, and for ends without bound; NotImplementedError for bool and complex dtypes.
    """
    import warnings

    if end is None:
        raise TypeError('range() missing 1 required positional arguments: "end"')
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with Python's range builtin. "
        "Instead, use torch.arange, which produces values in [start, end).",
        stacklevel=2,
    )
    start, end, step = (v.item() if isinstance(v, cresset.Tensor) else v for v in (start, end, step))
    if out is not None and out.requires_grad:
        raise RuntimeError("aten::range(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad.")
    if out is not None and dtype not in (None, out.dtype):
        raise RuntimeError(f"dtype {word_of(dtype)} does not match dtype of out parameter ({word_of(out.dtype)})")
    if out is not None and layout is not out.layout:
        raise RuntimeError(f"layout {layout} does not match layout of out parameter ({out.layout})".replace("cresset.", ""))
    if out is not None and device is not None and cresset.device(device).type != out.device.type:
        raise RuntimeError(f"device type {cresset.device(device).type} does not match device type of out parameter ({out.device.type})")
    numbers = cresset.ops.aten.range.step(start, end, step, dtype=dtype if out is None else out.dtype, device=device)
    if out is not None:
        if out.numel() != numbers.numel():
            return out.resize_(numbers.shape).copy_(numbers).requires_grad_(requires_grad)
        return out.copy_(numbers.view(out.shape)).requires_grad_(requires_grad)  # a tensor of as many elements keeps its sizes and strides
    return numbers.requires_grad_(requires_grad)


closed_range.__name__ = closed_range.__qualname__ = "range"


tensor_attribute("name", None)
tensor_attribute("volatile", False)
