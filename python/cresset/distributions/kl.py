r"""Divergences of Kullback and Leibler, KL(p || q) = E_p[log p(x) - log q(x)], in closed form by the types of p and q.

Most of the pairs of different families follow from one line of algebra: -H(p) - E_p[log q], where log q asks p only for a mean, a variance or
an expected logarithm. Means, variances and entropies are those of the classes.
"""

import math
import warnings

import cresset
import cresset.nn.functional as F

from . import constraints
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal, _batch_lowrank_logdet, _batch_lowrank_mahalanobis
from .multivariate_normal import MultivariateNormal, _batch_mahalanobis
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import _sum_rightmost, euler_constant

__all__ = ["register_kl", "kl_divergence"]

_KL_REGISTRY = {}  # (type of p, type of q) -> function, as registered
_KL_MEMOIZE = {}  # the same for the exact types that were asked for; NotImplemented where there is none


def register_kl(type_p, type_q):
    """Decorates a function of `(p, q)` as the divergence of these types and of their subclasses that have none of their own.

    Where two functions fit equally well there is a RuntimeWarning; register the pair itself. A base class that is no Distribution
    fits as well (packages mix theirs in); TypeError for what is no class.
    """
    for name, type_ in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(type_, type):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {type_}")

    def decorator(function):
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()
        return function

    return decorator


def _dispatch_kl(type_p, type_q):
    """The function for the nearest base classes; the nearest of p goes first."""
    fitting = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not fitting:
        return NotImplemented

    def distances(pair):
        return type_p.__mro__.index(pair[0]), type_q.__mro__.index(pair[1])

    by_p = min(fitting, key=distances)
    by_q = min(fitting, key=lambda pair: distances(pair)[::-1])
    if _KL_REGISTRY[by_p] is not _KL_REGISTRY[by_q]:
        p, q = by_p[0].__name__, by_q[1].__name__
        message = f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl({p}, {q})"
        warnings.warn(message, RuntimeWarning, stacklevel=3)
    return _KL_REGISTRY[by_p]


def kl_divergence(p, q):
    """KL(p || q) of shape `batch_shape`, which those of p and q broadcast to; NotImplementedError if the pair of types has no formula."""
    key = type(p), type(q)
    if key not in _KL_MEMOIZE:
        _KL_MEMOIZE[key] = _dispatch_kl(*key)
    function = _KL_MEMOIZE[key]
    if function is NotImplemented:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {key[0].__name__} and q type {key[1].__name__}"
        )
    return function(p, q)


# --- parts of formulas --------------------------------------------------------------------------------------------------------


def _infinite_like(tensor):
    return cresset.full_like(tensor, cresset.inf)


def _infinite_where(condition, value):
    return cresset.where(condition, cresset.inf, value)


def _log_factor(p):
    """log(1 - probs) + log of the normalizer: the part of a continuous Bernoulli's log density that does not depend on x."""
    return cresset.log1p(-p.probs) + p._cont_bern_log_norm()


def _to_continuous_bernoulli(p, q):
    return -p.entropy() - p.mean * q.logits - _log_factor(q)


def _to_exponential(p, q):
    return -p.entropy() - q.rate.log() + q.rate * p.mean


def _to_gamma(p, q, mean_log):
    k = q.concentration
    return -p.entropy() + k.lgamma() - k * q.rate.log() - (k - 1) * mean_log + q.rate * p.mean


def _to_gumbel(p, q, mean_exp):
    """`mean_exp` is E_p[exp(-(x - loc) / scale)] by q's loc and scale."""
    return -p.entropy() + q.scale.log() + (p.mean - q.loc) / q.scale + mean_exp


def _to_normal(p, q):
    distance = p.variance + (p.mean - q.loc).pow(2)
    return -p.entropy() + 0.5 * (2 * math.pi * q.variance).log() + 0.5 * distance / q.variance


def _mean_log_uniform(low, high):
    """E[log x] on `[low, high]`, low not negative."""
    return (cresset.xlogy(high, high) - cresset.xlogy(low, low)) / (high - low) - 1


def _registered(function, *pairs):
    for type_p, type_q in pairs:
        register_kl(type_p, type_q)(function)


# --- one family ---------------------------------------------------------------------------------------------------------------


