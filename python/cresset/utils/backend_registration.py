"""The face of a device in Python that was mounted on PrivateUse1: its name, its methods, the functions of its module."""

import cresset

from .. import _C
from .._devices import generate_methods_for_privateuse1_backend, rename_privateuse1_backend

__all__ = ["rename_privateuse1_backend", "generate_methods_for_privateuse1_backend"]


def _get_custom_mod_func(func_name):
    """A function of the device's module; RuntimeError when there is no module or it lacks the function."""
    name = _C._get_privateuse1_backend_name()
    function = getattr(getattr(cresset, name, None), func_name, None)
    if function is None:
        raise RuntimeError(
            f"Try to call torch.{name}.{func_name}. The backend must register a custom backend module with "
            f"`torch._register_device_module('{name}', BackendModule)`, and BackendModule needs `{func_name}(*args, **kwargs)`."
        )
    return function
