"""The size |x| of a variable that is symmetric about zero."""

import math

import cresset

from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform


class HalfOf(TransformedDistribution):
    """|x| of x from `symmetric(0, scale)`."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, symmetric, scale, validate_args):
        super().__init__(symmetric(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    @property
    def scale(self):
        """The scale of the whole distribution."""
        return self.base_dist.scale

    @property
    def mode(self):
        return cresset.zeros_like(self.scale)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return self._log_prob(value)

    def _log_prob(self, value):
        return cresset.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value):
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self):
        return self.base_dist.entropy() - math.log(2)
