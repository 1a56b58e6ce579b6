"""The normal distribution of vectors."""

import math

import cresset

from . import constraints
from .distribution import Distribution
from .utils import _standard_normal, lazy_property

__all__ = ["MultivariateNormal"]


def _batch_mv(matrices, vectors):
    """Products of `(*, n, m)` and `(*, m)`."""
    return (matrices @ vectors.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(tril, x):
    """x^T (tril tril^T)^-1 x of vectors `(*, n)`; samples in front of the batch are columns of one triangular solve."""
    n, lead = x.shape[-1], max(x.dim() - tril.dim() + 1, 0)
    batch = cresset.broadcast_shapes(x.shape[lead:-1], tril.shape[:-2])
    columns = x.expand(x.shape[:lead] + batch + (n,)).reshape((-1,) + batch + (n,)).movedim(0, -1)
    squares = cresset.linalg.solve_triangular(tril, columns, upper=False).pow(2).sum(-2)
    return squares.movedim(-1, 0).reshape(x.shape[:lead] + batch)


def _precision_to_scale_tril(precision):
    """The Cholesky factor of the inverse: that of the matrix with both orders turned, turned and inverted."""
    turned = cresset.linalg.cholesky(cresset.flip(precision, (-2, -1)))
    upper = cresset.flip(turned, (-2, -1)).mT
    eye = cresset.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return cresset.linalg.solve_triangular(upper, eye, upper=False)


class MultivariateNormal(Distribution):
    """Vectors of mean `loc` `(*, n)` and one of `covariance_matrix`, `precision_matrix` or its Cholesky factor `scale_tril`, `(*, n, n)`.

    `scale_tril` is the cheapest. ValueError unless exactly one is given and the dimensions are as said.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        if (covariance_matrix is not None) + (scale_tril is not None) + (precision_matrix is not None) != 1:
            raise ValueError("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        for name, matrix in (
            ("scale_tril matrix", scale_tril), ("covariance_matrix", covariance_matrix), ("precision_matrix", precision_matrix),
        ):  # fmt: skip
            if matrix is None:
                continue
            if matrix.dim() < 2:
                raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
            batch_shape = cresset.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
            setattr(self, name.split()[0], matrix.expand(batch_shape + (-1, -1)))
        self.loc = loc.expand(batch_shape + (-1,))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        if scale_tril is not None:
            self._unbroadcasted_scale_tril = scale_tril
        elif covariance_matrix is not None:
            self._unbroadcasted_scale_tril = cresset.linalg.cholesky(covariance_matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(precision_matrix)

    def expand(self, batch_shape, _instance=None):
        names = "loc", "covariance_matrix", "scale_tril", "precision_matrix"
        new = self._expanded(MultivariateNormal, batch_shape, _instance, *names)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril
        return new

    @lazy_property
    def scale_tril(self):
        """The lower Cholesky factor of the covariance."""
        return self._unbroadcasted_scale_tril.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self):
        """scale_tril @ scale_tril.mT"""
        tril = self._unbroadcasted_scale_tril
        return (tril @ tril.mT).expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def precision_matrix(self):
        """The inverse of the covariance."""
        inverse = cresset.cholesky_inverse(self._unbroadcasted_scale_tril)
        return inverse.expand(self._batch_shape + self._event_shape + self._event_shape)

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape=cresset.Size()):
        noise = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, noise)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        distance = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - self._half_log_det()

    def _half_log_det(self):
        return self._unbroadcasted_scale_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)

    def entropy(self):
        result = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._half_log_det()
        return result if len(self._batch_shape) == 0 else result.expand(self._batch_shape)
