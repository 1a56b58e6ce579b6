"""The size of a normal variable."""

import math

from ._half import HalfOf
from .normal import Normal

__all__ = ["HalfNormal"]


class HalfNormal(HalfOf):
    """|x| of x from Normal(0, scale)."""

    def __init__(self, scale, validate_args=None):
        super().__init__(Normal, scale, validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, _instance=self._get_checked_instance(HalfNormal, _instance))

    @property
    def mean(self):
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self):
        return self.scale.pow(2) * (1 - 2 / math.pi)
