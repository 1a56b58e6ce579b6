"""The face of a device in Python that was mounted on PrivateUse1: its name, its methods, the functions of its module."""

import cresset

from .. import _C, _acc_c
from .._devices import generate_methods_for_privateuse1_backend, register_device_module, rename_privateuse1_backend

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


class _DummyBackendModule:
    """The module of a device kind that is written in Python and names no module of its own."""

    def is_initialized(self):
        return True

    def is_available(self):
        return True

    def current_device(self):
        return 0

    def device_count(self):
        return 1

    def _is_in_bad_fork(self):
        return False

    def manual_seed_all(self, seed):
        pass


def _setup_privateuseone_for_python_backend(rename=None, backend_module=None, hook=None, device_guard=None):
    """Prepare PrivateUse1 for a backend that is written in Python: its name, its module `cresset.<name>`, its hooks and its guard, so that kernels
    of cresset.library are all that is missing.

    Tensors come from `cresset._C._acc.create_empty_tensor(size, dtype)`; a subclass keeps their elements. RuntimeError the second time.

    Args:
        rename: the name of the device kind, "privateuseone" when None.
        backend_module: its module; when None, one that says that there is one device.
        hook: a `cresset._C._acc.PrivateUse1Hooks`; when None, one that says yes.
        device_guard: a `cresset._C._acc.DeviceGuard`.
    """
    if rename is not None:
        rename_privateuse1_backend(rename)
    else:
        rename = "privateuseone"
    generate_methods_for_privateuse1_backend()
    register_device_module(rename, backend_module or _DummyBackendModule())
    _acc_c.register_python_privateuseone_hook(hook or _acc_c.PrivateUse1Hooks())
    _acc_c.register_python_privateuseone_device_guard(device_guard or _acc_c.DeviceGuard())
