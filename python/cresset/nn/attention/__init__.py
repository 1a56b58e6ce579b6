"""Which form of scaled dot-product attention may run. There is one, MATH, so a choice without it is an error."""

from contextlib import contextmanager
from enum import IntEnum

__all__ = ["SDPBackend", "sdpa_kernel"]


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
