"""The scaler of gradients for the device type "cpu", under PyTorch's older name."""

import warnings

from ... import amp

__all__ = ["GradScaler"]


class GradScaler(amp.GradScaler):
    """`amp.GradScaler("cpu", ...)`."""

    def __init__(self, init_scale=65536.0, growth_factor=2.0, backoff_factor=0.5, growth_interval=2000, enabled=True):
        warnings.warn(
            "`torch.cpu.amp.GradScaler(args...)` is deprecated. Please use `torch.amp.GradScaler('cpu', args...)` instead.", FutureWarning, stacklevel=2
        )
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
