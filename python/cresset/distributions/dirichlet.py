"""Dirichlet's distribution."""

import cresset
from cresset.autograd import Function
from cresset.autograd.function import once_differentiable

from . import constraints
from .exp_family import ExponentialFamily

__all__ = ["Dirichlet"]


def _Dirichlet_backward(x, concentration, grad_output):
    """The gradient that reaches the concentration through samples x: along the simplex, so less the mean of the incoming one."""
    total = concentration.sum(-1, True).expand_as(concentration)
    grad = cresset._dirichlet_grad(x, concentration, total)
    return grad * (grad_output - (x * grad_output).sum(-1, True))


class _Dirichlet(Function):
    """Samples with implicit gradients (M. Figurnov, S. Mohamed, A. Mnih, "Implicit reparameterization gradients", 2018)."""

    @staticmethod
    def forward(ctx, concentration):
        x = cresset._sample_dirichlet(concentration)
        ctx.save_for_backward(x, concentration)
        return x

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        return _Dirichlet_backward(*ctx.saved_tensors, grad_output)


class Dirichlet(ExponentialFamily):
    """Simplices `(*, K)` with density proportional to the product of x_i^(concentration_i - 1), `concentration` being `(*, K)`."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration, validate_args=None):
        if concentration.dim() < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(Dirichlet, batch_shape, _instance, "concentration")

    @property
    def mean(self):
        return self.concentration / self.concentration.sum(-1, True)

    @property
    def mode(self):
        """NaN where the density has no single greatest point; the first corner where it is infinite in all of them."""
        shifted = (self.concentration - 1).clamp(min=0.0)
        corner = (self.concentration < 1).all(dim=-1, keepdim=True)
        first = cresset.zeros_like(shifted)
        first[..., 0] = 1
        return cresset.where(corner, first, shifted / shifted.sum(-1, True))

    @property
    def variance(self):
        total = self.concentration.sum(-1, True)
        return self.concentration * (total - self.concentration) / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape=()):
        return _Dirichlet.apply(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        powers = cresset.xlogy(self.concentration - 1.0, value).sum(-1)
        return powers + cresset.lgamma(self.concentration.sum(-1)) - cresset.lgamma(self.concentration).sum(-1)

    def entropy(self):
        k, total = self.concentration.size(-1), self.concentration.sum(-1)
        normalizer = cresset.lgamma(self.concentration).sum(-1) - cresset.lgamma(total)
        spread = (k - total) * cresset.digamma(total)
        return normalizer - spread - ((self.concentration - 1.0) * cresset.digamma(self.concentration)).sum(-1)

    @property
    def _natural_params(self):
        return (self.concentration,)

    def _log_normalizer(self, x):
        return x.lgamma().sum(-1) - cresset.lgamma(x.sum(-1))
