"""How tensors come back from pickles: the functions that files and pickles of PyTorch name as `torch._utils.…`.

They are called with what a file says. What they are given is checked by the operators that make the tensor: a view that reaches beyond its
storage, a dtype that cannot require gradients and so on raise.
"""

import copyreg
import warnings
from collections import OrderedDict

import cresset
from cresset import _C

__all__ = []


def _element_size(dtype):
    """Bytes of one element of a dtype."""
    if not isinstance(dtype, cresset.dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize


def _is_privateuse1_backend_available():
    """Is there a backend in the first reserved slot whose module says that it has a device?"""
    module = getattr(cresset, _C._get_privateuse1_backend_name(), None)
    return module is not None and bool(module.is_available())


def _restored_device(device):
    """Where a tensor goes that names its device itself: map_location of the load that is going on, or the device."""
    from .serialization._locations import mapped_device

    return mapped_device(device)


def _rebuild_tensor(storage, storage_offset, size, stride):
    """A tensor over a typed storage."""
    return cresset.storage.tensor_of_storage(storage, storage.dtype, storage_offset, size, stride)


def get_tensor_metadata(tensor):
    """{"conj": True, "neg": True, and what the backend keeps beside the tensor}, without what is False."""
    facts = dict(_C._backend_meta(tensor))
    if tensor.is_conj():
        facts["conj"] = True
    if tensor.is_neg():
        facts["neg"] = True
    return facts


def _copied(tensor, function):
    """function(tensor), of the data that the tensor has when its file is read to the end."""
    from cresset.serialization._options import when_read

    result = cresset.empty_like(tensor)
    when_read(lambda: result.copy_(function(tensor)))
    return result


def set_tensor_metadata(tensor, metadata):
    """The tensor as get_tensor_metadata described it; another object where a fact is a kind of view."""
    rest = {str(name): bool(value) for name, value in metadata.items()}
    if rest.pop("conj", False):
        tensor = _copied(tensor, cresset.conj_physical)
    if rest.pop("neg", False):
        tensor = _copied(tensor, cresset.neg)
    if rest:
        _C._restore_backend_meta(tensor, rest)
    return tensor


def _finished(tensor, requires_grad, backward_hooks, metadata):
    if metadata:
        tensor = set_tensor_metadata(tensor, metadata)
    if requires_grad:
        tensor.requires_grad_()
    if backward_hooks:
        tensor._backward_hooks = backward_hooks
    return tensor


def _rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None):
    """A leaf over a typed storage."""
    return _finished(_rebuild_tensor(storage, storage_offset, size, stride), requires_grad, backward_hooks, metadata)


def _rebuild_tensor_v3(storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None):
    """A leaf of a dtype that has no class of storages, over bytes."""
    tensor = cresset.storage.tensor_of_storage(storage.untyped(), dtype, storage_offset, size, stride)
    return _finished(tensor, requires_grad, backward_hooks, metadata)


def _rebuild_nested_tensor(buffer, sizes, strides, storage_offsets):
    """A nested tensor of the layout strided over a buffer."""
    from .nested._internal.strided import rebuild

    return rebuild(buffer, sizes, strides, storage_offsets)


def _rebuild_qtensor(storage, storage_offset, size, stride, quantizer_params, requires_grad, backward_hooks):
    """A quantized tensor over a typed storage of its dtype."""
    from ._quantized._functions import rebuild

    return rebuild(storage, storage_offset, size, stride, quantizer_params)


def _rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad):
    """A leaf on the device meta."""
    return cresset.empty_strided(size, stride, dtype=dtype, device="meta").requires_grad_(requires_grad)


def _rebuild_wrapper_subclass(cls, dtype, size, stride, storage_offset, layout, device, requires_grad):
    """An instance of a class that wraps other tensors; its attributes come from its state."""
    return cresset.Tensor._make_wrapper_subclass(
        cls, size, strides=stride, dtype=dtype, storage_offset=storage_offset, layout=layout, device=_restored_device(device), requires_grad=requires_grad
    )


