"""Which form of scaled dot-product attention may run. There is one, MATH, so a choice without it is an error."""

from contextlib import contextmanager
from enum import IntEnum

__all__ = [
    "SDPBackend", "WARN_FOR_UNFUSED_KERNELS", "activate_flash_attention_impl", "current_flash_attention_impl", "list_flash_attention_impls",
    "register_flash_attention_impl", "restore_flash_attention_impl", "sdpa_kernel",
]  # fmt: skip

WARN_FOR_UNFUSED_KERNELS = False


class SDPBackend(IntEnum):
    """Forms of attention by PyTorch's numbers."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextmanager
def sdpa_kernel(backends, set_priority=False):
    """Allow only `backends` (one SDPBackend or a list) inside the block; RuntimeError when MATH is not among them."""
    chosen = [backends] if isinstance(backends, SDPBackend) else list(backends)
    if not all(isinstance(backend, SDPBackend) for backend in chosen):
        raise TypeError(f"sdpa_kernel: SDPBackend or a list of them was required; got {backends!r}.")
    if SDPBackend.MATH not in chosen:
        raise RuntimeError("sdpa_kernel: no available kernel. SDPBackend.MATH is the one there is; add it to the list.")
    yield


_implementations, _active = {}, [None, None]  # by name; the active name and what its registration gave


def register_flash_attention_impl(impl, *, register_fn):
    """Give a name to an implementation of flash attention: `register_fn(**kwargs)` registers its kernels and gives an object with `remove()`, or None."""
    _implementations[impl] = register_fn


def list_flash_attention_impls():
    """The names that were given, sorted."""
    return sorted(_implementations)


def current_flash_attention_impl():
    """The name of the active implementation; None for the operator's own."""
    return _active[0]


def activate_flash_attention_impl(impl, **kwargs):
    """Let an implementation register its kernels, instead of the one that is active. ValueError for names that were not registered."""
    if impl not in _implementations:
        raise ValueError(f"Unknown flash attention implementation {impl!r}; known: {list_flash_attention_impls()}")
    restore_flash_attention_impl()
    _active[:] = impl, _implementations[impl](**kwargs)


def restore_flash_attention_impl():
    """Take the active implementation's kernels away."""
    if _active[1] is not None:
        _active[1].remove()
    _active[:] = None, None
