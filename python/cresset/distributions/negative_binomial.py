"""The negative binomial distribution."""

import cresset
import cresset.nn.functional as F

from . import constraints
from ._parameters import Odds, one_of
from .distribution import Distribution
from .gamma import Gamma
from .utils import broadcast_all, lazy_property

__all__ = ["NegativeBinomial"]


class NegativeBinomial(Odds, Distribution):
    """The number of successes, of probability `probs` in `[0, 1)` or log-odds `logits`, before `total_count` failures (real, not negative)."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(self, total_count, probs=None, logits=None, validate_args=None):
        self.total_count, param = broadcast_all(total_count, one_of(probs, logits))
        self.total_count = self.total_count.type_as(param)
        self._keep(None if probs is None else param, param)
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(NegativeBinomial, batch_shape, _instance, "total_count", "probs", "logits", "_param")

    @property
    def mean(self):
        return self.total_count * cresset.exp(self.logits)

    @property
    def mode(self):
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self):
        return self.mean / cresset.sigmoid(-self.logits)

    @lazy_property
    def _gamma(self):
        return Gamma(concentration=self.total_count, rate=cresset.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape=cresset.Size()):
        with cresset.no_grad():
            return cresset.poisson(self._gamma.sample(sample_shape=sample_shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        powers = self.total_count * F.logsigmoid(-self.logits) + value * F.logsigmoid(self.logits)
        arrangements = (
            cresset.lgamma(self.total_count + value) - cresset.lgamma(1.0 + value) - cresset.lgamma(self.total_count)
        )
        return powers + arrangements.masked_fill(self.total_count + value == 0.0, 0.0)
