"""Autocast blocks for the device type "cuda", under PyTorch's older names."""

import warnings

from ... import amp, float16

__all__ = ["autocast", "custom_fwd", "custom_bwd"]


def _deprecated(name, instead):
    warnings.warn(f"`torch.cuda.amp.{name}` is deprecated. Please use `torch.amp.{instead}` instead.", FutureWarning, stacklevel=3)


class autocast(amp.autocast):
    """`amp.autocast("cuda", ...)`."""

    def __init__(self, enabled=True, dtype=float16, cache_enabled=True):
        _deprecated("autocast(args...)", "autocast('cuda', args...)")
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


def custom_fwd(fwd=None, *, cast_inputs=None):
    """`amp.custom_fwd(..., device_type="cuda")`."""
    _deprecated("custom_fwd(args...)", "custom_fwd(args..., device_type='cuda')")
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd):
    """`amp.custom_bwd(..., device_type="cuda")`."""
    _deprecated("custom_bwd(args...)", "custom_bwd(args..., device_type='cuda')")
    return amp.custom_bwd(bwd, device_type="cuda")
