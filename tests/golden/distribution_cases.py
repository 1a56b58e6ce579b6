"""What distributions, divergences and transforms answer; shared by the recorder and the tests. `lib` is the library asked."""

import math
import warnings

SEED = 11
QUESTIONS = ("mean", "mode", "variance", "stddev")


def _t(lib, *rows, grad=False):
    return lib.tensor(rows[0] if len(rows) == 1 else rows, dtype=lib.float64, requires_grad=grad)


def _matrix(lib):
    return _t(lib, [[2.0, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 1.2]])


# name -> (class, parameters, values at which densities are asked); parameters are floats, lists (float64 with gradients) or "matrix".
DISTRIBUTIONS = {
    "bernoulli": ("Bernoulli", {"probs": [0.2, 0.5, 0.9]}, [0.0, 1.0, 1.0]),
    "bernoulli logits": ("Bernoulli", {"logits": [-1.2, 0.0, 3.0]}, [0.0, 1.0, 1.0]),
    "beta": ("Beta", {"concentration1": [0.5, 2.0, 3.0], "concentration0": [0.7, 1.0, 5.0]}, [0.1, 0.5, 0.7]),
    "beta numbers": ("Beta", {"concentration1": 2.0, "concentration0": 3.0}, [0.1, 0.5, 0.7]),
    "binomial": ("Binomial", {"total_count": 7, "probs": [0.2, 0.5, 0.9]}, [0.0, 3.0, 7.0]),
    "binomial logits": ("Binomial", {"total_count": 30, "logits": [-1.2, 0.0, 3.0]}, [2.0, 14.0, 29.0]),
    "categorical": ("Categorical", {"probs": [[0.2, 0.5, 0.9], [1.0, 2.0, 3.0]]}, [0, 2]),
    "categorical logits": ("Categorical", {"logits": [[0.2, -0.5, 0.9], [1.0, 2.0, -3.0]]}, [1, 2]),
    "cauchy": ("Cauchy", {"loc": [0.0, 1.0, -2.0], "scale": [1.0, 0.5, 3.0]}, [0.3, -1.0, 4.0]),
    "chi2": ("Chi2", {"df": [0.8, 2.0, 7.0]}, [0.4, 2.0, 6.0]),
    "continuous bernoulli": ("ContinuousBernoulli", {"probs": [0.2, 0.4995, 0.9]}, [0.1, 0.6, 0.7]),
    "continuous bernoulli logits": ("ContinuousBernoulli", {"logits": [-1.2, 0.001, 3.0]}, [0.1, 0.6, 0.7]),
    "dirichlet": ("Dirichlet", {"concentration": [[0.5, 1.0, 2.0], [3.0, 4.0, 5.0]]}, [[0.2, 0.3, 0.5], [0.1, 0.6, 0.3]]),
    "exponential": ("Exponential", {"rate": [0.3, 1.0, 4.0]}, [0.4, 2.0, 0.1]),
    "fisher snedecor": ("FisherSnedecor", {"df1": [1.5, 3.0, 9.0], "df2": [2.5, 6.0, 4.5]}, [0.4, 2.0, 0.1]),
    "gamma": ("Gamma", {"concentration": [0.3, 1.0, 4.0], "rate": [1.0, 2.0, 0.5]}, [0.4, 2.0, 6.0]),
    "generalized pareto": ("GeneralizedPareto", {"loc": 0.5, "scale": [1.0, 2.0, 0.5], "concentration": [-0.5, 0.0, 0.3]}, [0.6, 2.0, 3.0]),
    "geometric": ("Geometric", {"probs": [0.2, 0.5, 0.9]}, [4.0, 1.0, 0.0]),
    "geometric logits": ("Geometric", {"logits": [-1.2, 0.0, 3.0]}, [4.0, 1.0, 0.0]),
    "gumbel": ("Gumbel", {"loc": [0.0, 1.0, -2.0], "scale": [1.0, 0.5, 3.0]}, [0.3, -1.0, 4.0]),
    "half cauchy": ("HalfCauchy", {"scale": [1.0, 0.5, 3.0]}, [0.3, 1.0, 4.0]),
    "half normal": ("HalfNormal", {"scale": [1.0, 0.5, 3.0]}, [0.3, 1.0, 4.0]),
    "inverse gamma": ("InverseGamma", {"concentration": [0.5, 1.5, 4.0], "rate": [1.0, 2.0, 0.5]}, [0.3, 1.0, 4.0]),
    "kumaraswamy": ("Kumaraswamy", {"concentration1": [0.5, 2.0, 3.0], "concentration0": [0.7, 1.0, 5.0]}, [0.1, 0.5, 0.7]),
    "laplace": ("Laplace", {"loc": [0.0, 1.0, -2.0], "scale": [1.0, 0.5, 3.0]}, [0.3, -1.0, 4.0]),
    "lkj cholesky": ("LKJCholesky", {"dim": 3, "concentration": [0.6, 1.0, 4.0]}, [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.6, 0.8]]),
    "log normal": ("LogNormal", {"loc": [0.0, 1.0, -2.0], "scale": [1.0, 0.5, 1.5]}, [0.3, 1.0, 4.0]),
    "logistic normal": ("LogisticNormal", {"loc": [0.0, 1.0], "scale": [1.0, 0.5]}, [0.2, 0.3, 0.5]),
    "low rank": (
        "LowRankMultivariateNormal",
        {"loc": [[0.0, 1.0, -1.0], [2.0, 0.5, 0.0]], "cov_factor": [[1.0, 0.2], [-0.3, 0.5], [0.7, 0.1]], "cov_diag": [1.0, 0.5, 2.0]},
        [0.3, -1.0, 1.0],
    ),
    "multinomial": ("Multinomial", {"total_count": 6, "probs": [[0.2, 0.5, 0.9], [1.0, 2.0, 3.0]]}, [[1.0, 2.0, 3.0], [0.0, 5.0, 1.0]]),
    "multivariate covariance": ("MultivariateNormal", {"loc": [[0.0, 1.0, -1.0], [2.0, 0.5, 0.0]], "covariance_matrix": "matrix"}, [0.3, -1.0, 1.0]),
    "multivariate precision": ("MultivariateNormal", {"loc": [0.0, 1.0, -1.0], "precision_matrix": "matrix"}, [[0.3, -1.0, 1.0], [0.0, 0.0, 0.0]]),
    "multivariate tril": (
        "MultivariateNormal",
        {"loc": [0.0, 1.0, -1.0], "scale_tril": [[1.0, 0.0, 0.0], [0.5, 2.0, 0.0], [-0.3, 0.1, 0.7]]},
        [[0.3, -1.0, 1.0], [0.0, 0.0, 0.0]],
    ),
    "negative binomial": ("NegativeBinomial", {"total_count": 3, "probs": [0.2, 0.5, 0.9]}, [4.0, 1.0, 0.0]),
    "negative binomial logits": ("NegativeBinomial", {"total_count": [0.5, 2.0, 9.0], "logits": [-1.2, 0.0, 1.0]}, [4.0, 1.0, 0.0]),
    "normal": ("Normal", {"loc": [0.0, 1.0, -2.0], "scale": [1.0, 0.5, 3.0]}, [0.3, -1.0, 4.0]),
    "normal numbers": ("Normal", {"loc": 0.0, "scale": 2.0}, [0.3, -1.0, 4.0]),
    "one hot": ("OneHotCategorical", {"probs": [[0.2, 0.5, 0.9], [1.0, 2.0, 3.0]]}, [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]),
    "one hot straight": ("OneHotCategoricalStraightThrough", {"logits": [[0.2, 0.5, 0.9], [1.0, 2.0, 3.0]]}, [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]),
    "pareto": ("Pareto", {"scale": [1.0, 2.0, 0.5], "alpha": [0.8, 1.5, 4.0]}, [1.3, 2.5, 4.0]),
    "poisson": ("Poisson", {"rate": [0.3, 2.0, 40.0]}, [0.0, 3.0, 37.0]),
    "relaxed bernoulli": ("RelaxedBernoulli", {"temperature": [0.7], "probs": [0.2, 0.5, 0.9]}, [0.1, 0.6, 0.7]),
    "relaxed one hot": ("RelaxedOneHotCategorical", {"temperature": [0.7], "probs": [[0.2, 0.5, 0.9], [1.0, 2.0, 3.0]]}, [0.2, 0.3, 0.5]),
    "logit relaxed bernoulli": ("relaxed_bernoulli.LogitRelaxedBernoulli", {"temperature": [0.7], "logits": [-1.0, 0.0, 2.0]}, [0.1, -0.6, 0.7]),
    "exp relaxed": ("relaxed_categorical.ExpRelaxedCategorical", {"temperature": [0.7], "logits": [0.2, 0.5, 0.9]}, [-1.6, -1.2, -0.7]),
    "student t": ("StudentT", {"df": [0.8, 1.5, 5.0], "loc": [0.0, 1.0, -2.0], "scale": [1.0, 0.5, 3.0]}, [0.3, -1.0, 4.0]),
    "uniform": ("Uniform", {"low": [0.0, -1.0, 2.0], "high": [1.0, 0.5, 6.0]}, [0.3, -0.9, 4.0]),
    "von mises": ("VonMises", {"loc": [0.0, 1.0, -2.0], "concentration": [1.0, 0.5, 30.0]}, [0.3, -1.0, 4.0]),
    "weibull": ("Weibull", {"scale": [1.0, 2.0, 0.5], "concentration": [1.2, 1.5, 4.0]}, [0.3, 1.0, 4.0]),
    "wishart": ("Wishart", {"df": [3.5, 6.0], "covariance_matrix": "matrix"}, "matrix"),
    "wishart precision": ("Wishart", {"df": [4.5], "precision_matrix": "matrix"}, "matrix"),
}  # fmt: skip


