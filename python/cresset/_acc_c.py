"""What PyTorch's extension module has for a device kind that is written in Python: the base classes of its hooks and its guard."""

from . import _C

__all__ = ["PrivateUse1Hooks", "DeviceGuard", "create_empty_tensor", "register_python_privateuseone_hook", "register_python_privateuseone_device_guard"]


class PrivateUse1Hooks:
    """What a device kind tells of itself; subclasses answer."""

    def is_available(self):
        """Whether there is such a device."""
        return True

    def is_built(self):
        """Whether the software of the device is there."""
        return True

    def has_primary_context(self, dev_id):
        """Whether the device of this index has been used."""
        return True


class DeviceGuard:
    """The one device of a kind that is written in Python, on which everything has happened when a call returns."""

    def type_(self):
        """Name of the device kind."""
        return _C._get_privateuse1_backend_name()


def create_empty_tensor(size, dtype):
    """A tensor of the kind on PrivateUse1 with sizes and a dtype, and no memory: a subclass keeps its elements in Python."""
    return _C._tensor_without_memory(list(size), dtype)


def register_python_privateuseone_hook(hook):
    """Make a PrivateUse1Hooks the one of PrivateUse1; RuntimeError the second time."""
    _C._register_python_hooks(hook)
    return True


def register_python_privateuseone_device_guard(guard):
    """Let PrivateUse1 have one current device, 0."""
    if not isinstance(guard, DeviceGuard):
        raise TypeError(f"register_python_privateuseone_device_guard: a torch._C._acc.DeviceGuard was required; a {type(guard).__name__} was given")
    _C._register_python_guard()
    return True
