"""Mixtures of distributions of one kind."""

import cresset

from . import constraints
from .categorical import Categorical
from .constraints import MixtureSameFamilyConstraint
from .distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A choice by a Categorical of K among the last batch dimension, of size K, of `component_distribution`.

    ValueError for other types and for shapes that do not fit.
    """

    arg_constraints = {}
    has_rsample = False

    def __init__(self, mixture_distribution, component_distribution, validate_args=None):
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of torch.distributions.Distribution")
        mixture_shape, batch_shape = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        for size1, size2 in zip(reversed(mixture_shape), reversed(batch_shape)):
            if size1 != 1 and size2 != 1 and size1 != size2:
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixture_shape}) is not compatible with "
                    f"`component_distribution.batch_shape`({batch_shape})"
                )
        count, components = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if count is not None and components is not None and count != components:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal `component_distribution.batch_shape[-1]` ({components})"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        self._num_component = components
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(
            batch_shape=batch_shape, event_shape=component_distribution.event_shape, validate_args=validate_args
        )

    def expand(self, batch_shape, _instance=None):
        batch_shape = cresset.Size(batch_shape)
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        new._component_distribution = self._component_distribution.expand(batch_shape + (self._num_component,))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component, new._event_ndims = self._num_component, self._event_ndims
        super(MixtureSameFamily, new).__init__(
            batch_shape=batch_shape, event_shape=self._component_distribution.event_shape, validate_args=False
        )
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property
    def support(self):
        return MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self):
        """The Categorical."""
        return self._mixture_distribution

    @property
    def component_distribution(self):
        """The components."""
        return self._component_distribution

    def _average(self, values):
        """The mean over components of `(*, K, event)` by the mixture's probabilities."""
        return (self._pad_mixture_dimensions(self.mixture_distribution.probs) * values).sum(dim=-1 - self._event_ndims)

    @property
    def mean(self):
        return self._average(self.component_distribution.mean)

    @property
    def variance(self):
        """The mean of the variances and the variance of the means."""
        means = self.component_distribution.mean
        centre = self._pad(self._average(means))
        return self._average(self.component_distribution.variance) + self._average((means - centre).pow(2.0))

    def cdf(self, x):
        x = self._pad(x)
        return (self.component_distribution.cdf(x) * self.mixture_distribution.probs).sum(dim=-1)

    def log_prob(self, x):
        if self._validate_args:
            self._validate_sample(x)
        by_component = self.component_distribution.log_prob(self._pad(x))
        return cresset.logsumexp(by_component + cresset.log_softmax(self.mixture_distribution.logits, dim=-1), dim=-1)

    def sample(self, sample_shape=cresset.Size()):
        with cresset.no_grad():
            chosen = self.mixture_distribution.sample(sample_shape)
            samples = self.component_distribution.sample(sample_shape)
            dim = len(cresset.Size(sample_shape)) + len(self.batch_shape)
            chosen = chosen.reshape(chosen.shape + (1,) * (self._event_ndims + 1)).expand(
                samples.shape[:dim] + (1,) + self.event_shape
            )
            return samples.gather(dim, chosen).squeeze(dim)

    def _pad(self, x):
        return x.unsqueeze(-1 - self._event_ndims)

    def _pad_mixture_dimensions(self, x):
        return x.reshape(x.shape + (1,) * self._event_ndims)

    def __repr__(self):
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
