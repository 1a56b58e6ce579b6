"""The geometric distribution."""

import cresset
from cresset.nn.functional import binary_cross_entropy_with_logits

from . import constraints
from ._parameters import ProbsAndLogits, one_of
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Geometric"]


class Geometric(ProbsAndLogits, Distribution):
    """The number of failures before the first success of trials with probability `probs` in `(0, 1]`, or log-odds `logits`."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs=None, logits=None, validate_args=None):
        (param,) = broadcast_all(one_of(probs, logits))
        if probs is None:
            self.logits = param
        else:
            self.probs = param
        super().__init__(param.size(), validate_args=validate_args)
        if self._validate_args and probs is not None:
            positive = param > 0
            if not constraints._everywhere(positive):
                raise ValueError(
                    f"Expected parameter probs ({type(param).__name__} of shape {tuple(param.shape)}) of distribution {self!r} to be "
                    f"positive but found invalid values:\n{param[~positive]}"
                )

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Geometric, batch_shape, _instance, "probs", "logits")

    @property
    def mean(self):
        return 1.0 / self.probs - 1.0

    @property
    def mode(self):
        return cresset.zeros_like(self.probs)

    @property
    def variance(self):
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape=cresset.Size()):
        with cresset.no_grad():
            u = self.probs.new_empty(self._extended_shape(sample_shape)).uniform_(
                cresset.finfo(self.probs.dtype).tiny, 1
            )
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        probs = probs.masked_fill((probs == 1) & (value == 0), 0)  # no failures of which to take the logarithm
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self):
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs
