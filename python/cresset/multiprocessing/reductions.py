"""How tensors and storages are pickled for other processes of this machine: as handles of shared memory."""

import multiprocessing.reduction
import os
from multiprocessing.reduction import ForkingPickler

import cresset
from cresset import _C

__all__ = ["StorageWeakRef", "init_reductions", "reduce_storage", "reduce_tensor", "reduce_typed_storage"]

class StorageWeakRef:
    """A weak reference to an untyped storage. Two are equal when they refer to the same memory; `cdata` tells memories apart.

    The number stays taken as long as the reference lives, so that a later storage has another one.
    """

    __slots__ = ("cdata", "_weak", "__weakref__")

    def __init__(self, storage):
        self.cdata = storage._cdata
        self._weak = _C._storage_weak(storage.untyped()._anchor)

    def expired(self):
        """Is the storage gone?"""
        return _C._storage_expired(self._weak)

    def __hash__(self):
        return self.cdata

    def __eq__(self, other):
        return self is other or (isinstance(other, StorageWeakRef) and self.cdata == other.cdata)


# --- storages -----------------------------------------------------------------------------------------------------------------


def _from_descriptor(cls, handle, nbytes):
    fd = handle.detach()
    try:
        return cls._new_shared_fd_cpu(fd, nbytes)
    finally:
        os.close(fd)


def _from_name(cls, name, nbytes):
    return cls._new_shared_filename_cpu(None, name, nbytes)._shared_decref()  # what the message counted


def _from_bytes(data, device):
    storage = cresset.UntypedStorage(len(data))
    if data:
        storage._elements().copy_(cresset.frombuffer(bytearray(data), dtype=cresset.uint8))
    return storage if device == "cpu" else storage.to(device=device)


def reduce_storage(storage):
    """(function, arguments) that give an untyped storage over the same memory in another process; by value for other devices."""
    if storage.device.type == "meta":
        raise RuntimeError("multiprocessing: a storage on the device meta has no memory to share. Send the tensor.")
    if storage.device.type != "cpu":
        return _from_bytes, (bytes(storage._elements().cpu().numpy()), str(storage.device))
    if len(storage) == 0:
        return _from_bytes, (b"", "cpu")
    storage.share_memory_()
    fd, name = _C._storage_shared(storage._anchor)
    if name:
        storage._shared_incref()
        return _from_name, (type(storage), name, len(storage))
    return _from_descriptor, (type(storage), multiprocessing.reduction.DupFd(fd), len(storage))


def _typed(storage, dtype):
    return cresset.storage.TypedStorage(wrap_storage=storage, dtype=dtype, _internal=True)


def reduce_typed_storage(storage):
    """The same for a typed storage."""
    return _typed, (storage.untyped(), storage.dtype)


# --- tensors ------------------------------------------------------------------------------------------------------------------


def _rebuild(kind, build, handle, dtype, offset, size, stride, requires_grad, state):
    tensor = cresset.storage.tensor_of_storage(build(*handle), dtype, offset, size, stride)
    return _finished(kind, tensor, requires_grad, state)


def _finished(kind, tensor, requires_grad, state):
    if issubclass(kind, cresset.nn.Parameter):
        tensor = kind(tensor, requires_grad)
    elif requires_grad:
        tensor.requires_grad_()
    if state:
        tensor.__dict__.update(state)
    return tensor


def _rebuild_meta(kind, dtype, size, stride, requires_grad):
    return _finished(kind, cresset.empty_strided(size, stride, dtype=dtype, device="meta"), requires_grad, None)


def reduce_tensor(tensor):
    """(function, arguments) that give a tensor over the same memory in another process. RuntimeError for a tensor with a history."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support crossing process "
            "boundaries.  If you just want to transfer the data, call detach() on the tensor before serializing (e.g., putting it on "
            "the queue)."
        )
    from cresset.utils.hooks import warn_if_has_hooks

    warn_if_has_hooks(tensor)
    kind, size, stride = type(tensor), tuple(tensor.shape), tensor.stride()
    if tensor.is_meta:
        return _rebuild_meta, (kind, tensor.dtype, size, stride, tensor.requires_grad)
    plain = tensor.detach()
    if plain.is_conj() or plain.is_neg():
        plain = plain.resolve_conj().resolve_neg()
        stride = plain.stride()
    build, handle = reduce_storage(plain.untyped_storage())
    return _rebuild, (kind, build, handle, tensor.dtype, plain.storage_offset(), size, stride, tensor.requires_grad, dict(tensor.__dict__))


def init_reductions():
    """Teach the pickler of multiprocessing tensors, parameters and storages."""
    for kind in (cresset.Tensor, cresset.nn.Parameter):
        ForkingPickler.register(kind, reduce_tensor)
    ForkingPickler.register(cresset.UntypedStorage, reduce_storage)
    ForkingPickler.register(cresset.storage.TypedStorage, reduce_typed_storage)
