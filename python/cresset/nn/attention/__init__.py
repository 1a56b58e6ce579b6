"""Which form of scaled dot-product attention may run. One implementation stands for MATH and FLASH_ATTENTION, so a choice without both is an error."""

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
    """Allow only `backends` (one SDPBackend or a list) inside the block; RuntimeError when MATH and FLASH_ATTENTION are not among them."""
    if not isinstance(backends, (SDPBackend, list)):
        raise AssertionError(f"Backend must be an instance of SDPBackend or a list of SDPBackend instances, got {type(backends).__name__}")
    chosen = [backends] if isinstance(backends, SDPBackend) else backends
    if not all(isinstance(backend, SDPBackend) for backend in chosen):
        raise TypeError(f"sdpa_kernel: SDPBackend or a list of them was required; got {backends!r}.")
    if SDPBackend.MATH not in chosen and SDPBackend.FLASH_ATTENTION not in chosen:
        raise RuntimeError(
            "sdpa_kernel: No viable backend for scaled_dot_product_attention was found. SDPBackend.MATH and SDPBackend.FLASH_ATTENTION are "
            "those there are; add one to the list."
        )
    switches = _switches()
    before = {backend: enabled() for backend, (enabled, _) in switches.items()}
    try:
        for backend, (_, enable) in switches.items():
            enable(backend in chosen)
        yield
    finally:
        for backend, (_, enable) in switches.items():
            enable(before[backend])


def _switches():
    """By form, in the order in which devices prefer them: whether it may run, and the function that says so."""
    from cresset.backends import cuda

    return {
        SDPBackend.CUDNN_ATTENTION: (cuda.cudnn_sdp_enabled, cuda.enable_cudnn_sdp),
        SDPBackend.FLASH_ATTENTION: (cuda.flash_sdp_enabled, cuda.enable_flash_sdp),
        SDPBackend.EFFICIENT_ATTENTION: (cuda.mem_efficient_sdp_enabled, cuda.enable_mem_efficient_sdp),
        SDPBackend.MATH: (cuda.math_sdp_enabled, cuda.enable_math_sdp),
    }


def _cur_sdpa_kernel_backends(with_priority=False):
    """The forms that may run now."""
    return [backend for backend, (enabled, _) in _switches().items() if enabled()]


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
