"""The base of modules that round as quantization does."""

from abc import ABC, abstractmethod

import cresset
from cresset import nn

from ._partial import with_args as _with_args

__all__ = ["FakeQuantizeBase"]


class FakeQuantizeBase(ABC, nn.Module):
    """A module that rounds as quantization does, in floating point; two switches say whether it does, and whether it watches."""

    fake_quant_enabled: cresset.Tensor
    observer_enabled: cresset.Tensor

    def __init__(self):
        super().__init__()
        self.register_buffer("fake_quant_enabled", cresset.tensor([1], dtype=cresset.uint8))
        self.register_buffer("observer_enabled", cresset.tensor([1], dtype=cresset.uint8))

    @abstractmethod
    def forward(self, x):
        """x, rounded."""

    @abstractmethod
    def calculate_qparams(self, **kwargs):
        """(scale, zero point)"""

    @cresset.jit.export
    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Round from now on, or not."""
        self.fake_quant_enabled[0] = 1 if enabled else 0

    @cresset.jit.export
    def disable_fake_quant(self):
        """Round no more."""
        self.enable_fake_quant(False)

    @cresset.jit.export
    def enable_observer(self, enabled: bool = True) -> None:
        """Watch from now on, or not."""
        self.observer_enabled[0] = 1 if enabled else 0

    @cresset.jit.export
    def disable_observer(self):
        """Watch no more."""
        self.enable_observer(False)

    with_args = classmethod(_with_args)


FakeQuantizeBase.__module__ = f"{__package__}.fake_quantize"
