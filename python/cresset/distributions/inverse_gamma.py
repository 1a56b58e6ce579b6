"""The inverse of a gamma variable."""

import cresset

from . import constraints
from .gamma import Gamma
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform

__all__ = ["InverseGamma"]


class InverseGamma(TransformedDistribution):
    """1 / x of x from Gamma(concentration, rate); mean and variance are infinite up to a concentration of one and two."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, concentration, rate, validate_args=None):
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return super().expand(batch_shape, _instance=self._get_checked_instance(InverseGamma, _instance))

    @property
    def concentration(self):
        """Of the gamma variable."""
        return self.base_dist.concentration

    @property
    def rate(self):
        """Of the gamma variable."""
        return self.base_dist.rate

    @property
    def mean(self):
        mean = self.rate / (self.concentration - 1)
        return cresset.where(self.concentration > 1, mean, cresset.inf)

    @property
    def mode(self):
        return self.rate / (self.concentration + 1)

    @property
    def variance(self):
        variance = self.rate.square() / ((self.concentration - 1).square() * (self.concentration - 2))
        return cresset.where(self.concentration > 2, variance, cresset.inf)

    def entropy(self):
        k = self.concentration
        return k + self.rate.log() + k.lgamma() - (1 + k) * k.digamma()
