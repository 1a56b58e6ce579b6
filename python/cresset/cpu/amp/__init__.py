"""PyTorch's older names of `cresset.amp`, for the device type "cpu"."""

from .autocast_mode import autocast
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast"]
