"""Categories as one-hot vectors."""

import cresset

from . import constraints
from ._parameters import OfCategorical
from .categorical import Categorical
from .distribution import Distribution

__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]


class OneHotCategorical(OfCategorical, Distribution):
    """One-hot vectors `(*, K)` of a Categorical of `probs` or `logits` `(*, K)`."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(OneHotCategorical, batch_shape, _instance, "_categorical")

    @property
    def _param(self):
        return self._categorical._param

    @property
    def mean(self):
        return self._categorical.probs

    @property
    def mode(self):
        mode = self._categorical.mode
        return cresset.nn.functional.one_hot(mode, num_classes=self._event_shape[0]).to(self.probs)

    @property
    def variance(self):
        return self._categorical.probs * (1 - self._categorical.probs)

    def sample(self, sample_shape=cresset.Size()):
        drawn = self._categorical.sample(cresset.Size(sample_shape))
        return cresset.nn.functional.one_hot(drawn, self._event_shape[0]).to(self._param)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self):
        return self._categorical.entropy()

    def enumerate_support(self, expand=True):
        n = self._event_shape[0]
        values = cresset.eye(n, dtype=self._param.dtype, device=self._param.device).view(
            (n,) + (1,) * len(self._batch_shape) + (n,)
        )
        return values.expand((n,) + self._batch_shape + (n,)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """OneHotCategorical whose samples pass gradients to the probabilities (Y. Bengio, N. Léonard, A. Courville, 2013)."""

    has_rsample = True

    def rsample(self, sample_shape=cresset.Size()):
        samples = self.sample(sample_shape)
        return samples + (self.probs - self.probs.detach())