def _rebuild_device_tensor_from_cpu_tensor(data, dtype, device, requires_grad):
    """A leaf on a device whose memory files do not hold: they hold a tensor on the CPU."""
    return data.to(dtype=dtype, device=_restored_device(device)).detach().requires_grad_(requires_grad)


def _rebuild_device_tensor_from_numpy(data, dtype, device, requires_grad):
    """The same from a NumPy array."""
    return _rebuild_device_tensor_from_cpu_tensor(cresset.from_numpy(data), dtype, device, requires_grad)


_rebuild_xla_tensor = _rebuild_device_tensor_from_numpy


def _rebuild_parameter(data, requires_grad, backward_hooks):
    """A Parameter over `data`."""
    parameter = cresset.nn.Parameter(data, requires_grad)
    if backward_hooks:
        parameter._backward_hooks = backward_hooks
    return parameter


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    """A Parameter with attributes."""
    return _set_obj_state(_rebuild_parameter(data, requires_grad, backward_hooks), state)


def _get_obj_state(obj):
    """What pickle keeps of an object's attributes: its dictionary, or (dictionary, slots) when its class has slots."""
    own = getattr(type(obj), "__getstate__", None)
    if own is not None and own is not getattr(object, "__getstate__", None):
        return own(obj)
    slots = {name: getattr(obj, name) for name in copyreg._slotnames(type(obj)) if hasattr(obj, name)}
    return (obj.__dict__ or None, slots) if slots else obj.__dict__


def _set_obj_state(obj, state):
    """Gives an object the attributes of _get_obj_state."""
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    if attributes:
        obj.__dict__.update(attributes)
    for name, value in (slots or {}).items():
        if name not in copyreg._slotnames(type(obj)):
            raise RuntimeError(f"pickle: an attribute of the class's __slots__ was required; given: {name!r} for {type(obj).__name__}")
        setattr(obj, name, value)
    return obj


def _hooks_of(tensor):
    from cresset.utils.hooks import warn_if_has_hooks

    warn_if_has_hooks(tensor)
    return OrderedDict()


def _wraps_others(tensor):
    """Is it a tensor without memory, whose class sees operators in __torch_dispatch__?"""
    cls = type(tensor)
    if cls is cresset.Tensor or cls.__torch_dispatch__ is cresset.Tensor.__torch_dispatch__:
        return False
    try:
        return _C._storage_data_ptr(tensor) == 0
    except RuntimeError:
        return True


def is_materialized(tensor):
    """Is it a fake tensor that the save going on writes as a tensor of its device?"""
    from cresset._recorded import is_fake
    from cresset.serialization._options import _serialization_tls

    return _serialization_tls.materialize_fake_tensors and is_fake(tensor)


def _storage_of_fake(fake):
    """The storage of a fake tensor as skip_data(materialize_fake_tensors=True) writes it: without data, on the device it pretends."""
    storage = cresset.UntypedStorage._of(fake._elem)
    storage._fake_device = fake.device
    return storage