def build(lib, name):
    """The distribution, and those of its parameters that have gradients."""
    path, parameters, values = DISTRIBUTIONS[name]
    class_ = lib.distributions
    for part in path.split("."):
        class_ = getattr(class_, part)
    made = {}
    for key, value in parameters.items():
        if value == "matrix":
            made[key] = _matrix(lib).requires_grad_()
        else:
            made[key] = _t(lib, value, grad=True) if isinstance(value, list) else value
    at = _matrix(lib) if values == "matrix" else lib.tensor(values) if isinstance(values[0], int) else _t(lib, values)
    return class_(**made), [v for v in made.values() if isinstance(v, lib.Tensor)], at


def plain(value):
    """Nested lists of numbers with the few that JSON lacks as words."""
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return float(f"{value:.9g}") if isinstance(value, float) else value


def _numbers(result):
    return plain(result.detach().tolist())


def _asked(question):
    try:
        return _numbers(question())
    except NotImplementedError:
        return "NotImplementedError"


def _gradients(lib, result, parameters):
    if not result.requires_grad:
        return "no gradient"
    weights = lib.arange(1, result.numel() + 1, dtype=result.dtype).reshape(result.shape)
    found = lib.autograd.grad((result * weights).sum(), parameters, retain_graph=True, allow_unused=True)
    return [None if g is None else _numbers(g) for g in found]


