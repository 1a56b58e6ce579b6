"""DataParallel, for the single device that there is."""

import cresset

from .module import Module

__all__ = ["DataParallel"]


class DataParallel(Module):
    """Runs `module` on its one device. RuntimeError when several devices are asked for."""

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        if device_ids is not None and len(device_ids) > 1:
            raise RuntimeError(
                f"DataParallel: one device was required; {list(device_ids)} were given. Splitting a batch over devices is not supported."
            )
        self.dim = dim
        self.module = module
        self.device_ids = [cresset.device(d) if isinstance(d, str) else d for d in device_ids or []]
        self.output_device = output_device if output_device is not None else (self.device_ids or [None])[0]

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)
