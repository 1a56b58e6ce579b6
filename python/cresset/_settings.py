"""Settings of the process, checks, and functions on numbers that programs may record as unknowns; constants of mathematics."""

import math
import warnings
from math import e, inf, nan, pi  # noqa: F401

import cresset

from . import _C
from ._overridable import overridable

__all__ = [
    "e", "inf", "nan", "pi", "newaxis", "get_float32_matmul_precision", "set_float32_matmul_precision", "are_deterministic_algorithms_enabled",
    "is_deterministic_algorithms_warn_only_enabled", "use_deterministic_algorithms", "get_deterministic_debug_mode",
    "set_deterministic_debug_mode", "is_warn_always_enabled", "set_warn_always", "set_flush_denormal", "is_vulkan_available",
    "set_default_tensor_type", "get_device", "is_conj", "is_neg", "is_distributed", "thread_safe_generator", "classproperty", "SymInt", "SymFloat", "SymBool", "sym_int", "sym_float",
    "sym_max", "sym_min", "sym_not", "sym_ite", "sym_sum", "sym_sqrt", "_sym_sqrt", "has_lapack", "has_mkl", "has_openmp", "has_spectral",
    "_check_with", "_check", "_check_value", "_check_type", "_check_index", "_check_not_implemented", "_check_is_size", "_check_tensor_all",
    "_check_tensor_all_with", "_assert",
]  # fmt: skip

newaxis = None
# What the build can do: transforms are its own, factorisations are LAPACK's.
has_lapack, has_mkl, has_openmp, has_spectral = True, True, False, True

_PRECISIONS = ("highest", "high", "medium")
_DEBUG_MODES = ("default", "warn", "error")
_warned: set[str] = set()
_state = {"deterministic": False, "warn_only": False, "warn_always": False, "fill": True}


def get_float32_matmul_precision():
    """How precise matrix products in float32 have to be at least. They are always "highest" inside."""
    from .backends._precision import matmul_precision

    return matmul_precision()


def set_float32_matmul_precision(precision):
    """Allow less precise matrix products in float32: "highest", "high" or "medium". Nothing changes on the CPU."""
    if precision not in _PRECISIONS:
        import warnings

        warnings.warn(f"{precision} is not one of 'highest', 'high', or 'medium'; the current setting stays", stacklevel=2)
        return
    from .backends._precision import set_matmul_precision

    set_matmul_precision(precision)


def are_deterministic_algorithms_enabled():
    """Whether only deterministic operators are wanted (`use_deterministic_algorithms`)."""
    return _state["deterministic"]


def is_deterministic_algorithms_warn_only_enabled():
    """Whether other operators would only warn."""
    return _state["warn_only"]


def use_deterministic_algorithms(mode, *, warn_only=False):
    """Ask for deterministic operators: the same results for the same arguments, each time.

    The CPU's operators always are deterministic, also those with places that are given twice (`index_put_`, `put_`, `scatter_`), with any number of
    threads; so nothing is refused and nothing gets slower. Devices outside of this package are not asked: what their operators promise
    is for their makers to say, and the first call with True warns when one of them is there. New memory is filled when
    `utils.deterministic.fill_uninitialized_memory` is set.
    """
    for name, value in (("mode' (position 1)", mode), ("warn_only'", warn_only)):
        if not isinstance(value, bool):
            raise TypeError(f"_set_deterministic_algorithms(): argument '{name} must be bool, not {type(value).__name__}")
    if mode and (others := [t for t in cresset._C._registered_backends() if t not in ("cpu", "meta")]):
        _warn_once(f"use_deterministic_algorithms: nothing is known of the operators of {', '.join(others)}; those of the CPU are deterministic")
    _state["deterministic"], _state["warn_only"] = bool(mode), bool(warn_only)
    _C._mark_fresh_memory(_state["deterministic"] and _state["fill"])


def _get_deterministic_fill_uninitialized_memory():
    return _state["fill"]


def _set_deterministic_fill_uninitialized_memory(mode):
    if not isinstance(mode, bool):
        raise RuntimeError(f"expected a bool, but got {type(mode).__name__}")
    _state["fill"] = mode
    _C._mark_fresh_memory(_state["deterministic"] and mode)


_C._get_deterministic_fill_uninitialized_memory = _get_deterministic_fill_uninitialized_memory
_C._set_deterministic_fill_uninitialized_memory = _set_deterministic_fill_uninitialized_memory


def get_deterministic_debug_mode():
    """0, 1 (warn) or 2 (error) for operators that are not deterministic."""
    return 0 if not _state["deterministic"] else 1 if _state["warn_only"] else 2


