"""Probabilities or log-odds: distributions that take either one and compute the other when it is asked for."""

from .utils import lazy_property, logits_to_probs, probs_to_logits


def one_of(probs, logits):
    """The one that is given; ValueError unless exactly one is."""
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")
    return logits if probs is None else probs


class ProbsAndLogits:
    """`probs` of an event in `[0, 1]` and its log-odds `logits`: an instance has one, the other is computed when it is asked for."""

    @lazy_property
    def logits(self):
        """log(probs / (1 - probs))"""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self):
        """1 / (1 + exp(-logits))"""
        return logits_to_probs(self.logits, is_binary=True)


class Odds(ProbsAndLogits):
    """The same, with `_param` for the one that was given."""

    @property
    def param_shape(self):
        """The shape of the parameter."""
        return self._param.size()

    def _new(self, *args, **kwargs):
        return self._param.new(*args, **kwargs)

    def _keep(self, probs, logits):
        if probs is None:
            self.logits = self._param = logits
        else:
            self.probs = self._param = probs


class OfCategorical:
    """`probs` and `logits` of an inner `_categorical`."""

    @property
    def probs(self):
        """Probabilities along the last dimension."""
        return self._categorical.probs

    @property
    def logits(self):
        """Their logarithms."""
        return self._categorical.logits

    @property
    def param_shape(self):
        """The shape of the parameter, with the categories."""
        return self._categorical.param_shape

    def _new(self, *args, **kwargs):
        return self._categorical._new(*args, **kwargs)


class OfBase:
    """`probs`, `logits` and `temperature` of the base distribution."""

    @property
    def temperature(self):
        """The temperature of the relaxation."""
        return self.base_dist.temperature

    @property
    def logits(self):
        """The base distribution's."""
        return self.base_dist.logits

    @property
    def probs(self):
        """The base distribution's."""
        return self.base_dist.probs