@register_kl(Bernoulli, Bernoulli)
def _kl_bernoulli_bernoulli(p, q):
    ones = p.probs * (F.softplus(-q.logits) - F.softplus(-p.logits))
    ones = cresset.where(p.probs == 0, 0.0, _infinite_where(q.probs == 0, ones))
    zeros = (1 - p.probs) * (F.softplus(q.logits) - F.softplus(p.logits))
    return ones + cresset.where(p.probs == 1, 0.0, _infinite_where(q.probs == 1, zeros))


@register_kl(Beta, Beta)
def _kl_beta_beta(p, q):
    return _kl_dirichlet_dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Binomial, Binomial)
def _kl_binomial_binomial(p, q):
    if not constraints._everywhere(~(p.total_count < q.total_count)):
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    kl = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return _infinite_where(p.total_count > q.total_count, kl)


@register_kl(Categorical, Categorical)
def _kl_categorical_categorical(p, q):
    terms = _infinite_where((q.probs == 0).expand_as(p.probs), p.probs * (p.logits - q.logits))
    return cresset.where((p.probs == 0).expand_as(terms), 0.0, terms).sum(-1)


@register_kl(Cauchy, Cauchy)
def _kl_cauchy_cauchy(p, q):
    """F. Chyzak and F. Nielsen, "A closed-form formula for the Kullback-Leibler divergence between Cauchy distributions", 2019."""
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _kl_continuous_bernoulli_continuous_bernoulli(p, q):
    return p.mean * (p.logits - q.logits) + _log_factor(p) - _log_factor(q)


