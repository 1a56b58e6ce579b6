"""Neural network modules, their functional forms, initial values and utilities."""

from . import _reduction, attention, functional, grad, init, modules, parallel, parameter, utils  # noqa: F401
from .modules import *  # noqa: F403
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter  # noqa: F401


def factory_kwargs(kwargs):
    """The keyword arguments of factory functions in `kwargs`: device, dtype, memory_format, and those in factory_kwargs.

    TypeError for any other name, and for one that is given twice.
    """
    if kwargs is None:
        return {}
    names = {"device", "dtype", "memory_format"}
    expected = names | {"factory_kwargs"}
    if not kwargs.keys() <= expected:
        raise TypeError(f"unexpected kwargs {kwargs.keys() - expected}")
    result = dict(kwargs.get("factory_kwargs", {}))
    for name in names & kwargs.keys():
        if name in result:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        result[name] = kwargs[name]
    return result

from .. import _devices as _devices  # noqa: E402

_devices.install_module_methods()


def __getattr__(name):
    if name in ("quantized", "intrinsic", "qat", "quantizable"):  # the older names of parts of ao.nn, loaded when one is asked for
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
