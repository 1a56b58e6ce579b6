"""Exponential families."""

import cresset

from .distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    r"""Densities of the form :math:`\exp(\langle t(x), \theta \rangle - F(\theta) + k(x))`.

    A family gives its natural parameters, the log normalizer F and the mean of the carrier measure k; entropies and divergences follow from
    them by F's gradient (F. Nielsen and R. Nock, "Entropies and cross-entropies of exponential families", ICIP 2010).
    """

    @property
    def _natural_params(self):
        raise NotImplementedError

    def _log_normalizer(self, *natural_params):
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self):
        raise NotImplementedError

    def entropy(self):
        """F - <theta, grad F> - E[k], by Bregman's divergence."""
        result = -self._mean_carrier_measure
        params = [p.detach().requires_grad_() for p in self._natural_params]
        with cresset.enable_grad():
            normalizer = self._log_normalizer(*params)
            gradients = cresset.autograd.grad(normalizer.sum(), params, create_graph=True)
        result = result + normalizer
        for param, gradient in zip(params, gradients):
            result = result - (param * gradient).reshape(self._batch_shape + (-1,)).sum(-1)
        return result
