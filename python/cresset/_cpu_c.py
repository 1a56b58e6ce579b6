"""What PyTorch has as torch._C._cpu: what the processor can do."""

from .cpu import get_capabilities as _get_cpu_capability

__all__ = ["_get_cpu_capability", "_init_amx"]


def _init_amx():
    """False: no kernel here uses tiles."""
    return False
