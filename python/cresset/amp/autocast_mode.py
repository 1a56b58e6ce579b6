"""Autocast: for a block, operators that gain from a lower precision run in it, and those that need range run in float32."""

import collections.abc
import functools
import warnings

import cresset

__all__ = ["autocast_decorator", "autocast", "is_autocast_available", "custom_fwd", "custom_bwd"]

_CPU_DTYPES = (cresset.bfloat16, cresset.float16)


def _checked_type(device_type):
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    return cresset.device(device_type).type  # raises and lists the valid types


def is_autocast_available(device_type):
    """Are there autocast rules for a device type? For the CPU and for registered devices."""
    kind = _checked_type(device_type)
    return kind not in ("cuda", "xla", "meta")


def autocast_decorator(autocast_instance, func):
    """func, with every call inside of the block."""

    @functools.wraps(func)
    def decorate_autocast(*args, **kwargs):
        with autocast_instance:
            return func(*args, **kwargs)

    decorate_autocast.__script_unsupported = "@autocast() decorator is not supported in script mode"
    return decorate_autocast


def _supported_dtypes(device_type):
    """The dtypes a registered device says that it supports."""
    module = getattr(cresset, device_type, None)
    if not hasattr(module, "get_amp_supported_dtype"):
        raise AssertionError(
            f"Tried to use AMP with the `{device_type}` backend, but the backend has not registered a module or  the module miss some necessary "
            "funcs. The backend should register a module by `torch._register_device_module`, and the module must have these funcs: \n"
            "`get_amp_supported_dtype() -> List[torch.dtype]`. \n"
        )
    return module.get_amp_supported_dtype()


class autocast:
    """A block, or a decorator, in which operators choose their precision. Backward is best run outside of it.

    Products of matrices, convolutions and the like take `dtype` (bfloat16 on the CPU when left out), losses, norms of matrices and
    other operators that need range take float32, cat, stack and index_copy the widest type they are given. The table of operators
    has the key `autocast` for each of them. Casts of float32 parameters are kept until the outermost block ends (cache_enabled).
    Tensors of float64 and of other devices, and in-place and out= forms, are left as they are.

    >>> with cresset.autocast("cpu"):
    ...     (cresset.ones(2, 2) @ cresset.ones(2, 2)).dtype
    cresset.bfloat16
    """

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        self.device = _checked_type(device_type)
        if not is_autocast_available(self.device) and self.device != "cuda":
            raise RuntimeError(f"User specified an unsupported autocast device_type '{self.device}'")
        self.fast_dtype = cresset.get_autocast_dtype(self.device) if dtype is None else dtype
        self._cache_enabled = cresset.is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        self._enabled = bool(enabled) and self._is_possible()

    def _is_possible(self):
        if self.device == "cuda":
            warnings.warn("CUDA is not available or torch_xla is imported. Disabling autocast.", stacklevel=3)
            return False
        if self.device == "cpu":
            supported, title = _CPU_DTYPES, "CPU"
        else:
            supported, title = tuple(_supported_dtypes(self.device)), self.device
        if self.fast_dtype in supported:
            return True
        names = ", ".join(str(t) for t in supported)
        warnings.warn(
            f"In {title} autocast, but the target dtype is not supported. Disabling autocast.\n{title} Autocast only supports dtypes of {names} currently.",
            stacklevel=3,
        )
        return False

    def __enter__(self):
        before = (cresset.is_autocast_cache_enabled(), cresset.is_autocast_enabled(self.device), cresset.get_autocast_dtype(self.device))
        self._outer = [*getattr(self, "_outer", ()), before]  # the same object may be entered again inside of itself
        cresset.set_autocast_enabled(self.device, self._enabled)
        cresset.set_autocast_dtype(self.device, self.fast_dtype)
        cresset.autocast_increment_nesting()
        cresset.set_autocast_cache_enabled(self._cache_enabled)
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        cache_enabled, enabled, dtype = self._outer.pop()
        if cresset.autocast_decrement_nesting() == 0:
            cresset.clear_autocast_cache()
        cresset.set_autocast_enabled(self.device, enabled)
        cresset.set_autocast_dtype(self.device, dtype)
        cresset.set_autocast_cache_enabled(cache_enabled)
        return False

    def __call__(self, func):
        return autocast_decorator(self, func)


def _enter_autocast(*vals):
    """The block autocast(*vals), entered: graphs have no `with`."""
    mode = cresset.amp.autocast(*vals)
    mode.__enter__()
    return mode


def _exit_autocast(mode):
    mode.__exit__(None, None, None)


def cast_tensors(value, device_type, dtype):
    """value with its floating-point tensors of the device, except float64 ones, in dtype; in containers too."""
    if isinstance(value, cresset.Tensor):
        eligible = value.is_floating_point() and value.device.type == device_type and value.dtype is not cresset.float64
        return value.to(dtype) if eligible else value
    if isinstance(value, (str, bytes)) or type(value).__module__ == "numpy":
        return value
    if isinstance(value, collections.abc.Mapping):
        return {cast_tensors(k, device_type, dtype): cast_tensors(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(cast_tensors(v, device_type, dtype) for v in value)
    return value


_cast = cast_tensors


def custom_fwd(fwd=None, *, device_type, cast_inputs=None):
    """Decorator for `forward` of an autograd.Function: in an autocast block its floating-point arguments become `cast_inputs` and it runs
    with autocast off; without `cast_inputs` it runs in the precision of the block. backward needs `custom_bwd`."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorate_fwd(*args, **kwargs):
        args[0]._dtype = cresset.get_autocast_dtype(device_type)
        enabled = cresset.is_autocast_enabled(device_type)
        if cast_inputs is None or not enabled:
            args[0]._fwd_used_autocast = enabled
            return fwd(*args, **kwargs)
        args[0]._fwd_used_autocast = False
        with autocast(device_type, enabled=False):
            return fwd(*cast_tensors(args, device_type, cast_inputs), **cast_tensors(kwargs, device_type, cast_inputs))

    return decorate_fwd


def custom_bwd(bwd=None, *, device_type):
    """Decorator for `backward` of an autograd.Function whose forward has `custom_fwd`: it runs in the precision of forward."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorate_bwd(*args, **kwargs):
        with autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return decorate_bwd