def set_deterministic_debug_mode(debug_mode):
    """Set the mode: "default" or 0, "warn" or 1, "error" or 2."""
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _DEBUG_MODES:
            raise RuntimeError(f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}")
        debug_mode = _DEBUG_MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def is_warn_always_enabled():
    """Whether warnings that come once should come every time."""
    return _state["warn_always"]


def set_warn_always(b):
    """Let warnings that come once come every time. Which warnings show is up to Python's filters."""
    _state["warn_always"] = bool(b)
    _C._set_warn_always(bool(b))


def set_flush_denormal(mode):
    """Let operators of this thread take denormal numbers for zero, in operands and results (mode True), or keep them (False, the default): with them
    arithmetic is many times slower. Whether the processor can: x86-64 and AArch64 can."""
    return _C._set_flush_denormal(bool(mode))


def is_vulkan_available():
    return False


def _warn_once(message):
    """A warning at the first call only, at each one after set_warn_always(True)."""
    if _state["warn_always"] or message not in _warned:
        _warned.add(message)
        warnings.warn(message, stacklevel=3)


def set_default_tensor_type(t):
    """The default dtype by a legacy tensor type, or its name; warns once that set_default_dtype is the way. TypeError for types that are not floating."""
    _warn_once(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and torch.set_default_device() as alternatives."
    )
    if isinstance(t, str):
        module = cresset.cuda if ".cuda." in t else cresset
        t = getattr(module, t.split(".")[-1])
    if t is getattr(cresset.cuda, getattr(t, "__name__", ""), None):
        t()  # which says that there is none
    if not t.dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    cresset.set_default_dtype(t.dtype)


@overridable
def get_device(input):
    """Index of the tensor's device, -1 on CPU."""
    return input.get_device()


@overridable
def is_conj(input):
    """Whether conjugation is still to be done: never, conj computes at once."""
    return input.is_conj()


@overridable
def is_neg(input):
    """Whether negation is still to be done: never."""
    return input.is_neg()


@overridable
def is_distributed(input):
    """Tensors live in one process: False."""
    return False


def thread_safe_generator():
    """The generator of the current loader worker: none, workers share the default one."""
    return None


class classproperty:  # noqa: N801
    """A property of the class itself."""

    def __init__(self, getter):
        self.getter = getter

    def __get__(self, instance, owner):
        return self.getter(owner)


# --- numbers -------------------------------------------------------------------------------------------------------------------


class SymInt:
    """A size that a program records as unknown: there are none, sizes are always numbers."""


class SymFloat:
    """A number that a program records as unknown: there are none."""


class SymBool:
    """A truth that a program records as unknown: there are none."""


def sym_int(a):
    """The number cut to an integer."""
    return math.floor(a) if a >= 0 else math.ceil(a)


def sym_float(a):
    return float(a)


def sym_max(a, b):
    """The larger number; a float when one of them is."""
    return type(a + b)(max(a, b)) if not isinstance(a, bool) else max(a, b)


def sym_min(a, b):
    """The smaller number; a float when one of them is."""
    return type(a + b)(min(a, b)) if not isinstance(a, bool) else min(a, b)


def sym_not(a):
    return not a


def sym_ite(b, t, f):
    """t if b else f, both of one type."""
    if not isinstance(b, bool) or type(t) is not type(f):
        raise AssertionError("sym_ite: a bool and two values of one type are needed")
    return t if b else f


def sym_sum(args):
    return sum(args)


def _sym_sqrt(a):
    return math.sqrt(a)


sym_sqrt = _sym_sqrt


# --- checks --------------------------------------------------------------------------------------------------------------------


def _check_with(error, cond, message=None):
    """Raise `error` with the text that message() gives unless cond is true."""
    if not isinstance(cond, bool) and hasattr(cond, "check"):  # of a number that export does not know
        cond.check(error, message and str(message()))
        return
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is not None and not callable(message):
        raise TypeError("message must be a callable")
    raise error(str(message()) if message is not None else "Expected cond to be True, but got False.")


def _check(cond, message=None):
    _check_with(RuntimeError, cond, message)


def _check_value(cond, message=None):
    _check_with(ValueError, cond, message)


def _check_type(cond, message=None):
    _check_with(TypeError, cond, message)


def _check_index(cond, message=None):
    _check_with(IndexError, cond, message)


def _check_not_implemented(cond, message=None):
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i, message=None, *, max=None):
    """Raise RuntimeError unless i is at least 0 (and at most max)."""
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_tensor_all_with(error, cond, message=None):
    """As _check_with for a tensor of truth values: raise unless all are true. TypeError for anything else than such a tensor."""
    if not isinstance(cond, _C.TensorBase):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype != _C.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error, cond.all().item(), message)


def _check_tensor_all(cond, message=None):
    _check_tensor_all_with(RuntimeError, cond, message)


@overridable
def _assert(condition: bool, message: str):
    if not condition:
        raise AssertionError(message)
