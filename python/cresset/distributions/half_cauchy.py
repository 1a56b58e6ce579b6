"""The size of a Cauchy variable."""

import math

import cresset

from ._half import HalfOf
from .cauchy import Cauchy

__all__ = ["HalfCauchy"]


class HalfCauchy(HalfOf):
    """|x| of x from Cauchy(0, scale), whose median is `scale`; mean and variance are infinite."""

    def __init__(self, scale, validate_args=None):
        super().__init__(Cauchy, scale, validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, _instance=self._get_checked_instance(HalfCauchy, _instance))

    @property
    def mean(self):
        return cresset.full(self._extended_shape(), math.inf, dtype=self.scale.dtype, device=self.scale.device)

    @property
    def variance(self):
        return self.base_dist.variance

    def _log_prob(self, value):
        return super()._log_prob(cresset.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device))
