"""The multinomial distribution."""

import cresset

from . import constraints
from ._parameters import OfCategorical
from .binomial import Binomial
from .categorical import Categorical
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["Multinomial"]


class Multinomial(OfCategorical, Distribution):
    """Counts `(*, K)` of `total_count` draws of a Categorical of `probs` or `logits` `(*, K)`.

    `total_count` is one int (NotImplementedError otherwise). `log_prob` does not need it and takes counts of any sum without validation.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        self._binomial = Binomial(total_count=total_count, probs=self.probs)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Multinomial, batch_shape, _instance, "total_count", "_categorical", "_binomial")

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        return constraints.multinomial(self.total_count)

    @property
    def mean(self):
        return self.probs * self.total_count

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=cresset.Size()):
        draws = self._categorical.sample(cresset.Size((self.total_count,)) + cresset.Size(sample_shape)).movedim(0, -1)
        counts = draws.new_zeros(self._extended_shape(sample_shape)).scatter_add_(-1, draws, cresset.ones_like(draws))
        return counts.type_as(self.probs)

    def entropy(self):
        n = cresset.tensor(self.total_count)
        counts = self._binomial.enumerate_support(expand=False)[1:]
        means = cresset.exp(self._binomial.log_prob(counts)) * cresset.lgamma(counts + 1)  # of log x! for each category
        return n * self._categorical.entropy() - cresset.lgamma(n + 1) + means.sum((0, -1))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.masked_fill((value == 0) & (logits == -cresset.inf), 0)
        arrangements = cresset.lgamma(value.sum(-1) + 1) - cresset.lgamma(value + 1).sum(-1)
        return arrangements + (logits * value).sum(-1)
