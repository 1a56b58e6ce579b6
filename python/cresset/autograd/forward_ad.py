"""Forward mode: tensors that carry a tangent while a level is open."""

import contextlib
import threading
from collections import namedtuple

from cresset import _C

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

_is_fwd_grad_enabled = _C._is_fwd_grad_enabled


def __getattr__(name):
    if name == "_current_level":
        return _C._current_dual_level()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


UnpackedDualTensor = namedtuple("UnpackedDualTensor", ["primal", "tangent"])


def enter_dual_level():
    """Open the level; gives its number."""
    return _C._enter_dual_level()


def exit_dual_level(*, level=None):
    """Close the level: the tangents made since are dropped."""
    if (_C._current_dual_level() if level is None else level) < 0:
        raise RuntimeError("Dual level must be a positive number.")
    _C._exit_dual_level(level)


def make_dual(tensor, tangent, *, level=None):
    """A view of tensor that carries the tangent; both of one size."""
    if _C._current_dual_level() < 0:
        raise RuntimeError("Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first.")
    tensor.is_floating_point, tangent.is_floating_point  # AttributeError for what is no tensor
    return _keeping_types(_C._make_dual, (tensor, tangent), tensor, tangent, level)


def unpack_dual(tensor, *, level=None):
    """(primal, tangent); the tangent is None when there is none."""
    if _C._current_dual_level() < 0:
        return UnpackedDualTensor(tensor, None)
    return UnpackedDualTensor(*_keeping_types(_C._unpack_dual, (tensor,), tensor, level))


def _keeping_types(function, tensors, *args):
    """A call of the function, which types of tensors and modes may take over; theirs are the results."""
    if _C._has_torch_function(tensors):
        from cresset.overrides import handle_torch_function

        return handle_torch_function(function, tensors, *args)
    return function(*args)


_levels = threading.local()  # .recorded: func.jvp calls inside of another one, whose tangents are those of a recorded graph


@contextlib.contextmanager
def _recorded_level():
    """A block in which a forward level is recorded in reverse mode."""
    before = getattr(_levels, "recorded", 0)
    _levels.recorded = before + 1
    try:
        yield
    finally:
        _levels.recorded = before


class _set_fwd_grad_enabled:
    """Tangents are carried on or not, at once; as a context manager for its extent.

    Inside of a func.jvp of another one nothing is recorded where they are not, so no gradient around the transforms passes there either.
    """

    def __init__(self, mode):
        self._before = _C._is_fwd_grad_enabled(), _C.is_grad_enabled()
        self._recorded = getattr(_levels, "recorded", 0) > 0
        _C._set_fwd_grad_enabled(mode)
        if self._recorded:
            _C._set_grad_enabled(mode)

    def __enter__(self):
        pass

    def __exit__(self, *exc_info):
        _C._set_fwd_grad_enabled(self._before[0])
        if self._recorded:
            _C._set_grad_enabled(self._before[1])


class dual_level:
    """A level for a block."""

    def __enter__(self):
        self._level = enter_dual_level()
        return self._level

    def __exit__(self, *exc_info):
        exit_dual_level(level=self._level)
