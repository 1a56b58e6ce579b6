"""Methods of Tensor that are written in Python: printing, formatting, deepcopy and pickle."""

import copyreg
import weakref

import cresset

from ._C import Tensor  # noqa: F401  where PyTorch has it
from ._overridable import tensor_attribute, tensor_method

__all__ = []


@tensor_method(name="__repr__", asks=True)
def _repr(self, *, tensor_contents=None):
    """The values in columns, summarised when there are many, then device, dtype and gradient."""
    if cresset._C._has_torch_function_unary(self):
        from cresset.overrides import handle_torch_function

        return handle_torch_function(cresset.Tensor.__repr__, (self,), self, tensor_contents=tensor_contents)
    from cresset._tensor_str import _str

    return _str(self, tensor_contents=tensor_contents)


@tensor_method(name="__format__")
def _format(self, spec):
    """A one-element tensor formats as its number, others as their repr."""
    if self.dim() == 0 and not self.is_meta and type(self) is cresset.Tensor:
        return self.item().__format__(spec)
    return object.__format__(self, spec)


class _WeakTensorRef:
    """Whether a tensor still lives, without keeping it."""

    def __init__(self, tensor):
        self._ref = weakref.ref(tensor)

    def expired(self):
        """True when the tensor is gone."""
        return self._ref() is None


cresset._C._WeakTensorRef = _WeakTensorRef


def _rebuild_from_type_v2(func, new_type, args, state):
    """An instance of `new_type` with the attributes of `state`, from what `func(*args)` gives."""
    from cresset._utils import _set_obj_state

    result = func(*args)
    if type(result) is not new_type:
        leaf = result.requires_grad and result.is_leaf
        result = (result.detach() if leaf else result).as_subclass(new_type)
        if leaf:
            result.requires_grad = True
    own = getattr(type(result), "__setstate__", cresset.Tensor.__setstate__)
    if own is not cresset.Tensor.__setstate__:
        result.__setstate__(state)
        return result
    return _set_obj_state(result, state)


def _rebuild_from_type(func, type, args, dict):
    """The form of it in older files."""
    return _rebuild_from_type_v2(func, type, args, dict)


@tensor_method(name="__reduce_ex__", asks=True)
def _reduce_ex(self, proto):
    """Pickle the storage with size, strides and requires_grad; the graph is not part of it: what is read is a leaf.

    Tensors that share a storage share it again where the pickler keeps storages apart, as cresset.save does.
    """
    from cresset._utils import _get_obj_state, is_materialized, reduce_tensor

    if is_materialized(self):
        return reduce_tensor(self)
    state = _get_obj_state(self)
    if type(self) is cresset.Tensor and not state:
        if self.numel() and self.device.type not in ("cpu", "meta") and self.layout is cresset.strided and self.untyped_storage().nbytes() == 0:
            raise RuntimeError(f"pickle: a tensor with memory was required; this one on {self.device} has none. Save a copy of it on the CPU, .cpu().")
        return reduce_tensor(self)
    if cresset._C._has_torch_function_unary(self):
        from cresset.overrides import handle_torch_function

        return handle_torch_function(cresset.Tensor.__reduce_ex__, (self,), self, proto)
    function, arguments = reduce_tensor(self)
    return _rebuild_from_type_v2, (function, type(self), arguments, state)


@tensor_method(name="__setstate__")
def _setstate(self, state):
    """(storage, offset, size, stride) of pickles from before reduced forms had functions."""
    if not isinstance(state, tuple) or len(state) != 4:
        raise RuntimeError("Tensor.__setstate__: (storage, offset, size, stride) were required.")
    self.set_(*state)


