"""What distributions refuse and warn of; shared by the recorder and the tests."""

import warnings

# Each is an expression of D (distributions), T (transforms), C (constraints), one = [1, 2], eye = a 2 x 2 identity, n = a number, nan.
CASES = """
D.Normal(0., -one)
D.Normal(0., 1.).log_prob(nan)
D.Normal(0., 1.).log_prob('a')
D.Normal(0., 1.).cdf(1.)
D.Normal(one, 1.).log_prob(lib.ones(3))
D.Normal('a', 1.)
D.Normal(one, lib.ones(3))
D.Normal(0., 1.).enumerate_support()
D.Normal(0., 1.)._extended_shape([2])
D.Normal(one, 1.).expand((3,))
D.Normal(0., 1.).sample_n(3).shape
D.Dirichlet(one).log_prob(n)
D.Dirichlet(one).log_prob(lib.ones(3))
D.Dirichlet(n)
D.Bernoulli()
D.Bernoulli(.5, logits=.2)
D.Bernoulli(1.5)
D.Bernoulli(one * .3).rsample()
D.Beta(-1., 1.)
D.Categorical()
D.Categorical(n)
D.Categorical(logits=n)
D.Categorical(one).log_prob(lib.tensor(2))
D.Categorical(one).log_prob(lib.tensor(.5))
D.Categorical(logits=nan.reshape(1))
D.ContinuousBernoulli()
D.ContinuousBernoulli(.3).mode
D.ContinuousBernoulli(1.5, validate_args=True)
D.Geometric(0.)
D.Geometric()
D.Binomial()
D.Binomial(one, .3).enumerate_support()
D.Binomial(one, .3).entropy()
D.Binomial(3, .3).log_prob(lib.tensor(4.))
D.Binomial(-1, .3)
D.NegativeBinomial(1)
D.NegativeBinomial(3, 1.)
D.NegativeBinomial(3, one * .2).entropy()
D.Multinomial(lib.tensor([1, 2]), one)
D.Multinomial(3)
D.Multinomial(3, one).log_prob(lib.tensor([2., 2.]))
D.MultivariateNormal(n, eye)
D.MultivariateNormal(one)
D.MultivariateNormal(one, eye, eye)
D.MultivariateNormal(one, one)
D.MultivariateNormal(one, scale_tril=one)
D.MultivariateNormal(one, precision_matrix=one)
D.MultivariateNormal(one, -eye)
D.MultivariateNormal(one, scale_tril=lib.ones(2, 2))
D.LowRankMultivariateNormal(n, one, one)
D.LowRankMultivariateNormal(one, one, one)
D.LowRankMultivariateNormal(one, lib.ones(3, 1), one)
D.LowRankMultivariateNormal(one, lib.ones(2, 1), lib.ones(3))
D.LowRankMultivariateNormal(lib.ones(3, 2), lib.ones(4, 2, 1), one)
D.LKJCholesky(1)
D.LKJCholesky(3, 1.).mean
D.LKJCholesky(3, 1.).log_prob(lib.eye(3) * 2)
D.Uniform(1., 0.)
D.Uniform(1., 0., validate_args=False)
D.Uniform(0., 1.).log_prob(lib.tensor(2.))
D.Uniform(0., 1.).cdf(lib.tensor(-1.))
D.Independent(D.Normal(0., 1.), 1)
D.Independent(D.Bernoulli(one * .2), 1).enumerate_support()
D.Wishart(1., eye)
D.Wishart(one, eye)
D.Wishart(3.)
D.Wishart(3., one)
D.Wishart(1.5, eye)
D.Wishart(3., eye).log_prob(-eye)
D.MixtureSameFamily(1, D.Normal(0., 1.))
D.MixtureSameFamily(D.Categorical(one), 1)
D.MixtureSameFamily(D.Categorical(lib.ones(3)), D.Normal(0., one))
D.MixtureSameFamily(D.Categorical(lib.ones(3, 2)), D.Normal(0., lib.ones(4, 2)))
D.MixtureSameFamily(D.Categorical(one), D.Normal(0., one)).rsample()
D.MixtureSameFamily(D.Categorical(one), D.Normal(0., one))
D.TransformedDistribution(D.Normal(0., 1.), [1])
D.TransformedDistribution(D.Normal(0., 1.), 1)
D.TransformedDistribution(D.Normal(0., 1.), T.StickBreakingTransform())
D.TransformedDistribution(D.Normal(0., one), [T.ExpTransform(), T.AffineTransform(1., 2.)]).support
D.TransformedDistribution(D.Normal(0., 1.), T.AffineTransform(one, one)).batch_shape
D.TransformedDistribution(D.Normal(0., lib.ones(3)), T.AffineTransform(one, one))
D.Distribution(validate_args=False).sample()
D.Distribution(validate_args=False).mean
D.Distribution(validate_args=False).mode
D.Distribution.set_default_validate_args(3)
D.ExponentialFamily(validate_args=False).entropy()
D.OneHotCategorical(one).log_prob(one)
D.kl_divergence(D.Normal(0., 1.), D.Cauchy(0., 1.))
D.kl_divergence(D.Independent(D.Normal(one, 1.), 1), D.Independent(D.Normal(one, 1.), 0))
D.kl_divergence(D.Binomial(2, .3), D.Binomial(3, .3))
D.kl_divergence(D.LogNormal(0., 1.), D.TransformedDistribution(D.Normal(0., 1.), T.TanhTransform()))
D.kl_divergence(D.MultivariateNormal(lib.ones(3), lib.eye(3)), D.MultivariateNormal(one, eye))
D.kl_divergence(D.LowRankMultivariateNormal(lib.ones(3), lib.ones(3, 1), lib.ones(3)), D.MultivariateNormal(one, eye))
D.Poisson(-1.)
D.RelaxedBernoulli(n)
D.RelaxedOneHotCategorical(n)
D.RelaxedOneHotCategorical(n, one).mean
D.HalfNormal(1.).log_prob(lib.tensor(-1.))
D.HalfCauchy(1., validate_args=False).log_prob(lib.tensor(-1.))
D.Pareto(1., 2.).log_prob(lib.tensor(.5))
D.VonMises(n, n).cdf(n)
D.GeneralizedPareto(0., 1., .1).log_prob(lib.tensor(-1.))
D.biject_to(C.dependent)
D.biject_to(C.lower_cholesky)
D.biject_to.register(int, len)
C.dependent.check(one)
C.dependent.is_discrete
C.dependent.event_dim
C.dependent(is_discrete=True).is_discrete
C.Constraint().check(one)
C.independent(C.real, 1).check(n)
C.independent(C.real, 1.5)
C.cat([1])
C.cat([C.real], lengths=[1, 2])
C.MixtureSameFamilyConstraint(1)
C.is_dependent(D.Binomial.support)
C.is_dependent(C.real)
T.Transform(cache_size=2)
T.Transform()(one)
T.Transform().inv(one)
T.Transform().sign
T.AbsTransform().log_abs_det_jacobian(one, one)
T.SoftmaxTransform().log_abs_det_jacobian(one, one)
T.LowerCholeskyTransform().log_abs_det_jacobian(eye, eye)
T.ReshapeTransform((2, 3), (5,))
T.ReshapeTransform((2, 3), (6,)).forward_shape((5,))
T.ReshapeTransform((2, 3), (6,)).forward_shape((3, 2))
T.ReshapeTransform((2, 3), (6,)).event_dim
T.ReshapeTransform((2, 3), (6,))(lib.ones(5))
T.CatTransform([1])
T.CatTransform([T.ExpTransform(), T.AbsTransform()], 0, [2, 1])(lib.ones(4))
T.CatTransform([T.ExpTransform(), T.AbsTransform()], 0, [2])
T.StackTransform([1])
T.StackTransform([T.ExpTransform(), T.AbsTransform()])(lib.ones(3))
T.StackTransform([T.ExpTransform(), T.AbsTransform()], 3)(lib.ones(3))
T.IndependentTransform(T.ExpTransform(), 1)(n)
T.IndependentTransform(T.ExpTransform(), 1).inv(n)
T.CorrCholeskyTransform().forward_shape((5,))
T.CorrCholeskyTransform().inverse_shape((5, 6))
T.CorrCholeskyTransform().forward_shape(())
T.CorrCholeskyTransform().event_dim
T.StickBreakingTransform().forward_shape(())
T.ExpTransform() == T.ExpTransform()
T.ExpTransform() == T.TanhTransform()
T.ExpTransform().inv == T.ExpTransform().inv
T.AffineTransform(0, 1) == T.AffineTransform(0, 1)
T.AffineTransform(0, one) == T.AffineTransform(0, one)
T.AffineTransform(0, one) == T.AffineTransform(0, 2 * one)
T.PowerTransform(one) == T.PowerTransform(one)
T.StickBreakingTransform() == T.StickBreakingTransform()
T.identity_transform == T.ComposeTransform([])
T.ComposeTransform([T.ExpTransform(), T.TanhTransform()]) == T.ComposeTransform([T.ExpTransform(), T.TanhTransform()])
T.ComposeTransform([T.ExpTransform()]).with_cache(1).parts[0]._cache_size
T.ExpTransform().inv.with_cache(1)._inv
hash(T.ExpTransform())
U.broadcast_all('a')
U.broadcast_all(1, 2.)
U.broadcast_all(1., one.double())
U.broadcast_all(1.5, lib.tensor(2))
U.clamp_probs(lib.tensor([0., 1.]))
U.vec_to_tril_matrix(lib.arange(6.))
U.vec_to_tril_matrix(lib.arange(1., 9.), 1)
U.vec_to_tril_matrix(lib.arange(3.), -1)
U.tril_matrix_to_vec(lib.arange(9.).reshape(3, 3), 1)
U.tril_matrix_to_vec(lib.ones(3, 3), 5)
U.vec_to_tril_matrix(lib.ones(3), 5)
""".strip().splitlines()


def answer(lib, case):
    """The error, or the result, and the warnings of one expression."""
    D = lib.distributions
    names = {
        "D": D,
        "T": D.transforms,
        "C": D.constraints,
        "U": D.utils,
        "lib": lib,
        "one": lib.tensor([1.0, 2.0]),
        "eye": lib.eye(2),
    }
    names |= {"n": lib.tensor(1.0), "nan": lib.tensor(float("nan"))}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = f"= {eval(case, names)!r}"
        except Exception as error:  # noqa: BLE001
            found = f"{type(error).__name__}: {error}"
    own = (
        f"{w.category.__name__}: {w.message}"
        for w in caught
        if "deprecated" not in str(w.message) or "sample_n" in case
    )
    return "\n".join([found, *own]).replace("cresset.", "torch.")
