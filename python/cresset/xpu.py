"""Questions about Intel's GPUs: none is built in. What asks for a state gives that of a machine without one; what needs a device raises."""

__all__ = [
    "current_device", "device_count", "empty_cache", "get_device_name", "get_device_properties", "init", "is_available", "is_bf16_supported",
    "is_initialized", "manual_seed", "manual_seed_all", "set_device", "synchronize",
]  # fmt: skip


def _refuse(*args, **kwargs):
    raise AssertionError("Torch not compiled with XPU enabled")


current_device = get_device_name = get_device_properties = init = set_device = synchronize = _refuse


def is_available():
    return False


def is_initialized():
    return False


def is_bf16_supported(including_emulation=True):
    return False


def device_count():
    return 0


def _nothing(*args, **kwargs):
    """There is no device to do it on."""


empty_cache = manual_seed = manual_seed_all = _nothing
