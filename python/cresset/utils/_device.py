"""A device as the one on which factory functions make tensors: `with device("meta"):` and `set_default_device`."""

import cresset
from cresset import _C
from cresset.overrides import TorchFunctionMode

__all__ = ["DeviceContext", "get_default_device", "set_default_device"]

# Beside the operators: functions of the package.
_WRITTEN_IN_PYTHON = ("as_tensor", "asarray", "nested_tensor", "range", "sparse_compressed_tensor", "sparse_coo_tensor", "sparse_csr_tensor", "tensor")
_factories = None


def _device_constructors():
    """The functions that make tensors without taking one."""
    global _factories
    if _factories is None:
        places = (cresset, _C._VariableFunctions, _C._fft)
        _factories = {f for name in (*_C._factory_names, *_WRITTEN_IN_PYTHON) for place in places if (f := getattr(place, name, None)) is not None}
    return _factories


class DeviceContext(TorchFunctionMode):
    """Gives factory functions that are called without a device this one."""

    def __init__(self, device):
        self.device = cresset.device(device)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func in _device_constructors() and kwargs.get("device") is None:
            kwargs = {**kwargs, "device": self.device}
        return func(*args, **kwargs)


_default = None  # the mode of set_default_device, at the bottom of the stack


def set_default_device(device):
    """The device on which factory functions make tensors when they are given none; None for the CPU."""
    global _default
    device = None if device is None else cresset.device(device)
    modes = [_C._pop_torch_function_stack() for _ in range(_C._len_torch_function_stack())]
    if _default is not None and modes and modes[-1] is _default:
        modes.pop()
    _default = None if device is None else DeviceContext(device)
    if _default is not None:
        modes.append(_default)
    for mode in reversed(modes):
        _C._push_on_torch_function_stack(mode)


def get_default_device():
    """The device on which factory functions make tensors now."""
    for i in reversed(range(_C._len_torch_function_stack())):
        mode = _C._get_function_stack_at(i)
        if isinstance(mode, DeviceContext):
            return mode.device
    return cresset.device("cpu")


def enter(self):
    """`with device:`"""
    _C._push_on_torch_function_stack(DeviceContext(self))
    return self


def leave(self, exc_type, exc_value, traceback):
    """The end of `with device:`."""
    _C._pop_torch_function_stack()


def decorate(self, function):
    """Decorator: the device for the time of a call."""
    import functools

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        with self:
            return function(*args, **kwargs)

    return wrapped

