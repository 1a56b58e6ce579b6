"""Parametrizations: a parameter that is computed from others, by modules registered on it."""

import copyreg
from contextlib import contextmanager

import cresset
from cresset import Tensor
from cresset.__future__ import get_swap_module_params_on_conversion
from cresset.nn import ModuleDict, ModuleList, Parameter
from cresset.utils._python_dispatch import is_traceable_wrapper_subclass
from cresset.utils._swap import swap_tensors

__all__ = [
    "cached", "ParametrizationList", "register_parametrization", "is_parametrized", "remove_parametrizations",
    "type_before_parametrizations", "transfer_parametrizations_and_params",
]  # fmt: skip

# While a `cached()` block is active: (id of the module, name) -> computed tensor.
_cache_enabled = 0
_cache = {}


@contextmanager
def cached():
    """Inside the block every parametrized tensor is computed once, at its first use."""
    global _cache_enabled
    _cache_enabled += 1
    try:
        yield
    finally:
        _cache_enabled -= 1
        if not _cache_enabled:
            _cache.clear()


def _register(module, name, tensor):
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _assign(destination, source):
    """Give the tensor `destination` the value of `source`, keeping the object."""
    # A wrapper keeps its parts in attributes, which `data` does not carry over.
    wrapped = is_traceable_wrapper_subclass(source) or is_traceable_wrapper_subclass(destination)
    if not wrapped and not get_swap_module_params_on_conversion():
        destination.data = source.data
    elif source is not destination:
        grad = destination.grad
        value = source.detach()
        swap_tensors(destination, Parameter(value, destination.requires_grad) if isinstance(destination, Parameter) else value)
        if not wrapped:
            destination.grad = grad


class ParametrizationList(ModuleList):
    """The modules that compute one tensor, first to last, and the tensors they compute it from.

    `original` is the tensor that the first module's right_inverse gave (`original0`, `original1`, ... when it gave several).
    """

    __constants__ = ["is_tensor"]

    def __init__(self, modules, original, unsafe=False):
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        with cresset.no_grad():
            new = original
            for module in reversed(self):
                if hasattr(module, "right_inverse"):
                    try:
                        new = module.right_inverse(new)
                    except NotImplementedError:
                        pass  # as if there was none
        if not isinstance(new, cresset.Tensor) and not isinstance(new, (list, tuple)):
            raise ValueError(f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got {type(new).__name__}")
        self.is_tensor = isinstance(new, cresset.Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            if original.dtype != new.dtype:
                raise ValueError(f"When `right_inverse` outputs one tensor, it may not change the dtype.\noriginal.dtype: {original.dtype}\nright_inverse(original).dtype: {new.dtype}")
            if original.device != new.device:
                raise ValueError(f"When `right_inverse` outputs one tensor, it may not change the device.\noriginal.device: {original.device}\nright_inverse(original).device: {new.device}")
            # The same object stays, so that an optimizer that knows it goes on with it.
            with cresset.no_grad():
                _assign(original, new)
            _register(self, "original", original)
        else:
            for i, tensor in enumerate(new):
                if not isinstance(tensor, cresset.Tensor):
                    raise ValueError(f"'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got element {i} of the sequence with type {type(tensor).__name__}.")
                if isinstance(original, Parameter):
                    tensor = Parameter(tensor, original.requires_grad)
                tensor.requires_grad_(original.requires_grad)
                _register(self, f"original{i}", tensor)
        if not unsafe:
            result = self()
            if not isinstance(result, cresset.Tensor):
                raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
            if result.dtype != dtype:
                raise ValueError(
                    f"Registering a parametrization may not change the dtype of the tensor, unless `unsafe` flag is enabled.\nunparametrized dtype: {dtype}\nparametrized dtype: {result.dtype}"
                )
            if result.shape != shape:
                raise ValueError(
                    f"Registering a parametrization may not change the shape of the tensor, unless `unsafe` flag is enabled.\nunparametrized shape: {shape}\nparametrized shape: {result.shape}"
                )

    def _originals(self):
        return [self.original] if self.is_tensor else [getattr(self, f"original{i}") for i in range(self.ntensors)]

    def right_inverse(self, value):
        """Set the originals so that the parametrized tensor becomes `value`, as far as the modules can."""
        with cresset.no_grad():
            for module in reversed(self):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, cresset.Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
                if value.dtype != self.original.dtype:
                    raise ValueError(f"The tensor returned by `right_inverse` has dtype {value.dtype} while `original` has dtype {self.original.dtype}")
                values = [value]
            else:
                if not isinstance(value, (list, tuple)):
                    raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}.")
                if len(value) != self.ntensors:
                    raise ValueError(f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence of length {len(value)}.")
                values = value
            for original, new in zip(self._originals(), values):
                _assign(original, new)

    def forward(self):
        if self.is_tensor:  # a constant: scripts have one of the branches
            value = self[0](self.original)
        else:
            value = self[0](*self._originals())
        for i, module in enumerate(self):
            if i > 0:
                value = module(value)
        return value


def _parametrized_class(module):
    """A class of its own for this object, because properties live in classes."""
    base = type(module)

    def getstate(self):
        raise RuntimeError(
            "Serialization of parametrized modules is only supported through state_dict(). See:\n"
            "https://pytorch.org/tutorials/beginner/saving_loading_models.html#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
        )

    def deepcopy(self, memo):
        from copy import deepcopy as copy_of

        if id(self) in memo:
            return memo[id(self)]
        replica = self.__new__(type(self))
        memo[id(self)] = replica
        replica.__dict__ = copy_of(self.__dict__, memo)
        for slot in copyreg._slotnames(type(self)):
            if hasattr(self, slot):
                setattr(replica, slot, copy_of(getattr(self, slot), memo))
        return replica

    members = {"__getstate__": getstate, "__module__": __name__}
    if not hasattr(base, "__deepcopy__"):
        members["__deepcopy__"] = deepcopy
    module.__class__ = type(f"Parametrized{base.__name__}", (base,), members)


def _add_property(module, name):
    def cached(self):
        if not _cache_enabled:
            return self.parametrizations[name]()
        if cresset.jit.is_tracing():
            raise RuntimeError("Cannot trace a model while caching the parametrized tensors.")
        key = (id(module), name)
        if key not in _cache:
            _cache[key] = self.parametrizations[name]()
        return _cache[key]

    def get(self) -> Tensor:
        if cresset.jit.is_scripting():
            raise RuntimeError("Parametrization is not working with scripting.")
        else:
            return cached(self)

    def set_value(self, value):
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(get, set_value))


def _check_inverse(parametrization, result, now, name):
    """ValueError unless right_inverse of what a further parametrization gives is a tensor of the same kind; the originals stay as they are."""
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        inverse = parametrization.right_inverse(result)
    except NotImplementedError:
        return
    if not isinstance(inverse, cresset.Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(inverse).__name__}")
    for what in ("dtype", "shape"):
        if getattr(inverse, what) != getattr(now, what):
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {what} as module.{name}, unless the `unsafe` flag is enabled.\n"
                f"module.{name}.{what}: {getattr(now, what)}\nreturned {what}: {getattr(inverse, what)}"
            )


