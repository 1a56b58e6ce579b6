"""The generalised Pareto distribution."""

import cresset

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["GeneralizedPareto"]


class GeneralizedPareto(Distribution):
    """Of excesses over a threshold `loc`: survival (1 + concentration z)^(-1 / concentration) of z = (x - loc) / scale, or exp(-z) at zero.

    Bounded above for a negative `concentration`. Mean and variance are NaN where they are infinite (from 1 and 1/2 on).
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc, scale, concentration, validate_args=None):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(GeneralizedPareto, batch_shape, _instance, "loc", "scale", "concentration")

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        bounded = self.concentration < 0
        upper = cresset.where(bounded, self.loc - self.scale / self.concentration, cresset.inf)
        return constraints.interval(self.loc, upper)

    def _near_zero(self):
        """Where the concentration counts as zero, and one with which the other formulas stay finite there."""
        zero = cresset.isclose(self.concentration, cresset.zeros_like(self.concentration))
        return zero, cresset.where(zero, cresset.ones_like(self.concentration), self.concentration)

    def _z(self, x):
        return (x - self.loc) / self.scale

    def rsample(self, sample_shape=cresset.Size()):
        shape = self._extended_shape(sample_shape)
        return self.icdf(cresset.rand(shape, dtype=self.loc.dtype, device=self.loc.device))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        zero, c = self._near_zero()
        return cresset.where(zero, -z, cresset.special.xlog1py(-(1 + 1 / c), z * c)) - self.scale.log()

    def log_survival_function(self, value):
        """The logarithm of the probability of more than `value`."""
        if self._validate_args:
            self._validate_sample(value)
        z = self._z(value)
        zero, c = self._near_zero()
        return cresset.where(zero, -z, -cresset.log1p(z * c) / c)

    def log_cdf(self, value):
        """The logarithm of `cdf`."""
        if self._validate_args:
            self._validate_sample(value)
        return cresset.log1p(-cresset.exp(self.log_survival_function(value)))

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return cresset.exp(self.log_cdf(value))

    def icdf(self, value):
        zero, c = self._near_zero()
        log_survival = cresset.log1p(-value)
        return self.loc + self.scale * cresset.where(zero, -log_survival, cresset.expm1(-c * log_survival) / c)

    @property
    def mean(self):
        c = self.concentration
        return cresset.where(c < 1, self.loc + self.scale / (1 - c), cresset.nan)

    @property
    def variance(self):
        c = self.concentration
        return cresset.where(c < 0.5, self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c)), cresset.nan)

    def entropy(self):
        return (self.scale.log() + self.concentration + 1).expand(self._batch_shape)

    @property
    def mode(self):
        return self.loc
