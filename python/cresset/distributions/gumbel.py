"""Gumbel's distribution."""

import math

import cresset

from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant

__all__ = ["Gumbel"]


class Gumbel(TransformedDistribution):
    """loc - scale * log(-log(u)) of a uniform u: the limit of maxima."""

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        info = cresset.finfo(self.loc.dtype)
        base = Uniform(
            cresset.full_like(self.loc, info.tiny),
            cresset.full_like(self.loc, 1 - info.eps),
            validate_args=validate_args,
        )
        super().__init__(base, self._steps(), validate_args=validate_args)

    def _steps(self):
        return [
            ExpTransform().inv, AffineTransform(0, -cresset.ones_like(self.scale)),
            ExpTransform().inv, AffineTransform(self.loc, -self.scale),
        ]  # fmt: skip

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(Gumbel, _instance)
        new.loc, new.scale = self.loc.expand(batch_shape), self.scale.expand(batch_shape)
        new = super().expand(batch_shape, _instance=new)
        new.transforms = new._steps()
        return new

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    @property
    def mean(self):
        return self.loc + self.scale * euler_constant

    @property
    def mode(self):
        return self.loc

    @property
    def stddev(self):
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self):
        return self.stddev.pow(2)

    def entropy(self):
        return self.scale.log() + (1 + euler_constant)
