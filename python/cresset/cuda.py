"""Questions about CUDA devices: none is built in. Accelerators come as registered devices (`device` and `library`)."""

__all__ = [
    "is_available", "is_initialized", "device_count", "current_device", "set_device", "synchronize", "empty_cache", "manual_seed",
    "manual_seed_all", "is_bf16_supported",
]  # fmt: skip


def _refuse(*args, **kwargs):
    raise AssertionError("Torch not compiled with CUDA enabled")


def is_available():
    return False


def is_initialized():
    return False


def is_bf16_supported(including_emulation=True):
    return False


def device_count():
    return 0


current_device = set_device = synchronize = _refuse


def empty_cache():
    """There is no cache."""


def manual_seed(seed):
    """There is no generator to seed."""


def manual_seed_all(seed):
    """There is no generator to seed."""
