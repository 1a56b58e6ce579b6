"""The functions around the default generator."""

import cresset
import pytest


def test_manual_seed():
    generator = cresset.manual_seed(7)
    assert generator is cresset.default_generator and cresset.initial_seed() == 7
    a = cresset.rand(3)
    cresset.manual_seed(7)
    assert cresset.equal(cresset.rand(3), a)


def test_states():
    state = cresset.get_rng_state()
    assert state.dtype == cresset.uint8 and state.dim() == 1
    a = cresset.randn(5)
    cresset.set_rng_state(state)
    assert cresset.equal(cresset.randn(5), a)


def test_seed_is_fresh():
    first, second = cresset.seed(), cresset.seed()
    assert first != second and cresset.initial_seed() == second


def test_fork():
    cresset.manual_seed(1)
    with cresset.random.fork_rng():
        inside = cresset.rand(1)
    assert cresset.equal(cresset.rand(1), inside)
    cresset.manual_seed(1)
    with cresset.random.fork_rng(enabled=False):
        cresset.rand(1)
    assert not cresset.equal(cresset.rand(1), inside)


@pytest.mark.parametrize(
    "rate, recorded",
    [(3.0, [3, 6, 1, 0, 2, 6, 6, 2]), (25.0, [21, 31, 22, 29, 15, 19, 27, 32])],
)
def test_poisson_has_the_recorded_stream(rate, recorded):
    cresset.manual_seed(7)
    assert cresset.poisson(cresset.full((8,), rate)).tolist() == recorded


@pytest.mark.parametrize(
    "count, probability, recorded",
    [
        (5.0, 0.3, [1, 4, 3, 0, 0, 0, 0, 1]),
        (100.0, 0.5, [47, 56, 47, 54, 40, 44, 52, 57]),
        (1000.0, 0.9, [906, 888, 884, 906, 892, 918, 910, 913]),
    ],
)
def test_binomial_has_the_recorded_stream(count, probability, recorded):
    cresset.manual_seed(7)
    assert cresset.binomial(cresset.full((8,), count), cresset.full((8,), probability)).tolist() == recorded


def test_counts_at_the_borders():
    nan, inf = float("nan"), float("inf")
    assert cresset.binomial(cresset.tensor([0.0, 5.0, 5.0]), cresset.tensor([0.5, 0.0, 1.0])).tolist() == [0, 0, 5]
    # these must end, whatever they give
    assert (
        cresset.poisson(cresset.tensor([nan, inf])).isnan().all()
        and cresset.binomial(cresset.tensor([nan, inf]), cresset.tensor(0.3)).isnan().all()
    )
    with pytest.raises(RuntimeError, match="invalid Poisson rate"):
        cresset.poisson(cresset.tensor([-1.0]))
    with pytest.raises(ValueError, match="binomial only supports floating-point"):
        cresset.binomial(cresset.tensor([1]), cresset.tensor([0.5]))


@pytest.mark.parametrize(
    "name, arguments",
    [
        ("uniform", (0.0, 2.0)),
        ("exponential", (1.5,)),
        ("geometric", (0.3,)),
        ("cauchy", ()),
        ("log_normal", ()),
        ("random", ()),
    ],
)
def test_functional_forms_are_the_fills_of_a_copy(name, arguments):
    x = cresset.zeros(3, 4)
    cresset.manual_seed(3)
    result = getattr(cresset.ops.aten, name)(x, *arguments)
    cresset.manual_seed(3)
    assert cresset.equal(result, getattr(cresset.zeros(3, 4), name + "_")(*arguments)) and not x.any()


def test_arguments_of_the_distributions_are_checked():
    x = cresset.zeros(3)
    for call, words in (
        (lambda: cresset.normal(x, -1.0), "normal expects std >= 0.0"),
        (lambda: cresset.normal(0.0, cresset.tensor([-1.0])), "all elements of std >= 0.0"),
        (lambda: cresset.ops.aten.uniform(x, 3, -1), r"expects to return a \[from, to\) range"),
        (lambda: cresset.ops.aten.exponential(x, -1.0), "expects lambda > 0.0"),
    ):
        with pytest.raises(RuntimeError, match=words):
            call()