def register_parametrization(module, tensor_name, parametrization, *, unsafe=False):
    """Make `module.tensor_name` (a parameter or buffer) the output of `parametrization`.

    The tensor moves to `module.parametrizations.tensor_name.original`. Several registrations are applied one after the other.
    With `right_inverse(value)` in the parametrization the attribute may be assigned to. ValueError when shape or dtype would
    change, unless `unsafe`.
    """
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        entry = module.parametrizations[tensor_name]
        entry.unsafe = entry.unsafe or unsafe
        if not unsafe:
            now = getattr(module, tensor_name)
            result = parametrization(now)
            if not isinstance(result, cresset.Tensor):
                raise ValueError(f"A parametrization must return a tensor. Got {type(result).__name__}.")
            for what in ("dtype", "shape"):
                if getattr(result, what) != getattr(now, what):
                    raise ValueError(
                        f"Registering a parametrization may not change the {what} of the tensor, unless the `unsafe` flag is enabled.\n"
                        f"module.{tensor_name}.{what}: {getattr(now, what)}\nparametrization(module.{tensor_name}).{what}: "
                        f"{getattr(result, what)}"
                    )
            _check_inverse(parametrization, result, now, tensor_name)
        entry.append(parametrization)
        return module
    if tensor_name not in module._parameters and tensor_name not in module._buffers:
        raise ValueError(f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'")
    original = getattr(module, tensor_name)
    entry = ParametrizationList([parametrization], original, unsafe=unsafe)
    delattr(module, tensor_name)
    if not is_parametrized(module):
        _parametrized_class(module)
        module.parametrizations = ModuleDict()
    _add_property(module, tensor_name)
    module.parametrizations[tensor_name] = entry
    return module


def is_parametrized(module, tensor_name=None):
    """Has `module` (or its tensor `tensor_name`) a parametrization?"""
    entries = getattr(module, "parametrizations", None)
    if not isinstance(entries, ModuleDict):
        return False
    return len(entries) > 0 if tensor_name is None else tensor_name in entries


def remove_parametrizations(module, tensor_name, leave_parametrized=True):
    """Make `tensor_name` an ordinary tensor again: its computed value, or the original when not `leave_parametrized`."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    entry = module.parametrizations[tensor_name]
    if entry.is_tensor:
        original = entry.original
        if leave_parametrized:
            with cresset.no_grad():
                _assign(original, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name).detach()
        original = Parameter(value) if any(isinstance(t, Parameter) for t in entry._originals()) else value
    else:
        raise ValueError("Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a sequence of tensors.")
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module):
    """The class that `module` had before it was parametrized."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(from_module, to_module, tensor_name=None):
    """Register the parametrizations of `from_module` (of one tensor or all) on `to_module`, with the same originals."""
    if not is_parametrized(from_module):
        return to_module
    names = from_module.parametrizations if tensor_name is None else [tensor_name]
    if not isinstance(names, ModuleDict) and not is_parametrized(from_module, tensor_name):
        return to_module
    for name in list(names):
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach().clone()))
        source = from_module.parametrizations[name]
        for parametrization in source:
            register_parametrization(to_module, name, parametrization, unsafe=source.unsafe)
        for theirs, ours in zip(source._originals(), to_module.parametrizations[name]._originals()):
            with cresset.no_grad():
                _assign(ours, theirs)
    return to_module
