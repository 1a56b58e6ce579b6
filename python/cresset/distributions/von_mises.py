"""Von Mises' distribution."""

import math

import cresset

from . import constraints
from .distribution import Distribution
from .utils import broadcast_all, lazy_property

__all__ = ["VonMises"]


def _log_modified_bessel_fn(x, order=0):
    """The logarithm of the modified Bessel function of order zero or one."""
    return (cresset.special.i1e(x) if order else cresset.special.i0e(x)).log() + x


class VonMises(Distribution):
    """Angles with density proportional to exp(concentration * cos(x - loc)); values are taken modulo 2 pi.

    Samples lie in `[-pi, pi)` and are made by rejection (D. J. Best and N. I. Fisher, "Efficient simulation of the von Mises distribution",
    1979) in float64. The variance is the circular one.
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc, concentration, validate_args=None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, cresset.Size(), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(
            VonMises, batch_shape, _instance, "loc", "concentration", "_loc", "_concentration", "_proposal_r"
        )

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        return (
            self.concentration * cresset.cos(value - self.loc)
            - math.log(2 * math.pi)
            - _log_modified_bessel_fn(self.concentration)
        )

    @lazy_property
    def _loc(self):
        return self.loc.to(cresset.double)

    @lazy_property
    def _concentration(self):
        return self.concentration.to(cresset.double)

    @lazy_property
    def _proposal_r(self):
        kappa = self._concentration
        tau = 1 + (1 + 4 * kappa**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
        return cresset.where(
            kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho)
        )  # the series where rho loses its digits

    def sample(self, sample_shape=cresset.Size()):
        shape = self._extended_shape(sample_shape)
        with cresset.no_grad():
            r, kappa = self._proposal_r.expand(shape), self._concentration.expand(shape)
            angle = cresset.empty(shape, dtype=cresset.double, device=self.loc.device)
            done = cresset.zeros(shape, dtype=cresset.bool, device=self.loc.device)
            while not done.all():
                u1, u2, u3 = cresset.rand((3,) + shape, dtype=cresset.double, device=self.loc.device).unbind()
                z = cresset.cos(math.pi * u1)
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                accept = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
                angle = cresset.where(accept, (u3 - 0.5).sign() * f.acos(), angle)
                done = done | accept
            return ((angle + math.pi + self._loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    @property
    def mean(self):
        """The circular mean."""
        return self.loc

    @property
    def mode(self):
        return self.loc

    @lazy_property
    def variance(self):
        """The circular variance, 1 - I1 / I0 of the concentration."""
        return 1 - cresset.special.i1e(self.concentration) / cresset.special.i0e(self.concentration)