def _copied(self, memo):
    """A copy without history. Tensors that share memory share the copy's too, where the memory is the host's."""
    import copy

    plain = self.detach()
    if plain.device.type == "cpu" and type(plain) is cresset.Tensor and not plain.is_neg():
        try:
            storage = plain.untyped_storage()
        except (RuntimeError, NotImplementedError):  # a tensor that wraps another has none
            return plain.clone(memory_format=cresset.preserve_format)
        offset, size, stride = plain.storage_offset(), plain.shape, plain.stride()
        result = cresset.storage.tensor_of_storage(copy.deepcopy(storage, memo), plain.dtype, offset, size, stride)
        return result.conj() if plain.is_conj() else result
    return plain.clone(memory_format=cresset.preserve_format)


def _require_new_empty(tensor):
    """RuntimeError for a subclass whose new_empty() gives another class: it has not said that a tensor of it can be made of memory alone."""
    made = tensor.new_empty(())
    if type(made) is not type(tensor):
        raise RuntimeError(
            "The default implementation of __deepcopy__() for non-wrapper subclasses only works for subclass types that implement new_empty() and for which "
            "that function returns another instance of the same subclass. You should either properly implement new_empty() for your subclass or "
            "override __deepcopy__() if it is intended behavior for new_empty() to return an instance of a different type."
        )


@tensor_method(name="__deepcopy__")
def _deepcopy(self, memo):
    """A leaf with its own copy of the data and of the gradient; RuntimeError for a tensor that was computed from others."""
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you were "
            "attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001"
        )
    if id(self) in memo:
        return memo[id(self)]
    import copy

    with cresset.no_grad():
        if cresset._utils._wraps_others(self) or self.is_meta and type(self) not in (cresset.Tensor, cresset.nn.Buffer):
            result = self.clone()
            if type(result) is not type(self):
                raise RuntimeError(
                    "The default implementation of __deepcopy__() for wrapper subclasses only works for subclass types that properly implement clone() "
                    f"and for which cloning returns another instance of the same subclass; clone() of a {type(self).__name__} gave a "
                    f"{type(result).__name__}. Implement clone(), or override __deepcopy__()."
                )
        else:
            if type(self) not in (cresset.Tensor, cresset.nn.Buffer):
                _require_new_empty(self)
            result = _copied(self, memo)
        if type(result) is not type(self):
            result = result.as_subclass(type(self))
        if self.requires_grad:
            result.requires_grad_()
        if self.grad is not None:
            result.grad = copy.deepcopy(self.grad, memo)
    memo[id(self)] = result
    if getattr(self, "__dict__", None):
        result.__dict__.update(copy.deepcopy(self.__dict__, memo))
    for name in copyreg._slotnames(type(self)):
        if hasattr(self, name):
            setattr(result, name, copy.deepcopy(getattr(self, name), memo))
    return result


def _init_subclass(cls, **kwargs):
    """A class that sees operators below autograd gets no results converted above it, unless it says itself how."""
    super(cresset.Tensor, cls).__init_subclass__(**kwargs)
    defined = next(c for c in cls.__mro__ if "__torch_function__" in vars(c))
    if defined is cresset.Tensor and cls.__torch_dispatch__ is not cresset.Tensor.__torch_dispatch__:
        cls.__torch_function__ = cresset._C._disabled_torch_function_impl


def _reduce_layout(layout):
    from cresset.serialization._names import _get_layout

    return _get_layout, ("torch." + str(layout).partition(".")[2],)


def _reduce_generator(generator):
    """(kind, device) and the seed, the offset (None on the CPU) and the state."""
    offset = None if generator.device.type == "cpu" else generator.get_offset()
    return cresset.Generator, (generator.device,), (generator.initial_seed(), offset, generator.get_state())


def _restore_generator(generator, state):
    from cresset.serialization._options import when_read

    seed, offset, data = state

    def restore():
        generator.manual_seed(seed)
        if offset is not None:
            generator.set_offset(offset)
        generator.set_state(data)

    when_read(restore)


tensor_attribute("__init_subclass__", classmethod(_init_subclass))
copyreg.pickle(cresset.layout, _reduce_layout)
cresset.Generator.__reduce__, cresset.Generator.__setstate__ = _reduce_generator, _restore_generator
