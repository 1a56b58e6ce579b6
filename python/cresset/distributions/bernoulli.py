"""Bernoulli's distribution."""

import cresset
from cresset.nn.functional import binary_cross_entropy_with_logits

from . import constraints
from ._parameters import Odds, one_of
from .exp_family import ExponentialFamily
from .utils import broadcast_all

__all__ = ["Bernoulli"]


class Bernoulli(Odds, ExponentialFamily):
    """1 with probability `probs`, else 0; or by log-odds `logits`. ValueError unless exactly one is given."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(self, probs=None, logits=None, validate_args=None):
        (param,) = broadcast_all(one_of(probs, logits))
        self._keep(None if probs is None else param, param)
        super().__init__(self._param.size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Bernoulli, batch_shape, _instance, "probs", "logits", "_param")

    @property
    def mean(self):
        return self.probs

    @property
    def mode(self):
        mode = (self.probs >= 0.5).to(self.probs)
        return mode.masked_fill(self.probs == 0.5, cresset.nan)

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=cresset.Size()):
        with cresset.no_grad():
            return cresset.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self):
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand=True):
        values = cresset.arange(2, dtype=self._param.dtype, device=self._param.device).view(
            (-1,) + (1,) * len(self._batch_shape)
        )
        return values.expand((-1,) + self._batch_shape) if expand else values

    @property
    def _natural_params(self):
        return (cresset.logit(self.probs),)

    def _log_normalizer(self, x):
        return cresset.nn.functional.softplus(x)
