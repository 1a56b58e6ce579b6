"""The normal distribution of vectors whose covariance is a diagonal and a matrix of low rank."""

import math

import cresset

from . import constraints
from .distribution import Distribution
from .multivariate_normal import _batch_mahalanobis, _batch_mv
from .utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal"]


def _scaled(W, D):
    """W^T D^-1, `(*, m, n)`."""
    return W.mT / D.unsqueeze(-2)


def _batch_capacitance_tril(W, D):
    """The Cholesky factor of the capacitance matrix I + W^T D^-1 W, `(*, m, m)`."""
    eye = cresset.eye(W.size(-1), dtype=W.dtype, device=W.device)
    return cresset.linalg.cholesky(_scaled(W, D) @ W + eye)


def _batch_lowrank_logdet(W, D, capacitance_tril):
    """log |W W^T + D| = log |capacitance| + log |D| (matrix determinant lemma)."""
    return 2 * capacitance_tril.diagonal(dim1=-2, dim2=-1).log().sum(-1) + D.log().sum(-1)


def _batch_lowrank_mahalanobis(W, D, x, capacitance_tril):
    """x^T (W W^T + D)^-1 x by Woodbury's identity."""
    inner = _batch_mv(_scaled(W, D), x)
    return (x.pow(2) / D).sum(-1) - _batch_mahalanobis(capacitance_tril, inner)


class LowRankMultivariateNormal(Distribution):
    """Vectors of mean `loc` `(*, n)` and covariance W W^T + diag(D), W being `cov_factor` `(*, n, m)`, D `cov_diag` `(*, n)`.

    Works with m x m matrices only, by Woodbury's identity and the matrix determinant lemma. ValueError for shapes that do not fit.
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            batch_shape = cresset.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from error
        self.loc = loc.expand(batch_shape + event_shape)
        self.cov_factor = cov_factor.expand(batch_shape + cov_factor.shape[-2:])
        self.cov_diag = cov_diag.expand(batch_shape + event_shape)
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        self._capacitance_tril = _batch_capacitance_tril(cov_factor, cov_diag)
        super().__init__(batch_shape, event_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        names = "loc", "cov_factor", "cov_diag", "covariance_matrix", "scale_tril", "precision_matrix"
        new = self._expanded(LowRankMultivariateNormal, batch_shape, _instance, *names)
        for name in ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril"):
            setattr(new, name, getattr(self, name))
        return new

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @lazy_property
    def variance(self):
        """The diagonal of the covariance."""
        diagonal = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return diagonal.expand(self._batch_shape + self._event_shape)

    def _covariance(self):
        W = self._unbroadcasted_cov_factor
        return W @ W.mT + self._unbroadcasted_cov_diag.diag_embed()

    @lazy_property
    def scale_tril(self):
        """The lower Cholesky factor of the covariance: that of I + D^-1/2 W W^T D^-1/2, scaled by D^1/2."""
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        W = self._unbroadcasted_cov_factor / root
        inner = W @ W.mT + cresset.eye(W.size(-2), dtype=W.dtype, device=W.device)
        return (root * cresset.linalg.cholesky(inner)).expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self):
        """W W^T + diag(D)"""
        return self._covariance().expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def precision_matrix(self):
        """Its inverse: D^-1 - D^-1 W capacitance^-1 W^T D^-1."""
        scaled = _scaled(self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag)
        A = cresset.linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        inverse = self._unbroadcasted_cov_diag.reciprocal().diag_embed() - A.mT @ A
        return inverse.expand(self._batch_shape + self._event_shape + self._event_shape)

    def rsample(self, sample_shape=cresset.Size()):
        shape = self._extended_shape(sample_shape)
        of_factor = _standard_normal(shape[:-1] + self.cov_factor.shape[-1:], self.loc.dtype, self.loc.device)
        of_diagonal = _standard_normal(shape, self.loc.dtype, self.loc.device)
        return (
            self.loc
            + _batch_mv(self._unbroadcasted_cov_factor, of_factor)
            + self._unbroadcasted_cov_diag.sqrt() * of_diagonal
        )

    def _log_det(self):
        return _batch_lowrank_logdet(
            self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag, self._capacitance_tril
        )

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        W, D = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag
        distance = _batch_lowrank_mahalanobis(W, D, value - self.loc, self._capacitance_tril)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + self._log_det() + distance)

    def entropy(self):
        result = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_det())
        return result if len(self._batch_shape) == 0 else result.expand(self._batch_shape)
