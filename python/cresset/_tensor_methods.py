"""Methods of Tensor that are written in Python: hooks, sharing, small conveniences."""

import functools
from collections import OrderedDict

import cresset

from . import _C, _fork_pickling, _reductions, _spectral
from ._overridable import tensor_attribute, tensor_method


class _Hooks(OrderedDict):
    """Hooks of a tensor; `of_node` numbers the node that they were registered for."""

    def __repr__(self):
        return repr(OrderedDict(self))


@tensor_method
def register_hook(self, hook):
    """Call hook(grad) with each gradient of this tensor; a tensor that it returns replaces the gradient. Gives a handle with remove()."""
    from .utils.hooks import RemovableHandle

    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    node = self.grad_fn
    of_node = None if node is None else node._sequence_nr()
    if self._backward_hooks is None or getattr(self._backward_hooks, "of_node", None) != of_node:
        # An in-place change gives a tensor a new node; hooks from before stay with the old one.
        self._backward_hooks = _Hooks()
        self._backward_hooks.of_node = of_node
    handle = RemovableHandle(self._backward_hooks)
    self._backward_hooks[handle.id] = hook
    return handle


@tensor_method
def register_post_accumulate_grad_hook(self, hook):
    """Call hook(tensor) after a gradient was added into .grad of this leaf. Gives a handle with remove()."""
    from .utils.hooks import RemovableHandle

    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if not self.is_leaf:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    if self._post_accumulate_grad_hooks is None:
        self._post_accumulate_grad_hooks = OrderedDict()
        _C._set_post_accumulate_grad_hooks(self, self._post_accumulate_grad_hooks)
    handle = RemovableHandle(self._post_accumulate_grad_hooks)
    self._post_accumulate_grad_hooks[handle.id] = hook
    return handle


@tensor_method
def __reversed__(self):
    """The tensor with its first dimension in reverse order."""
    return self if self.dim() == 0 else self.flip(0)


@tensor_method
def nonzero(self, *, as_tuple=False):
    """Positions of the elements that are not zero: one row each, or with as_tuple one index tensor for each dimension."""
    return cresset.nonzero(self, as_tuple=as_tuple)


@tensor_method
def share_memory_(self):
    """Move the memory to where processes that are forked, or that the tensor is sent to, see it too; returns the tensor.

    RuntimeError for memory of a device.
    """
    self.untyped_storage().share_memory_()
    return self


@tensor_method
def is_shared(self):
    """Whether other processes can see the memory."""
    return _C._storage_shared(self) is not None


@tensor_method
def pin_memory(self, device=None):
    """A copy in host memory that devices of the accelerator read directly; the tensor itself when it is there already.

    RuntimeError when there is no accelerator, or when its backend has no such memory.
    """
    return _C._pin_memory(self, None if device is None else cresset.device(device))


@tensor_method
def is_pinned(self, device=None):
    """Whether it lies in pinned host memory."""
    return _C._is_pinned(self)


@tensor_method
def cuda(self, *args, **kwargs):
    """Raises AssertionError: no CUDA device is built in. Use to(device) with a registered device."""
    raise AssertionError("Torch not compiled with CUDA enabled")


# Storages are loaded on first use: `cresset.storage` and not an import at the top.


@tensor_method
def untyped_storage(self):
    """The memory that this tensor and its views share."""
    return cresset.storage.UntypedStorage._of(self)


@tensor_method
def storage(self):
    """The memory that this tensor and its views share, as elements of its type. Deprecated, as typed storages are."""
    cresset.storage._warn_typed_storage_removal()
    return cresset.storage.TypedStorage._of(self)


@tensor_method
def _typed_storage(self):
    return cresset.storage.TypedStorage._of(self)


@tensor_method
def storage_type(self):
    """The legacy class of this tensor's storage."""
    return cresset.storage.legacy_class(self.dtype)


_set_tensor = cresset.Tensor.set_


@tensor_method
def set_(self, source=None, storage_offset=0, size=None, stride=None):
    """Make this tensor one over the memory of `source`, a tensor or storage; without arguments an empty one."""
    if source is None:
        return _set_tensor(self)
    if not isinstance(source, cresset.Tensor) and cresset.is_storage(source):
        return _set_tensor(self, cresset.storage.tensor_of_storage(source, self.dtype, storage_offset, size, stride))
    if size is None:
        return _set_tensor(self, source)
    return _set_tensor(self, source, storage_offset, size, () if stride is None else stride)


@tensor_method(asks=True)
def __dir__(self):
    # Names that no tensor answers are not shown: hasattr holds for all others, but for those of complex tensors.
    return sorted((set(dir(type(self))) | set(self.__dict__)) - {"__cuda_array_interface__", "names"})


_divided_by = cresset.Tensor.__rtruediv__


@tensor_method
def __rdiv__(self, other):
    return _divided_by(self, other)


@tensor_method
def lu(self, pivot=True, get_infos=False):
    """The LU factors of cresset.lu."""
    return cresset.lu(self, pivot, get_infos)


def _as_method(function):
    """A function of the package as a method, which is another one to those who override it."""

    @functools.wraps(function)
    def method(self, *args, **kwargs):
        return function(self, *args, **kwargs)

    return method


for _function in (_reductions.norm, _reductions.unique, _reductions.unique_consecutive, _spectral.stft):
    tensor_method(_as_method(_function.__wrapped__))
# Names of division from Python 2 that PyTorch keeps.
tensor_attribute("__div__", cresset.Tensor.__truediv__)
tensor_attribute("__idiv__", cresset.Tensor.__itruediv__)
tensor_attribute("__array_priority__", 1000)  # NumPy leaves mixed arithmetic to tensors
tensor_attribute("__module__", "cresset")
_fork_pickling.register(cresset.Tensor, "reduce_tensor")
_C._set_nowrap_functions({cresset.Tensor._base.__get__, cresset.Tensor.grad.__get__, cresset.Tensor._grad.__get__})
