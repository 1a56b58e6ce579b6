"""Correlation matrices."""

import math

import cresset

from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import broadcast_all

__all__ = ["LKJCholesky"]


class LKJCholesky(Distribution):
    """Cholesky factors `(*, dim, dim)` of correlation matrices M with density proportional to det(M)^(concentration - 1).

    Uniform over matrices for a concentration of one. D. Lewandowski, D. Kurowicka, H. Joe, "Generating random correlation matrices based on
    vines and extended onion method", 2009; samples are made by the onion method of its section 3. ValueError for `dim` below two.

    Samples are those of PyTorch 2.13 for a seed, and with them its deviation: from the third row on, the squared length of a row of k elements
    before the diagonal has Beta(k - 1/2, .) where the article has Beta(k / 2, .), so correlations of these rows spread too far (a variance of
    0.30 for three uniform ones, where it is 0.25). `log_prob` is the article's.
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim, concentration=1.0, validate_args=None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        # squared length of each row before its diagonal: row 0 has none and takes numbers of row 1
        rows = cresset.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        rows = cresset.cat([rows.new_zeros((1,)), rows])
        rest = (self.concentration + 0.5 * (dim - 2)).unsqueeze(-1) - 0.5 * rows
        self._beta = Beta(rows + 0.5, rest)
        super().__init__(self.concentration.size(), cresset.Size((dim, dim)), validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        return self._expanded(LKJCholesky, batch_shape, _instance, "dim", "concentration", "_beta")

    def sample(self, sample_shape=cresset.Size()):
        with cresset.no_grad():
            squares = self._beta.sample(sample_shape).unsqueeze(-1)
            normal = cresset.randn(self._extended_shape(sample_shape), dtype=squares.dtype, device=squares.device).tril(
                -1
            )
            directions = normal / normal.norm(dim=-1, keepdim=True)
            directions[..., 0, :] = 0
            w = squares.sqrt() * directions
            diagonal = (1 - (w**2).sum(-1)).clamp(min=cresset.finfo(w.dtype).tiny).sqrt()
            return w + diagonal.diag_embed()

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        # det(M) is the product of the squared diagonal; row i of the factor brings another dim - i powers
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        rows = cresset.arange(2, self.dim + 1, device=self.concentration.device)
        powers = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - rows
        k = self.dim - 1
        alpha = self.concentration + 0.5 * k
        normalizer = 0.5 * k * math.log(math.pi) + cresset.mvlgamma(alpha - 0.5, p=k) - cresset.lgamma(alpha) * k
        return (powers * diagonal.log()).sum(dim=-1) - normalizer