@register_kl(Dirichlet, Dirichlet)
def _kl_dirichlet_dirichlet(p, q):
    total_p, total_q = p.concentration.sum(-1), q.concentration.sum(-1)
    normalizers = total_p.lgamma() - total_q.lgamma() - (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    mean_logs = p.concentration.digamma() - total_p.digamma().unsqueeze(-1)
    return normalizers + ((p.concentration - q.concentration) * mean_logs).sum(-1)


@register_kl(Exponential, Exponential)
def _kl_exponential_exponential(p, q):
    ratio = q.rate / p.rate
    return ratio - ratio.log() - 1


@register_kl(ExponentialFamily, ExponentialFamily)
def _kl_expfamily_expfamily(p, q):
    """Bregman's divergence of the log normalizer."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using Bregman divergences"
        )
    params = [param.detach().requires_grad_() for param in p._natural_params]
    with cresset.enable_grad():
        normalizer = p._log_normalizer(*params)
        gradients = cresset.autograd.grad(normalizer.sum(), params, create_graph=True)
    result = q._log_normalizer(*q._natural_params) - normalizer
    batch = max(len(p.batch_shape), len(q.batch_shape))
    for of_p, of_q, gradient in zip(params, q._natural_params, gradients):
        term = (of_q - of_p) * gradient
        result = result - _sum_rightmost(term, max(term.dim() - batch, 0))
    return result


@register_kl(Gamma, Gamma)
def _kl_gamma_gamma(p, q):
    a, b = p.concentration, q.concentration
    return (
        b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma() + (a - b) * a.digamma() + (q.rate - p.rate) * (a / p.rate)
    )


@register_kl(Geometric, Geometric)
def _kl_geometric_geometric(p, q):
    return -p.entropy() - cresset.log1p(-q.probs) / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _kl_gumbel_gumbel(p, q):
    ratio, moved = p.scale / q.scale, (q.loc - p.loc) / q.scale
    return _to_gumbel(p, q, (moved + (1 + ratio).lgamma()).exp())


@register_kl(HalfNormal, HalfNormal)
def _kl_halfnormal_halfnormal(p, q):
    return _kl_normal_normal(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _kl_independent_independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(Laplace, Laplace)
def _kl_laplace_laplace(p, q):
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + distance / q.scale + ratio * (-distance / p.scale).exp() - 1


@register_kl(Normal, Normal)
def _kl_normal_normal(p, q):
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(OneHotCategorical, OneHotCategorical)
def _kl_onehotcategorical_onehotcategorical(p, q):
    return _kl_categorical_categorical(p._categorical, q._categorical)


@register_kl(Pareto, Pareto)
def _kl_pareto_pareto(p, q):
    ratio = q.alpha / p.alpha
    return _infinite_where(p.scale < q.scale, q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1)


@register_kl(Poisson, Poisson)
def _kl_poisson_poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(TransformedDistribution, TransformedDistribution)
def _kl_transformed_transformed(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Uniform, Uniform)
def _kl_uniform_uniform(p, q):
    return _infinite_where((q.low > p.low) | (q.high < p.high), ((q.high - q.low) / (p.high - p.low)).log())


# --- normal vectors -----------------------------------------------------------------------------------------------------------


def _square_sum(matrices):
    return matrices.pow(2).sum((-2, -1))


def _solved(tril, right):
    """tril^-1 right, batches broadcast."""
    return cresset.linalg.solve_triangular(tril, right, upper=False)


def _same_events(p, q, kind):
    if p.event_shape != q.event_shape:
        spaces = " " * 26  # as the words stand in PyTorch
        raise ValueError(
            f"KL-divergence between two {kind} Normals with{spaces}different event shapes cannot be computed"
        )


def _lowrank_parts(q):
    return q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag, q._capacitance_tril


def _lowrank_log_det(p):
    return _batch_lowrank_logdet(*_lowrank_parts(p))


def _lowrank_trace(q, factor, diagonal=None):
    """tr(Sigma_q^-1 (factor factor^T + diag(diagonal))) by Woodbury's identity."""
    W, D, capacitance_tril = _lowrank_parts(q)
    scaled = W.mT / D.unsqueeze(-2)
    trace = _square_sum(factor / D.sqrt().unsqueeze(-1)) - _square_sum(_solved(capacitance_tril, scaled @ factor))
    if diagonal is not None:
        root = diagonal.sqrt().unsqueeze(-2)
        trace = trace + (diagonal / D).sum(-1) - _square_sum(_solved(capacitance_tril, scaled * root))
    return trace


def _to_lowrank(p, q, log_det, trace):
    W, D, capacitance_tril = _lowrank_parts(q)
    distance = _batch_lowrank_mahalanobis(W, D, q.loc - p.loc, capacitance_tril)
    return 0.5 * (_lowrank_log_det(q) - log_det + trace + distance - p.event_shape[0])


def _to_multivariate(p, q, log_det, trace):
    distance = _batch_mahalanobis(q._unbroadcasted_scale_tril, q.loc - p.loc)
    return 0.5 * (2 * q._half_log_det() - log_det + trace + distance - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _kl_lowrankmultivariatenormal_lowrankmultivariatenormal(p, q):
    _same_events(p, q, "Low Rank Multivariate")
    trace = _lowrank_trace(q, p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag)
    return _to_lowrank(p, q, _lowrank_log_det(p), trace)


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _kl_multivariatenormal_lowrankmultivariatenormal(p, q):
    _same_events(p, q, "(Low Rank) Multivariate")
    return _to_lowrank(p, q, 2 * p._half_log_det(), _lowrank_trace(q, p._unbroadcasted_scale_tril))


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _kl_lowrankmultivariatenormal_multivariatenormal(p, q):
    _same_events(p, q, "(Low Rank) Multivariate")
    tril = q._unbroadcasted_scale_tril
    trace = _square_sum(_solved(tril, p._unbroadcasted_cov_factor)) + _square_sum(
        _solved(tril, p._unbroadcasted_cov_diag.sqrt().diag_embed())
    )
    return _to_multivariate(p, q, _lowrank_log_det(p), trace)


@register_kl(MultivariateNormal, MultivariateNormal)
def _kl_multivariatenormal_multivariatenormal(p, q):
    _same_events(p, q, "Multivariate")
    trace = _square_sum(_solved(q._unbroadcasted_scale_tril, p._unbroadcasted_scale_tril))
    return _to_multivariate(p, q, 2 * p._half_log_det(), trace)


# --- different families -------------------------------------------------------------------------------------------------------


@register_kl(Bernoulli, Poisson)
def _kl_bernoulli_poisson(p, q):
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


@register_kl(Beta, Gamma)
def _kl_beta_gamma(p, q):
    return _to_gamma(p, q, p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma())


@register_kl(Exponential, Gamma)
def _kl_exponential_gamma(p, q):
    return _to_gamma(p, q, -p.rate.log() - euler_constant)


@register_kl(Pareto, Gamma)
def _kl_pareto_gamma(p, q):
    return _to_gamma(p, q, p.scale.log() + p.alpha.reciprocal())


@register_kl(Uniform, Gamma)
def _kl_uniform_gamma(p, q):
    return _infinite_where(p.low < 0, _to_gamma(p, q, _mean_log_uniform(p.low, p.high)))


@register_kl(Beta, Uniform)
@register_kl(ContinuousBernoulli, Uniform)
def _kl_unit_uniform(p, q):
    return _infinite_where((q.low > 0) | (q.high < 1), -p.entropy() + (q.high - q.low).log())


@register_kl(Exponential, Gumbel)
def _kl_exponential_gumbel(p, q):
    return _to_gumbel(p, q, (q.loc / q.scale).exp() / (1 + (p.rate * q.scale).reciprocal()))


@register_kl(Gamma, Gumbel)
def _kl_gamma_gumbel(p, q):
    shrunk = (1 + (p.rate * q.scale).reciprocal()).pow(-p.concentration)
    return _to_gumbel(p, q, (q.loc / q.scale).exp() * shrunk)


@register_kl(Normal, Gumbel)
def _kl_normal_gumbel(p, q):
    return _to_gumbel(p, q, ((q.loc - p.loc) / q.scale + 0.5 * (p.scale / q.scale).pow(2)).exp())


@register_kl(Uniform, Gumbel)
def _kl_uniform_gumbel(p, q):
    ends = ((q.loc - p.low) / q.scale).exp() - ((q.loc - p.high) / q.scale).exp()
    return _to_gumbel(p, q, q.scale / (p.high - p.low) * ends)


@register_kl(Normal, Laplace)
def _kl_normal_laplace(p, q):
    distance = (p.loc - q.loc) / p.scale
    mean_size = math.sqrt(2 / math.pi) * (-0.5 * distance.pow(2)).exp() + distance * cresset.erf(
        distance / math.sqrt(2)
    )
    return -p.entropy() + (2 * q.scale).log() + p.scale * mean_size / q.scale


@register_kl(Uniform, Beta)
def _kl_uniform_beta(p, q):
    a, b = q.concentration1, q.concentration0
    mean_logs = (a - 1) * _mean_log_uniform(p.low, p.high) + (b - 1) * _mean_log_uniform(1 - p.high, 1 - p.low)
    kl = -p.entropy() + a.lgamma() + b.lgamma() - (a + b).lgamma() - mean_logs
    return _infinite_where((p.low < 0) | (p.high > 1), kl)


@register_kl(Uniform, ContinuousBernoulli)
def _kl_uniform_continuous_bernoulli(p, q):
    return _infinite_where((p.low < 0) | (p.high > 1), _to_continuous_bernoulli(p, q))


@register_kl(Uniform, Exponential)
def _kl_uniform_exponential(p, q):
    return _infinite_where(p.low < 0, _to_exponential(p, q))


@register_kl(Uniform, Pareto)
def _kl_uniform_pareto(p, q):
    kl = -p.entropy() - q.alpha.log() - q.alpha * q.scale.log() + (q.alpha + 1) * _mean_log_uniform(p.low, p.high)
    return _infinite_where(p.low < q.scale, kl)


def _kl_beta_infinity(p, q):
    return _infinite_like(p.concentration1)


def _kl_continuous_bernoulli_infinity(p, q):
    return _infinite_like(p.probs)


def _kl_rate_infinity(p, q):
    return _infinite_like(p.rate)


def _kl_gamma_infinity(p, q):
    return _infinite_like(p.concentration)


def _kl_loc_infinity(p, q):
    return _infinite_like(p.loc)


def _kl_pareto_infinity(p, q):
    return _infinite_like(p.scale)


_registered(_to_continuous_bernoulli, (Beta, ContinuousBernoulli))
_registered(_to_exponential, *((p, Exponential) for p in (Beta, ContinuousBernoulli, Gamma, Pareto)))
_registered(
    _to_normal,
    *((p, Normal) for p in (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform)),
)

# p reaches where q has no density
_registered(_kl_beta_infinity, (Beta, Pareto))
_registered(_kl_continuous_bernoulli_infinity, (ContinuousBernoulli, Pareto))
_registered(_kl_rate_infinity, *((Exponential, q) for q in (Beta, ContinuousBernoulli, Pareto, Uniform)))
_registered(_kl_rate_infinity, *((Poisson, q) for q in (Bernoulli, Binomial)))
_registered(_kl_gamma_infinity, *((Gamma, q) for q in (Beta, ContinuousBernoulli, Pareto, Uniform)))
_registered(
    _kl_loc_infinity,
    *(
        (p, q)
        for p in (Gumbel, Laplace, Normal)
        for q in (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
    ),
)
_registered(_kl_pareto_infinity, *((Pareto, q) for q in (Beta, ContinuousBernoulli, Uniform)))
