"""The gamma distribution."""

import cresset

from . import constraints
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Gamma"]


def _standard_gamma(concentration):
    return cresset._standard_gamma(concentration)


class Gamma(ExponentialFamily):
    """On positive numbers with density proportional to x^(concentration - 1) exp(-rate x)."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration, rate, validate_args=None):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Gamma, batch_shape, _instance, "concentration", "rate")

    @property
    def mean(self):
        return self.concentration / self.rate

    @property
    def mode(self):
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self):
        return self.concentration / self.rate.pow(2)

    def rsample(self, sample_shape=cresset.Size()):
        shape = self._extended_shape(sample_shape)
        value = _standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(
            min=cresset.finfo(value.dtype).tiny
        )  # gradients do not see that zero is not in the support
        return value

    def log_prob(self, value):
        value = cresset.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        if self._validate_args:
            self._validate_sample(value)
        density = (
            cresset.xlogy(self.concentration, self.rate)
            + cresset.xlogy(self.concentration - 1, value)
            - self.rate * value
        )
        return density - cresset.lgamma(self.concentration)

    def entropy(self):
        k = self.concentration
        return k - self.rate.log() + cresset.lgamma(k) + (1.0 - k) * cresset.digamma(k)

    @property
    def _natural_params(self):
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x, y):
        return cresset.lgamma(x + 1) + (x + 1) * cresset.log(-y.reciprocal())

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return cresset.special.gammainc(self.concentration, self.rate * value)
