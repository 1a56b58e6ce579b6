"""What PyTorch has as torch._C._functorch, as far as it exists here: questions about batched tensors, and levels of vmap by hand.

One tape serves all levels of grad, so no tensor is a wrapper for gradients.
"""

import enum

from . import _C

__all__ = [
    "RandomnessType", "TransformType", "current_level", "dlevel", "get_unwrapped", "is_batchedtensor", "is_functionaltensor", "is_functorch_wrapped_tensor",
    "is_gradtrackingtensor", "is_legacy_batchedtensor", "maybe_current_level", "maybe_get_bdim", "maybe_get_level", "reshape_dim_into",
    "reshape_dim_outof", "unwrap_if_dead",
]  # fmt: skip


class RandomnessType(enum.Enum):
    """What random operators do under vmap."""

    Error = "error"
    Same = "same"
    Different = "different"


class TransformType(enum.Enum):
    """Transforms that kernels of operators without a schema may be for; see HigherOrderOperator."""

    Torch = 0
    Vmap = 1
    Grad = 2
    Jvp = 3
    Functionalize = 4


def is_batchedtensor(tensor):
    """Whether vmap wraps the tensor."""
    return _C._is_batched(tensor)


def is_gradtrackingtensor(tensor):
    """False: gradients need no wrapper."""
    return False


is_legacy_batchedtensor = is_gradtrackingtensor
is_functorch_wrapped_tensor = is_batchedtensor


def is_functionaltensor(tensor):
    """Whether functionalize wraps the tensor."""
    from ._subclasses.functional_tensor import FunctionalTensor

    return isinstance(tensor, FunctionalTensor)


def get_unwrapped(tensor):
    """The tensor inside of the outermost wrapper, a batched tensor's with all examples."""
    if not _C._is_batched(tensor):
        raise RuntimeError("No wrappers present!")
    return _C._batch_parts(tensor)[0]


def maybe_get_bdim(tensor):
    """The dimension of the examples in get_unwrapped(tensor), -1 for a tensor that is not batched."""
    return _C._batch_parts(tensor)[1] if _C._is_batched(tensor) else -1


def maybe_get_level(tensor):
    """The level of the outermost wrapper, -1 for a tensor that is not batched."""
    return _C._batch_parts(tensor)[2] if _C._is_batched(tensor) else -1


def dlevel(tensor):
    """The level of the outermost wrapper, 0 for a tensor that is not batched: no wrapper outlives its level."""
    return max(maybe_get_level(tensor), 0)


def _unwrap_for_grad(tensor, level):
    """The tensor: one tape serves all levels."""
    return tensor


_wrap_for_grad = _unwrap_for_grad


def get_interpreter_stack():
    """None: no transform has an interpreter, so what libraries do to rules of derivatives for PyTorch's levels is not needed."""
    return None


peek_interpreter_stack = get_interpreter_stack


def unwrap_if_dead(tensor):
    """The tensor: no wrapper outlives what it is for."""
    return tensor


def maybe_current_level():
    """The number of the innermost vmap, None outside of any."""
    inner = _C._vmap_innermost()
    return None if inner is None else inner[0]


def current_level():
    """The number of the innermost vmap; RuntimeError outside of any."""
    number = maybe_current_level()
    if number is None:
        raise RuntimeError("current_level: a level of vmap was required; none is active.")
    return number


def _vmap_increment_nesting(batch_size, randomness):
    return _C._vmap_push(batch_size, randomness)


def _vmap_decrement_nesting():
    number = current_level()
    _C._vmap_pop()
    return number


def _add_batch_dim(tensor, dim, level):
    return _C._add_batch_dim(tensor, dim, level)


def _remove_batch_dim(tensor, level, batch_size, out_dim):
    return _C._remove_batch_dim(tensor, level, batch_size, out_dim)


def _unwrap_batched(tensor, level):
    """(value, dimension of the examples, None where the tensor is not batched at this level)."""
    if _C._is_batched(tensor):
        value, dim, at = _C._batch_parts(tensor)
        if at == level:
            return value, dim
    return tensor, None


def reshape_dim_into(source, destination, tensor):
    """Dimension `source` moved in front of `destination`, counted without it, and both made one."""
    source %= tensor.dim()
    destination %= tensor.dim() - 1
    return tensor.movedim(source, destination).flatten(destination, destination + 1)


def reshape_dim_outof(source, size, tensor):
    """Dimension `source` split in (size, rest)."""
    return tensor.unflatten(source, (size, tensor.shape[source] // size if size else 0))


def _is_vmap_fallback_enabled():
    return _C._vmap_loop_settings()[0]


def _set_vmap_fallback_enabled(enabled):
    _C._vmap_loop_settings(enabled)


def _set_vmap_fallback_warning_enabled(enabled):
    _C._vmap_loop_settings(None, enabled)
