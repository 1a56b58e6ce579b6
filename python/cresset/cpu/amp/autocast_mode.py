"""Autocast blocks for the device type "cpu", under PyTorch's older name."""

import warnings

from ... import amp, bfloat16

__all__ = ["autocast"]


class autocast(amp.autocast):
    """`amp.autocast("cpu", ...)`."""

    def __init__(self, enabled=True, dtype=bfloat16, cache_enabled=True):
        warnings.warn(
            "`torch.cpu.amp.autocast(args...)` is deprecated. Please use `torch.amp.autocast('cpu', args...)` instead.", FutureWarning, stacklevel=2
        )
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)