def reduce_tensor(tensor):
    """(function, arguments) that give a tensor of no subclass with the same storage; the graph is not part of it: what comes back is a leaf."""
    from cresset._recorded import is_fake
    from cresset.serialization._options import _serialization_tls

    hooks = _hooks_of(tensor)
    size, requires_grad = tuple(tensor.size()), tensor.requires_grad
    if is_materialized(tensor):
        untyped = _storage_of_fake(tensor)
    elif not is_fake(tensor) and _wraps_others(tensor):
        stride, offset = tuple(tensor.stride()), tensor.storage_offset()
        return _rebuild_wrapper_subclass, (type(tensor), tensor.dtype, size, stride, offset, tensor.layout, tensor.device, requires_grad)
    elif tensor.is_meta:
        if _serialization_tls.skip_data:
            import warnings

            warnings.warn("Serializing tensors on the meta device under skip_data context manager is a no-op", stacklevel=4)
        return _rebuild_meta_tensor_no_storage, (tensor.dtype, size, tuple(tensor.stride()), requires_grad)
    elif tensor.device.type != "cpu" and not cresset._C._has_storage(tensor):
        if _serialization_tls.skip_data:
            raise RuntimeError("Cannot serialize tensors on backends with no storage under skip_data context manager")
        return _rebuild_device_tensor_from_cpu_tensor, (tensor.detach().cpu(), tensor.dtype, str(tensor.device), requires_grad)
    else:
        if tensor.is_neg():  # views that negate are read as copies, so they are written as copies
            tensor = tensor.detach().resolve_neg()
        untyped = tensor.untyped_storage()
    stride, offset = tuple(tensor.stride()), tensor.storage_offset()
    metadata = get_tensor_metadata(tensor)
    more = (metadata,) if metadata else ()
    if cresset.storage.has_legacy_class(tensor.dtype):
        typed = cresset.storage.TypedStorage(wrap_storage=untyped, dtype=tensor.dtype, _internal=True)
        return _rebuild_tensor_v2, (typed, offset, size, stride, requires_grad, hooks, *more)
    return _rebuild_tensor_v3, (untyped, offset, size, stride, requires_grad, hooks, tensor.dtype, *more)


def reduce_parameter(parameter):
    """(function, arguments) of a Parameter."""
    hooks, state = _hooks_of(parameter), _get_obj_state(parameter)
    if state:
        return _rebuild_parameter_with_state, (parameter.data, parameter.requires_grad, hooks, state)
    return _rebuild_parameter, (parameter.data, parameter.requires_grad, hooks)


# --- errors of other threads and processes ---------------------------------------------------------------------------------------


class KeyErrorMessage(str):
    """The text of a KeyError that prints its lines as lines."""

    def __repr__(self):
        return str(self)