def distribution(lib, name):
    """Everything that one distribution answers."""
    before = lib.get_default_dtype()
    lib.set_default_dtype(
        lib.float32 if name.endswith("numbers") else lib.float64
    )  # PyTorch's GeneralizedPareto knows the default only
    try:
        return _answers(lib, name)
    finally:
        lib.set_default_dtype(before)


def _answers(lib, name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        d, parameters, at = build(lib, name)
        row = {
            "text": repr(d),
            "support": repr(d.support).split("tensor")[0],
            "shapes": [list(d.batch_shape), list(d.event_shape)],
        }
        row["flags"] = [d.has_rsample, d.has_enumerate_support, d.support.event_dim, d.support.is_discrete]
        for question in QUESTIONS:
            row[question] = _asked(lambda: getattr(d, question))
        row["entropy"] = _asked(d.entropy)
        row["log_prob"] = _numbers(d.log_prob(at))
        row["log_prob gradients"] = _gradients(lib, d.log_prob(at), parameters)
        row["cdf"] = _asked(lambda: d.cdf(at))
        row["icdf"] = _asked(lambda: d.icdf(_t(lib, 0.25)))
        row["enumerated"] = _asked(lambda: d.enumerate_support(expand=False))
        lib.manual_seed(SEED)
        row["sample"] = _numbers(d.sample((2,)))
        row["another"] = _numbers(d.expand((2,) + tuple(d.batch_shape)).sample())
        if d.has_rsample:
            lib.manual_seed(SEED)
            row["rsample gradients"] = _gradients(lib, d.rsample(), parameters)
        return row


def _other(lib, name):
    """A second distribution of a kind: parameters moved a little."""
    path, parameters, _ = DISTRIBUTIONS[name]
    made = {}
    for key, value in parameters.items():
        if value == "matrix":
            made[key] = _matrix(lib) + lib.eye(3, dtype=lib.float64) * 0.5
        elif isinstance(value, list):
            moved = _t(lib, value)
            made[key] = moved * 0.9 if key in ("scale", "alpha", "probs", "low") else moved * 1.1
        else:
            made[key] = value
    class_ = getattr(lib.distributions, path)
    return class_(**made)


PAIRS_OF = (
    "bernoulli", "beta", "binomial", "categorical", "cauchy", "continuous bernoulli", "dirichlet", "exponential", "gamma", "geometric",
    "gumbel", "half normal", "laplace", "log normal", "low rank", "multivariate covariance", "normal", "one hot", "pareto", "poisson",
    "uniform", "chi2", "wishart",
)  # fmt: skip


def divergences(lib):
    """KL(p || q) of every pair of kinds that has a formula."""
    rows = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for first in PAIRS_OF:
            for second in PAIRS_OF:
                p, q = build(lib, first)[0], _other(lib, second)
                try:
                    rows[f"{first} || {second}"] = _numbers(lib.distributions.kl_divergence(p, q))
                except (NotImplementedError, RuntimeError, ValueError) as error:
                    rows[f"{first} || {second}"] = type(error).__name__
    return rows


def _transforms(lib):
    T, D = lib.distributions.transforms, lib.distributions
    return {
        "abs": (T.AbsTransform(), [[0.3, -1.0, 2.0]]),
        "affine": (T.AffineTransform(_t(lib, [1.0, 2.0, 3.0]), -2.0), [[0.3, -1.0, 2.0]]),
        "affine event": (T.AffineTransform(1.0, _t(lib, [2.0, -0.5, 3.0]), event_dim=1), [[0.3, -1.0, 2.0]]),
        "cat": (T.CatTransform([T.ExpTransform(), T.TanhTransform()], -1, [1, 2]), [[0.3, -1.0, 2.0]]),
        "compose": (
            T.ComposeTransform([T.TanhTransform(), T.AffineTransform(0.0, 3.0), T.SigmoidTransform()]),
            [[0.3, -1.0, 2.0]],
        ),
        "compose to simplex": (T.ComposeTransform([T.TanhTransform(), T.StickBreakingTransform()]), [[0.3, -1.0, 2.0]]),
        "corr cholesky": (T.CorrCholeskyTransform(), [[0.3, -1.0, 2.0], [0.1, 0.2, -0.3]]),
        "cumulative": (T.CumulativeDistributionTransform(D.Normal(0.5, 2.0)), [[0.3, -1.0, 2.0]]),
        "exp": (T.ExpTransform(), [[0.3, -1.0, 2.0]]),
        "exp inverse": (T.ExpTransform().inv, [[0.3, 1.0, 2.0]]),
        "independent": (T.IndependentTransform(T.SigmoidTransform(), 1), [[0.3, -1.0, 2.0]]),
        "lower cholesky": (T.LowerCholeskyTransform(), [[0.3, -1.0], [2.0, 0.1]]),
        "positive definite": (T.PositiveDefiniteTransform(), [[0.3, -1.0], [2.0, 0.1]]),
        "power": (T.PowerTransform(_t(lib, [2.0, -1.0, 0.5])), [[0.3, 1.0, 2.0]]),
        "reshape": (T.ReshapeTransform((2, 2), (4,)), [[0.3, -1.0], [2.0, 0.1]]),
        "sigmoid": (T.SigmoidTransform(), [[0.3, -1.0, 200.0]]),
        "softmax": (T.SoftmaxTransform(), [[0.3, -1.0, 2.0]]),
        "softplus": (T.SoftplusTransform(), [[0.3, -1.0, 2.0]]),
        "stack": (T.StackTransform([T.ExpTransform(), T.SigmoidTransform()], 0), [[0.3, -1.0], [2.0, 0.1]]),
        "stick breaking": (T.StickBreakingTransform(), [[0.3, -1.0, 2.0]]),
        "tanh": (T.TanhTransform(), [[0.3, -1.0, 2.0]]),
    }


def transform_names():
    return sorted(
        "abs affine cat compose cumulative exp independent power reshape sigmoid softmax softplus stack tanh".split()
        + [
            "affine event",
            "compose to simplex",
            "corr cholesky",
            "exp inverse",
            "lower cholesky",
            "positive definite",
            "stick breaking",
        ]
    )


def transform(lib, name):
    """One transform there and back."""
    t, values = _transforms(lib)[name]
    x = _t(lib, values, grad=True)
    y = t(x)
    row = {
        "text": repr(t),
        "domain": repr(t.domain),
        "codomain": repr(t.codomain),
        "bijective": t.bijective,
        "y": _numbers(y),
    }
    row["back"] = _asked(lambda: t.inv(y))
    row["jacobian"] = _asked(lambda: t.log_abs_det_jacobian(x, y))
    row["gradient"] = _gradients(lib, y, [x])
    row["shapes"] = [list(t.forward_shape(tuple(x.shape))), list(t.inverse_shape(tuple(y.shape)))]
    try:
        row["sign"] = plain(t.sign.tolist() if isinstance(t.sign, lib.Tensor) else t.sign)
    except NotImplementedError:
        row["sign"] = "NotImplementedError"
    return row


def _constraints(lib):
    C = lib.distributions.constraints
    numbers = [[-1.0, 0.0, 0.5], [1.0, 2.0, math.nan]]
    square = [[[1.0, 0.0], [0.6, 0.8]], [[1.0, 0.2], [0.2, 1.0]], [[1.0, 2.0], [2.0, 1.0]]]
    return {
        "boolean": (C.boolean, numbers), "real": (C.real, numbers), "positive": (C.positive, numbers), "nonnegative": (C.nonnegative, numbers),
        "unit interval": (C.unit_interval, numbers), "half open": (C.half_open_interval(0.0, 1.0), numbers),
        "less than": (C.less_than(0.5), numbers), "nonnegative integer": (C.nonnegative_integer, numbers),
        "positive integer": (C.positive_integer, numbers), "integer interval": (C.integer_interval(0, 1), numbers),
        "simplex": (C.simplex, [[0.2, 0.8], [0.3, 0.8], [-0.2, 1.2]]), "one hot": (C.one_hot, [[0.0, 1.0], [1.0, 1.0], [0.5, 0.5]]),
        "multinomial": (C.multinomial(3), [[1.0, 2.0], [2.0, 2.0], [-1.0, 2.0]]), "real vector": (C.real_vector, numbers),
        "lower triangular": (C.lower_triangular, square), "lower cholesky": (C.lower_cholesky, square), "square": (C.square, square),
        "corr cholesky": (C.corr_cholesky, square), "symmetric": (C.symmetric, square[1:]),
        "positive definite": (C.positive_definite, square[1:]), "positive semidefinite": (C.positive_semidefinite, square[1:]),
        "cat": (C.cat([C.real, C.positive], -1, [1, 2]), numbers), "stack": (C.stack([C.positive, C.real], 0), numbers),
        "independent": (C.independent(C.positive, 2), numbers), "mixture": (C.MixtureSameFamilyConstraint(C.interval(0.0, _t(lib, [1.0, 2.0]))), numbers),
    }  # fmt: skip


def constraint_checks(lib):
    """What belongs to every set, and what leads there."""
    rows = {}
    for name, (constraint, values) in _constraints(lib).items():
        row = {
            "check": constraint.check(_t(lib, values)).tolist(),
            "event_dim": constraint.event_dim,
            "discrete": constraint.is_discrete,
        }
        for registry in ("biject_to", "transform_to"):
            try:
                row[registry] = " ".join(repr(getattr(lib.distributions, registry)(constraint)).split())
            except NotImplementedError as error:
                row[registry] = str(error)
        rows[name] = row
    return rows
