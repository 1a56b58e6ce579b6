"""Parameter and Buffer: tensors that a Module registers when they become its attributes."""

import cresset
from cresset import Tensor, _fork_pickling

__all__ = ["Parameter", "Buffer", "UninitializedParameter", "UninitializedBuffer", "is_lazy"]


class _ParameterMeta(type(Tensor)):
    # A tensor of a user's own type that went through Parameter(...) keeps its type and counts as a Parameter.
    def __instancecheck__(cls, instance):
        if super().__instancecheck__(instance):
            return True
        return cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that is trained: registered as a parameter when assigned to a Module attribute.

    `data` shares storage with the result; only floating point and complex dtypes may require gradients.
    """

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = cresset.empty(0)
        if not isinstance(requires_grad, bool):
            raise TypeError(f"_make_subclass(): argument 'require_grad' (position 3) must be bool, not {type(requires_grad).__name__}")
        if type(data) is Tensor or type(data) is Parameter:
            return Tensor._make_subclass(cls, data, requires_grad)
        # A subclass keeps its own type; it is marked instead of wrapped.
        param = data.detach()
        if cresset._C._has_torch_function_unary(param):
            param.requires_grad_(requires_grad)
        else:
            param.requires_grad = requires_grad  # requires_grad_() is refused inside of function transforms
        if type(param) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns an "
                f"instance of the same type, but return type {type(param).__name__} was found instead. Make {type(data).__name__}'s "
                "__torch_dispatch__ or __torch_function__ preserve the type."
            )
        param._is_param = True
        return param

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)(self.data.clone(memory_format=cresset.preserve_format), self.requires_grad)
        memo[id(self)] = result
        return result

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, proto):
        from cresset._utils import reduce_parameter

        return reduce_parameter(self)

    __torch_function__ = cresset._C._disabled_torch_function_impl


_fork_pickling.register(Parameter, "reduce_tensor")


class _BufferMeta(type(Tensor)):
    def __instancecheck__(cls, instance):
        if super().__instancecheck__(instance):
            return True
        return cls is Buffer and isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that is state but not trained: registered as a buffer when assigned to a Module attribute.

    With `persistent=False` it is left out of the state dict. The result keeps the type of `data`.
    """

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            data = cresset.empty(0)
        buffer = data.detach().requires_grad_(data.requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer

    __torch_function__ = cresset._C._disabled_torch_function_impl


_ALLOWED = frozenset(
    ["to", "cpu", "cuda", "half", "float", "double", "bfloat16", "char", "short", "int", "long", "size", "get_device", "copy_", "is_floating_point",
     "is_complex", "requires_grad_", "__hash__"]
)  # fmt: skip


class UninitializedTensorMixin:
    """A tensor whose shape is not known yet; `materialize` gives it one. Other operations raise ValueError."""

    @property
    def shape(self):
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in `load_state_dict` when "
            "trying to load an uninitialized parameter into an initialized one. Call `forward` to initialize the parameters before "
            "accessing their attributes."
        )

    def materialize(self, shape, device=None, dtype=None):
        """Become an ordinary, uninitialised tensor of this shape, in place."""
        device = self.data.device if device is None else device
        dtype = self.data.dtype if dtype is None else dtype
        self.data = cresset.empty(shape, device=device, dtype=dtype)
        self.__class__ = self.cls_to_become

    def share_memory_(self):
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters before calling "
            "`module.share_memory()`."
        )

    def __repr__(self):
        return f"<{type(self).__name__}>"

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        # Attributes arrive as the __get__ or __set__ of their descriptors.
        if name in _ALLOWED or name in ("__get__", "__set__", "__delete__"):
            with cresset._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))
        raise ValueError(
            f"Attempted to use an uninitialized parameter in {func}. This error happens when you are using a `LazyModule` or "
            "explicitly manipulating `torch.nn.parameter.UninitializedParameter` objects. When using LazyModules Call `forward` with a "
            "dummy batch to initialize the parameters before calling torch functions"
        )


def is_lazy(param):
    """Does `param` still wait for its shape?"""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A Parameter without a shape."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        return Tensor._make_subclass(cls, cresset.empty(0, device=device, dtype=dtype), requires_grad)

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return memo[id(self)]

    def __reduce_ex__(self, proto):
        return (UninitializedParameter, (self.requires_grad,))


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer without a shape."""

    cls_to_become = Tensor

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        buffer = Tensor._make_subclass(cls, cresset.empty(0, device=device, dtype=dtype), requires_grad)
        buffer.persistent = persistent
        buffer._is_buffer = True
        return buffer

    def __reduce_ex__(self, proto):
        return (UninitializedBuffer, (self.requires_grad,))
