"""PyTorch's older names of `cresset.amp`, for the device type "cuda"."""

import cresset

from .autocast_mode import autocast, custom_bwd, custom_fwd
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"]


def amp_definitely_not_available():
    """Is there no device for which a GradScaler does anything?"""
    return not cresset.cuda.is_available()