class ExceptionWrapper:
    """An error as text and type, to be raised elsewhere: in another thread or process. Without `exc_info`, the one that is handled now."""

    def __init__(self, exc_info=None, where="in background"):
        import sys
        import traceback

        self.exc_type, error, trace = exc_info or sys.exc_info()
        self.exc_msg = "".join(traceback.format_exception(self.exc_type, error, trace))
        self.where = where

    def reraise(self):
        """Raise an error of the same type with both texts; RuntimeError where the type cannot be made of a text."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            message = KeyErrorMessage(message)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=message)
        try:
            error = self.exc_type(message)
        except Exception:
            raise RuntimeError(message) from None
        raise error


def _get_all_device_indices():
    """The numbers of all devices of an accelerator; None without one."""
    from . import accelerator

    return list(range(accelerator.device_count())) if accelerator.is_available() else None


def _get_available_device_type():
    """The kind of accelerator there is, as a text; None without one."""
    from . import accelerator

    return accelerator.current_accelerator().type if accelerator.is_available() else None


def _rebuild_sparse_tensor(layout, data):
    """A sparse tensor of a file, from its layout and parts. RuntimeError when they do not fit together: files may be damaged."""
    from . import sparse
    from .serialization._options import is_read_later, when_read
    from .sparse._validate import check_compressed, check_coordinates

    now = not is_read_later()
    if layout is cresset.sparse_coo:
        indices, values, size, *coalesced = data
        coalesced = coalesced[0] if coalesced else None
        if not now:
            when_read(lambda: check_coordinates(indices, size, coalesced))
        return sparse.sparse_coo_tensor(indices, values, size, is_coalesced=coalesced, check_invariants=now)
    if not now:
        when_read(lambda: check_compressed(*data, layout))
    return sparse.sparse_compressed_tensor(*data, layout=layout, check_invariants=now)


def _rebuild_jagged_tensor(values, offsets, lengths, ragged_idx, low, high, requires_grad):
    """A nested tensor in the layout torch.jagged."""
    return cresset.nested.NestedTensor(values.requires_grad_(requires_grad), offsets, lengths=lengths, _ragged_idx=ragged_idx, _min_seqlen=low, _max_seqlen=high)


def _get_device_module(device_type):
    """The module of a kind of device, by its name; RuntimeError where there is none."""
    module = getattr(cresset, device_type, None)
    if module is None:
        raise RuntimeError(f"Device '{device_type}' does not have a corresponding module registered as 'torch.{device_type}'.")
    return module


# ---- what packages for PyTorch import from here


def _flatten_dense_tensors(tensors):
    """One tensor of one dimension with all elements, for tensors of one dtype; a view where there is one contiguous tensor. ValueError for none."""
    return cresset._C._nn.flatten_dense_tensors(tensors)


def _unflatten_dense_tensors(flat, tensors):
    """Views of what _flatten_dense_tensors gave, in the sizes of `tensors`. RuntimeError where it has too few elements."""
    return cresset._C._nn.unflatten_dense_tensors(flat, tensors)


def _take_tensors(tensors, size_limit):
    """Lists of tensors of one type, of at most `size_limit` bytes together unless a tensor is larger; full lists first, in the order of `tensors`."""
    groups = {}
    for t in tensors:
        parts = (t._indices(), t._values()) if t.is_sparse else (t,)
        nbytes = sum(part.numel() * part.element_size() for part in parts)
        group, taken = groups.get(t.type(), ([], 0))
        if group and taken + nbytes > size_limit:
            yield group
            group, taken = [], 0
        groups[t.type()] = ([*group, t], taken + nbytes)
    yield from (group for group, _ in groups.values() if group)


def _reorder_tensors_as(tensors, ordered_tensors):
    """`tensors` in the order of `ordered_tensors`, of which those of one type come in the same order in both."""
    by_type = {}
    for t in tensors:
        by_type.setdefault(t.type(), []).append(t)
    rest = {kind: iter(group) for kind, group in by_type.items()}
    return tuple(next(rest[t.type()]) for t in ordered_tensors)


def _get_current_device_index():
    """The current device's number; -1 without an accelerator."""
    from . import accelerator

    return accelerator.current_device_index() if accelerator.is_available() else -1


def _get_device_index(device, optional=False, allow_cpu=False):
    """The number in a device, its text, or a number; -1 for the CPU where it is allowed. `optional` stands for the current device, None without one.

    ValueError for what has no number.
    """
    if isinstance(device, str):
        device = cresset.device(device)
    index = device if isinstance(device, int) and not isinstance(device, bool) else None
    if isinstance(device, cresset.device):
        if device.type == "cpu" and not allow_cpu:
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        index = -1 if device.type == "cpu" else device.index
    if index is None and optional:
        current = _get_current_device_index()
        return None if current < 0 else current
    if index is None:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    return index


def is_compiling():
    """False: what `compile` makes is made of graphs that are recorded, and Python code does not run there."""
    return cresset.compiler.is_compiling()


def _get_async_or_non_blocking(function_name, non_blocking, kwargs):
    """The value of non_blocking, for a function that was once given `async`. TypeError for other keywords."""
    if not kwargs:
        return non_blocking
    if len(kwargs) != 1 or "async" not in kwargs:
        raise TypeError(f"{function_name}() got an unexpected keyword argument '{next(iter(kwargs))}'")
    warnings.warn("'async' is deprecated; use 'non_blocking'", stacklevel=3)
    return kwargs["async"]


def _import_dotted_name(name):
    """What "package.module.name" stands for. AttributeError where a part is missing."""
    import importlib

    first, *parts = name.split(".")
    found = importlib.import_module(first)
    for part in parts:
        found = getattr(found, part)
    return found


class classproperty:
    """A property of the class itself: `@classproperty def name(cls)`."""

    def __init__(self, function):
        self._function = function

    def __get__(self, instance, owner=None):
        return self._function(type(instance) if owner is None else owner)
