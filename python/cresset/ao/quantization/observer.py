"""Base classes of modules that watch values to quantize them, for one's own and for isinstance()."""

import functools
from abc import ABC, abstractmethod

import cresset
from cresset import nn

__all__ = ["FakeQuantizeBase", "ObserverBase"]


class _Partial:
    """A class with some of its arguments given: calling it makes an instance."""

    def __init__(self, cls, **given):
        self.p = functools.partial(cls, **given)

    def __call__(self, *args, **kwargs):
        return self.p(*args, **kwargs)

    def with_args(self, **given):
        """The same with more arguments given."""
        return _Partial(self.p, **given)

    def __repr__(self):
        return repr(self.p)


class ObserverBase(ABC, nn.Module):
    """A module whose forward(x) watches x, and whose calculate_qparams() tells how to quantize what it saw to `dtype`."""

    def __init__(self, dtype, is_dynamic=False):
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic

    @abstractmethod
    def forward(self, x):
        """x, watched."""

    @abstractmethod
    def calculate_qparams(self, **kwargs):
        """(scale, zero point)"""

    @classmethod
    def with_args(cls, **kwargs):
        """The class with these arguments given."""
        return _Partial(cls, **kwargs)


class FakeQuantizeBase(ABC, nn.Module):
    """A module that rounds as quantization does, in floating point; two switches say whether it does, and whether it watches."""

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

    def enable_fake_quant(self, enabled=True):
        """Round from now on, or not."""
        self.fake_quant_enabled[0] = 1 if enabled else 0

    def disable_fake_quant(self):
        """Round no more."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled=True):
        """Watch from now on, or not."""
        self.observer_enabled[0] = 1 if enabled else 0

    def disable_observer(self):
        """Watch no more."""
        self.enable_observer(False)

    @classmethod
    def with_args(cls, **kwargs):
        """The class with these arguments given."""
        return _Partial(cls, **kwargs)
