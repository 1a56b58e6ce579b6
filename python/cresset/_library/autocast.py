"""What an operator does under autocast: its floating-point arguments in another type, and autocast off inside."""

import cresset
from cresset import _C

__all__ = ["check_device_type", "make_kernel"]

_autocast_keys = _C.DispatchKeySet("AutocastCPU")  # guards leave the functionality out, for every device


def check_device_type(device_type):
    """The dispatch key of autocast for a device type; RuntimeError for what is no device, ValueError for types without autocast."""
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    kind = cresset.device(device_type).type
    try:
        key = _C._dispatch_key_parse({"cpu": "AutocastCPU", "cuda": "AutocastCUDA"}.get(kind) or f"Autocast{kind}")
    except RuntimeError:
        raise ValueError(f"Unknown device type: {device_type}") from None
    return key if isinstance(key, str) else key.name


def make_kernel(overload, device_type, dtype):
    """A kernel for the device's Autocast key. `dtype()` gives the type that floating-point arguments get."""
    from cresset.amp.autocast_mode import cast_tensors

    def kernel(_, *args, **kwargs):
        enabled = cresset.is_autocast_enabled(device_type)  # the key is the same for all devices
        with _C._ExcludeDispatchKeyGuard(_autocast_keys):
            if not enabled:
                return overload(*args, **kwargs)
            kind = dtype()
            return overload(*cast_tensors(args, device_type, kind), **cast_tensors(kwargs, device_type, kind))

    return kernel
