"""The continuous Bernoulli distribution."""

import math

import cresset
from cresset.nn.functional import binary_cross_entropy_with_logits

from . import constraints
from ._parameters import Odds, one_of
from .exp_family import ExponentialFamily
from .utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(Odds, ExponentialFamily):
    """On `[0, 1]` with density proportional to probs^x (1 - probs)^(1 - x), probs in `(0, 1)`; or by log-odds `logits`.

    G. Loaiza-Ganem and J. P. Cunningham, "The continuous Bernoulli: fixing a pervasive error in variational autoencoders", 2019. Formulas
    divide by 1 - 2 * probs; between `lims` Taylor series take their place.
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None):
        (param,) = broadcast_all(one_of(probs, logits))
        if probs is not None:
            if validate_args and not constraints._everywhere(self.arg_constraints["probs"].check(param)):
                raise ValueError("The parameter probs has invalid values")
            param = clamp_probs(param)
        self._keep(None if probs is None else param, param)
        self._lims = lims
        super().__init__(param.size(), validate_args=validate_args)

    @lazy_property
    def probs(self):
        """1 / (1 + exp(-logits)), inside of the open interval."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def expand(self, batch_shape, _instance=None):
        new = self._expanded(ContinuousBernoulli, batch_shape, _instance, "probs", "logits", "_param")
        new._lims = self._lims
        return new

    def _outside_unstable_region(self):
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self):
        return cresset.where(self._outside_unstable_region(), self.probs, self._lims[0] * cresset.ones_like(self.probs))

    def _by_region(self, formula, series):
        """`formula` of probs outside of the limits, `series` of probs - 0.5 inside."""
        return cresset.where(self._outside_unstable_region(), formula(self._cut_probs()), series(self.probs - 0.5))

    def _cont_bern_log_norm(self):
        def formula(p):  # log(2 atanh(1 - 2p) / (1 - 2p)); terms of one sign on either side of a half
            return cresset.log((cresset.log1p(-p) - cresset.log(p)).abs()) - cresset.log((1 - 2 * p).abs())

        return self._by_region(formula, lambda x: math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x**2) * x**2)

    @property
    def mean(self):
        def formula(p):
            return p / (2.0 * p - 1.0) + 1.0 / (cresset.log1p(-p) - cresset.log(p))

        return self._by_region(formula, lambda x: 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x**2) * x)

    @property
    def stddev(self):
        return self.variance.sqrt()

    @property
    def variance(self):
        def formula(p):
            return p * (p - 1.0) / (1.0 - 2.0 * p) ** 2 + 1.0 / (cresset.log1p(-p) - cresset.log(p)) ** 2

        return self._by_region(formula, lambda x: 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x**2) * x**2)

    def sample(self, sample_shape=cresset.Size()):
        with cresset.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=cresset.Size()):
        shape = self._extended_shape(sample_shape)
        return self.icdf(cresset.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none") + self._cont_bern_log_norm()

    def cdf(self, value):
        if self._validate_args:
            self._validate_sample(value)
        p = self._cut_probs()
        powers = cresset.pow(p, value) * cresset.pow(1.0 - p, 1.0 - value) + p - 1.0
        result = cresset.where(self._outside_unstable_region(), powers / (2.0 * p - 1.0), value)
        result = cresset.where(cresset.le(value, 0.0), cresset.zeros_like(result), result)
        return cresset.where(cresset.ge(value, 1.0), cresset.ones_like(result), result)

    def icdf(self, value):
        p = self._cut_probs()
        inverse = (cresset.log1p(-p + value * (2.0 * p - 1.0)) - cresset.log1p(-p)) / (
            cresset.log(p) - cresset.log1p(-p)
        )
        return cresset.where(self._outside_unstable_region(), inverse, value)

    def entropy(self):
        log0, log1 = cresset.log1p(-self.probs), cresset.log(self.probs)
        return self.mean * (log0 - log1) - self._cont_bern_log_norm() - log0

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, x):
        outside = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        cut = cresset.where(outside, x, (self._lims[0] - 0.5) * cresset.ones_like(x))
        formula = cresset.log((cresset.special.expm1(cut)).abs()) - cresset.log(cut.abs())
        return cresset.where(outside, formula, 0.5 * x + x**2 / 24.0 - x**4 / 2880.0)
