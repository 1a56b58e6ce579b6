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
    assert cresset.poisson(cresset.tensor([inf])).isnan().all() and cresset.binomial(cresset.tensor([nan, inf]), cresset.tensor(0.3)).isnan().all()
    for rate in (-1.0, nan):
        with pytest.raises(RuntimeError, match="invalid Poisson rate"):
            cresset.poisson(cresset.tensor([rate]))
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


@pytest.mark.parametrize(
    "shape, dtype, recorded",
    [
        (2.5, "float64", [1.957693464893112, 3.542066168128252, 5.729987281456627, 1.0983928668725997]),
        (0.5, "float32", [0.45486846566200256, 0.029085708782076836, 0.07878677546977997, 0.5343251824378967]),
    ],
)
def test_gamma_numbers_have_the_recorded_stream(shape, dtype, recorded):
    cresset.manual_seed(7)
    assert cresset._standard_gamma(cresset.full((4,), shape, dtype=getattr(cresset, dtype))).tolist() == recorded


def test_dirichlet_numbers_have_the_recorded_stream():
    cresset.manual_seed(7)
    recorded = [
        [0.0681196078658104, 0.5858095288276672, 0.34607088565826416],
        [0.6814521551132202, 2.867832336050924e-07, 0.3185475468635559],
    ]
    assert cresset._sample_dirichlet(cresset.tensor([[0.5, 1.0, 2.0], [3.0, 0.1, 1.0]])).tolist() == recorded


def test_gamma_numbers_move_with_the_shape():
    # (a, x, dx/da at a fixed quantile): differences of SciPy's inverse of the incomplete gamma function
    rows = [(0.1, 3.5860860184109674e-06, 0.0004344448794679626), (0.7, 0.012163199432408395, 0.08089079231974385),
            (1.0, 0.6931471805599455, 0.9680448304433726), (2.5, 4.618178449890562, 1.4299107264988582),
            (30.0, 25.32030896555818, 0.9227083544852317), (1000.0, 1075.032832086435, 1.0367845443223207)]  # fmt: skip
    a, x, slope = cresset.tensor(rows, dtype=cresset.float64).unbind(1)
    assert cresset.allclose(cresset._standard_gamma_grad(a, x), slope, rtol=1e-6)
    cresset.manual_seed(7)
    shape = cresset.full((5,), 1.5, dtype=cresset.float64, requires_grad=True)
    numbers = cresset._standard_gamma(shape)
    assert cresset.equal(
        cresset.autograd.grad(numbers.sum(), shape)[0], cresset._standard_gamma_grad(shape.detach(), numbers.detach())
    )


def test_dirichlet_numbers_move_with_alpha():
    # (x, alpha, total, dx/dalpha / (1 - x)): differences of SciPy's inverse of the incomplete beta function
    rows = [(0.2061073738537634, 0.5, 1.0, 1.0292337170053694), (0.2928932188134525, 1.0, 3.0, 0.406866807463369),
            (0.9682047389059713, 3.0, 3.7, 0.3433945513435282), (0.21814865442741732, 20.0, 70.0, 0.012604854026382211)]  # fmt: skip
    x, alpha, total, slope = cresset.tensor(rows, dtype=cresset.float64).unbind(1)
    assert cresset.allclose(cresset._dirichlet_grad(x, alpha, total), slope, rtol=1e-6)


def test_gamma_and_dirichlet_numbers_at_the_borders():
    tiny = 1.1754943508222875e-38
    numbers = cresset._standard_gamma(cresset.tensor([0.0, -1.0, float("nan"), float("inf")]))
    assert numbers.tolist() == [tiny, tiny, tiny, float("inf")]
    assert cresset._sample_dirichlet(cresset.zeros(1, 2)).tolist() == [[0.5, 0.5]]
    assert cresset._sample_dirichlet(cresset.zeros(2, 0)).shape == (2, 0)
    assert cresset._standard_gamma_grad(cresset.tensor([1.0, 0.0]), cresset.tensor([0.0, 1.0])).isnan().tolist() == [
        False,
        True,
    ]
    with pytest.raises(NotImplementedError, match="gamma_cpu"):
        cresset._standard_gamma(cresset.tensor([1]))


def test_normal_into_a_tensor():
    out = cresset.zeros(0)
    cresset.manual_seed(3)
    assert cresset.ops.aten.normal.out(cresset.ones(3), 1.0, 2.0, out=out) is out
    cresset.manual_seed(3)
    assert cresset.equal(out, cresset.zeros(3).normal_(1.0, 2.0))


def test_unsigned_numbers_up_to_the_last():  # the numbers are PyTorch 2.13's
    for dtype, numbers in ((cresset.uint16, [42092, 6324, 57923, 48523, 1586]), (cresset.uint32, [2669420035, 2354058110, 1770528641, 344194071, 1417377426])):
        cresset.manual_seed(3)
        assert getattr(cresset.ops.aten.random, "from")(cresset.zeros(5, dtype=dtype), 1, None).tolist() == numbers
