"""The scaler of gradients for the device type "cuda", under PyTorch's older name."""

from ... import amp
from ...amp.grad_scaler import OptState  # noqa: F401  (also here in PyTorch)
from .autocast_mode import _deprecated

__all__ = ["GradScaler"]


class GradScaler(amp.GradScaler):
    """`amp.GradScaler("cuda", ...)`."""

    def __init__(self, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        _deprecated("GradScaler(args...)", "GradScaler('cuda', args...)")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
