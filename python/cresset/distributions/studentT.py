"""Student's distribution."""

import math

import cresset

from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .utils import _standard_normal, broadcast_all

__all__ = ["StudentT"]


class StudentT(Distribution):
    """A normal variable over the root of a chi-squared one divided by its degrees of freedom `df`, scaled and moved.

    The mean is NaN up to a df of one; the variance is NaN up to one and infinite up to two.
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(StudentT, batch_shape, _instance, "df", "loc", "scale", "_chi2")

    @property
    def mean(self):
        return self.loc.masked_fill(self.df <= 1, cresset.nan)

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        variance = self.scale.pow(2) * self.df / (self.df - 2)
        return variance.masked_fill(self.df <= 2, cresset.inf).masked_fill(self.df <= 1, cresset.nan)

    def rsample(self, sample_shape=cresset.Size()):
        x = _standard_normal(self._extended_shape(sample_shape), self.df.dtype, self.df.device)
        return self.loc + self.scale * (x * cresset.rsqrt(self._chi2.rsample(sample_shape) / self.df))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        y, half = (value - self.loc) / self.scale, 0.5 * self.df
        normalizer = (
            self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi) + half.lgamma() - (half + 0.5).lgamma()
        )
        return -(half + 0.5) * cresset.log1p(y**2.0 / self.df) - normalizer

    def entropy(self):
        half = 0.5 * self.df
        log_beta = cresset.lgamma(half) + math.lgamma(0.5) - cresset.lgamma(half + 0.5)
        spread = (half + 0.5) * (cresset.digamma(half + 0.5) - cresset.digamma(half))
        return self.scale.log() + spread + 0.5 * self.df.log() + log_beta
