"""Wishart's distribution."""

import math
import warnings
from numbers import Number

import cresset

from . import constraints
from .chi2 import Chi2
from .exp_family import ExponentialFamily
from .multivariate_normal import _precision_to_scale_tril
from .utils import _standard_normal, lazy_property

__all__ = ["Wishart"]

_ATTEMPTS = 10  # to replace samples that rounding has made singular


def _mvdigamma(x, p):
    """The derivative of the logarithm of the multivariate gamma function."""
    return cresset.digamma(x.unsqueeze(-1) - cresset.arange(p, dtype=x.dtype, device=x.device) / 2).sum(-1)


class Wishart(ExponentialFamily):
    """Positive definite matrices `(*, p, p)`: the sum of `df` outer products of normal vectors with the covariance given.

    One of `covariance_matrix`, `precision_matrix` or its Cholesky factor `scale_tril`, `(*, p, p)`, and `df > p - 1`, a number or a tensor;
    ValueError otherwise. Samples are made by Bartlett's decomposition (W. B. Smith and R. R. Hocking, algorithm AS 53, 1972).
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    @property
    def arg_constraints(self):
        """With the lowest `df` that the size of the matrices allows."""
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self._event_shape[-1] - 1),
        }

    def __init__(self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        given = {"scale_tril": scale_tril, "covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix}
        given = {name: matrix for name, matrix in given.items() if matrix is not None}
        assert len(given) == 1, "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
        ((name, matrix),) = given.items()
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        if isinstance(df, Number):
            df = cresset.tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch_shape, event_shape = cresset.broadcast_shapes(matrix.shape[:-2], df.shape), matrix.shape[-2:]
        self.df = df.expand(batch_shape)
        if not constraints._everywhere(~self.df.le(event_shape[-1] - 1)):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {event_shape[-1] - 1}.")
        setattr(self, name, matrix.expand(batch_shape + (-1, -1)))
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        if not constraints._everywhere(~self.df.lt(event_shape[-1])):
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        if scale_tril is not None:
            self._unbroadcasted_scale_tril = scale_tril
        elif covariance_matrix is not None:
            self._unbroadcasted_scale_tril = cresset.linalg.cholesky(covariance_matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(precision_matrix)
        # the squared diagonal of Bartlett's factor
        rows = cresset.arange(event_shape[-1], dtype=self._unbroadcasted_scale_tril.dtype, device=matrix.device)
        self._dist_chi2 = Chi2(self.df.unsqueeze(-1) - rows)

    def expand(self, batch_shape, _instance=None):
        names = "df", "covariance_matrix", "scale_tril", "precision_matrix", "_dist_chi2"
        new = self._get_checked_instance(Wishart, _instance)
        new._event_shape = self._event_shape  # the constraints ask for it
        new = self._expanded(Wishart, batch_shape, new, *names)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        return new

    @lazy_property
    def scale_tril(self):
        """The lower Cholesky factor of the covariance."""
        return self._unbroadcasted_scale_tril.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self):
        """scale_tril @ scale_tril.mT"""
        tril = self._unbroadcasted_scale_tril
        return (tril @ tril.mT).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def precision_matrix(self):
        """The inverse of the covariance."""
        return cresset.cholesky_inverse(self._unbroadcasted_scale_tril).expand(self._batch_shape + self._event_shape)

    @property
    def mean(self):
        return self.df.view(self._batch_shape + (1, 1)) * self.covariance_matrix

    @property
    def mode(self):
        factor = (self.df - self.covariance_matrix.shape[-1] - 1).view(self._batch_shape + (1, 1))
        return factor.masked_fill(factor <= 0, cresset.nan) * self.covariance_matrix

    @property
    def variance(self):
        V = self.covariance_matrix
        diagonal = V.diagonal(dim1=-2, dim2=-1)
        return self.df.view(self._batch_shape + (1, 1)) * (V.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def _bartlett_sampling(self, sample_shape=cresset.Size()):
        p, dtype = self._event_shape[-1], self._unbroadcasted_scale_tril.dtype
        factor = self._dist_chi2.rsample(sample_shape).clamp(min=cresset.finfo(dtype).tiny).sqrt().diag_embed()
        below = cresset.tril_indices(p, p, offset=-1)
        shape = cresset.Size(sample_shape) + self._batch_shape + (p * (p - 1) // 2,)
        factor[..., below[0], below[1]] = _standard_normal(shape, dtype, self.df.device)
        root = self._unbroadcasted_scale_tril @ factor
        return root @ root.mT

    def rsample(self, sample_shape=cresset.Size()):
        sample_shape = cresset.Size(sample_shape)
        # PyTorch 2.13 replaces a first draw wherever it is sound, and so does this for the same samples of a seed.
        with cresset.no_grad():
            first = self._bartlett_sampling(sample_shape)
        sound = self.support.check(first)[..., None, None]
        sample = cresset.where(sound, self._bartlett_sampling(sample_shape), first)
        for _ in range(_ATTEMPTS):
            singular = ~self.support.check(sample)
            if not singular.any():
                return sample
            warnings.warn("Singular sample detected.", stacklevel=2)
            sample = cresset.where(singular[..., None, None], self._bartlett_sampling(sample_shape), sample)
        return sample

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        nu, p = self.df, self._event_shape[-1]
        trace = cresset.cholesky_solve(value, self._unbroadcasted_scale_tril).diagonal(dim1=-2, dim2=-1).sum(dim=-1)
        normalizer = nu * (p * math.log(2) / 2 + self._half_log_det()) + cresset.mvlgamma(nu / 2, p=p)
        return (nu - p - 1) / 2 * cresset.linalg.slogdet(value).logabsdet - trace / 2 - normalizer

    def _half_log_det(self):
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def entropy(self):
        nu, p = self.df, self._event_shape[-1]
        spread = (nu - p - 1) / 2 * _mvdigamma(nu / 2, p=p)
        return (
            (p + 1) * (p * math.log(2) / 2 + self._half_log_det()) + cresset.mvlgamma(nu / 2, p=p) - spread + nu * p / 2
        )

    @property
    def _natural_params(self):
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x, y):
        p = self._event_shape[-1]
        half = y + (p + 1) / 2  # of df
        return half * (p * math.log(2) - cresset.linalg.slogdet(-2 * x).logabsdet) + cresset.mvlgamma(half, p=p)
