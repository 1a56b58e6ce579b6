"""The binomial distribution."""

import cresset

from . import constraints
from ._parameters import Odds, one_of
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Binomial"]


def _positive_part(x):
    return (x + x.abs()) / 2  # the gradient at 0 is the mean of both sides'


class Binomial(Odds, Distribution):
    """The number of successes of `total_count` trials of probability `probs`, or log-odds `logits`; all broadcast."""

    arg_constraints = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        self.total_count, param = broadcast_all(total_count, one_of(probs, logits))
        self.total_count = self.total_count.type_as(param)
        self._keep(None if probs is None else param, param)
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Binomial, batch_shape, _instance, "total_count", "probs", "logits", "_param")

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self):
        return self.total_count * self.probs

    @property
    def mode(self):
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=cresset.Size()):
        shape = self._extended_shape(sample_shape)
        with cresset.no_grad():
            return cresset.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        choices = cresset.lgamma(n + 1) - cresset.lgamma(value + 1) - cresset.lgamma(n - value + 1)
        # value * log p + (n - value) * log(1 - p) with log(1 - p) = -softplus(logits), whose linear part is taken out
        softplus = _positive_part(self.logits) + cresset.log1p(cresset.exp(-cresset.abs(self.logits)))
        return choices + value * self.logits - n * softplus

    def entropy(self):
        """By summing over all counts; NotImplementedError where total counts differ."""
        total = int(self.total_count.max())
        if not self.total_count.min() == total:
            raise NotImplementedError("Inhomogeneous total count not supported by `entropy`.")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(cresset.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand=True):
        """0, 1, ..., total_count; NotImplementedError where total counts differ."""
        total = int(self.total_count.max())
        if not self.total_count.min() == total:
            raise NotImplementedError("Inhomogeneous total count not supported by `enumerate_support`.")
        values = cresset.arange(1 + total, dtype=self._param.dtype, device=self._param.device)
        values = values.view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1,) + self._batch_shape) if expand else values
