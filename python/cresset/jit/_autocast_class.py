"""autocast as a class of scripts: PyTorch's, whose methods do nothing. The interpreter switches autocast where such a block begins and ends."""

from typing import Any, Optional

import cresset


class autocast:
    def __init__(self, device_type: str, dtype: Optional[int] = None, enabled: bool = True, cache_enabled: Optional[bool] = None):
        self.fast_dtype = cresset.get_autocast_dtype(device_type) if dtype is None else dtype
        self._enabled = enabled
        self.device = device_type

    def __enter__(self):
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any):
        return None

    def __call__(self, func):
        return func


autocast.__module__ = "cresset.amp.autocast_mode"  # the class's name in archives is that of PyTorch's
