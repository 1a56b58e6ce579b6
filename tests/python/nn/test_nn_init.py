"""Initial values: ranges, fans, errors, and that no gradient is recorded."""

import math

import cresset
import pytest
from cresset.nn import init


def test_fans():
    assert init._calculate_fan_in_and_fan_out(cresset.empty(3, 5)) == (5, 3)
    assert init._calculate_fan_in_and_fan_out(cresset.empty(4, 6, 2, 3)) == (36, 24)
    with pytest.raises(ValueError, match="can not be computed for tensor with fewer than 2 dimensions"):
        init.xavier_uniform_(cresset.empty(3))
    with pytest.raises(ValueError, match="Mode x not supported"):
        init.kaiming_normal_(cresset.empty(3, 3), mode="x")


def test_gains():
    for name in ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose2d", "sigmoid"):
        assert init.calculate_gain(name) == 1
    assert (
        init.calculate_gain("tanh") == 5 / 3
        and init.calculate_gain("relu") == math.sqrt(2)
        and init.calculate_gain("selu") == 0.75
    )
    assert init.calculate_gain("leaky_relu") == math.sqrt(2 / (1 + 0.01**2))
    assert init.calculate_gain("leaky_relu", 0.2) == math.sqrt(2 / (1 + 0.2**2))
    with pytest.raises(ValueError, match="Unsupported nonlinearity x"):
        init.calculate_gain("x")
    with pytest.raises(ValueError, match="negative_slope True not a valid number"):
        init.calculate_gain("leaky_relu", True)


def test_constant_fills():
    t = cresset.empty(2, 3)
    assert init.constant_(t, 2.5) is t and t.tolist() == [[2.5] * 3] * 2
    assert init.ones_(t).tolist() == [[1.0] * 3] * 2 and init.zeros_(t).tolist() == [[0.0] * 3] * 2
    assert init.eye_(t).tolist() == [[1, 0, 0], [0, 1, 0]]
    with pytest.raises(ValueError, match="Only tensors with 2 dimensions"):
        init.eye_(cresset.empty(2))


def test_dirac():
    w = init.dirac_(cresset.empty(4, 2, 3), groups=2)
    assert w[:, :, 1].tolist() == [[1, 0], [0, 1], [1, 0], [0, 1]] and w.sum().item() == 4
    assert init.dirac_(cresset.empty(2, 2, 3, 3))[0, 0, 1, 1].item() == 1
    with pytest.raises(ValueError, match="Only tensors with 3, 4, or 5 dimensions"):
        init.dirac_(cresset.empty(2, 2))
    with pytest.raises(ValueError, match="dim 0 must be divisible by groups"):
        init.dirac_(cresset.empty(3, 2, 3), 2)


def moments(t):
    return t.mean().item(), t.std().item()


@pytest.mark.parametrize(
    "fill, std, bound",
    [
        (lambda t: init.uniform_(t, -3, 3), math.sqrt(3), 3),
        (lambda t: init.normal_(t, 0, 2), 2, None),
        (lambda t: init.xavier_uniform_(t, 2), 2 * math.sqrt(2 / 300), 2 * math.sqrt(6 / 300)),
        (lambda t: init.xavier_normal_(t), math.sqrt(2 / 300), None),
        (lambda t: init.kaiming_uniform_(t, nonlinearity="relu"), math.sqrt(2 / 200), math.sqrt(6 / 200)),
        (lambda t: init.kaiming_normal_(t, mode="fan_out", nonlinearity="relu"), math.sqrt(2 / 100), None),
        (lambda t: init.trunc_normal_(t, std=1.0, a=-10, b=10), 1, 10),
        (lambda t: init.trunc_normal_(t, std=1.0, a=-0.1, b=0.1), 0.2 / math.sqrt(12), 0.1),
    ],
)
def test_distributions(fill, std, bound):
    cresset.manual_seed(0)
    t = cresset.empty(100, 200, requires_grad=True)
    assert fill(t) is t
    mean, have = moments(t.detach())
    assert abs(mean) < 0.05 * std and have == pytest.approx(std, rel=0.05)
    if bound is not None:
        assert t.abs().max().item() <= bound
    assert t.is_leaf and t.grad_fn is None


def test_trunc_normal_warns_far_from_the_mean():
    with pytest.warns(UserWarning, match="mean is more than 2 std from"):
        init.trunc_normal_(cresset.empty(3), mean=10.0)


def test_generator():
    g, h = cresset.Generator().manual_seed(5), cresset.Generator().manual_seed(5)
    state = cresset.get_rng_state()
    for fill in (init.uniform_, init.normal_, init.xavier_uniform_, init.kaiming_normal_, init.trunc_normal_):
        assert cresset.equal(fill(cresset.empty(3, 4), generator=g), fill(cresset.empty(3, 4), generator=h))
    assert cresset.equal(cresset.get_rng_state(), state)


def test_empty_tensors_warn():
    for fill in (init.kaiming_uniform_, init.kaiming_normal_):
        with pytest.warns(UserWarning, match="Initializing zero-element tensors is a no-op"):
            fill(cresset.empty(0, 2))


def test_sparse():
    cresset.manual_seed(0)
    t = init.sparse_(cresset.empty(10, 4), 0.25)
    assert (t == 0).sum(0).tolist() == [3, 3, 3, 3]
    with pytest.raises(ValueError, match="Only tensors with 2 dimensions"):
        init.sparse_(cresset.empty(3), 0.1)


def test_older_names_warn_and_work():
    with pytest.warns(FutureWarning, match="deprecated in favor of `nn.init.constant_`"):
        assert init.constant(cresset.empty(1), 2.0).item() == 2.0


@pytest.mark.parametrize(
    ("arguments", "want"),
    [
        ((0, 1, -2, 2), [0.6613521575927734, 0.266924113035202, 0.06167725846171379, 0.6213173270225525]),
        ((0, 1, -0.5, 0.5), [-0.4519, 0.2669, 0.0617, 0.3817]),  # by drawing again
        ((0, 1, -0.38, 0.38), [0.1958, -0.1677, -0.0737, 0.1784]),  # by the density
        ((0, 1, 1.9, 5), [2.9533, 2.0377, 1.9762, 2.2877]),
        ((5, 1, -2, 2), [1.0305, 1.8378, 1.7483, 1.4925]),
    ],
)
@pytest.mark.filterwarnings("ignore:mean is more than 2 std")
def test_numbers_of_trunc_normal(arguments, want):
    """What PyTorch 2.13 draws for this seed."""
    cresset.manual_seed(1)
    assert init.trunc_normal_(cresset.empty(4), *arguments).tolist() == pytest.approx(want, abs=6e-5)


@pytest.mark.parametrize(
    ("tensor", "arguments", "want"),
    [
        (lambda: cresset.empty(40)[::2], (0, 1, -2, 2), [0.66135, 0.26692, -0.89229, -0.12325]),
        (lambda: cresset.empty(40)[::2], (0, 1, -0.38, 0.38), [0.1958, -0.16772, 0.1054, 0.11825]),
        (lambda: cresset.empty(20, dtype=cresset.bfloat16), (0, 1, 2, 3), [2.203125, 2.28125, 2.015625, 2.34375]),
    ],
)
def test_trunc_normal_draws_where_and_as_the_tensor_is(tensor, arguments, want):
    """What PyTorch 2.13 draws for this seed: with steps between elements numbers come one by one, and small types round first."""
    cresset.manual_seed(1)
    assert init.trunc_normal_(tensor(), *arguments)[[0, 1, 10, 19]].tolist() == pytest.approx(want, abs=1e-5)


def test_trunc_normal_ends():
    assert init.trunc_normal_(cresset.empty(3, device="meta")).is_meta and init.trunc_normal_(cresset.empty(0)).numel() == 0
    assert (init.trunc_normal_(cresset.empty(50), a=1.9, b=1e30) >= 1.9).all()
    half = init.trunc_normal_(cresset.empty(1000, dtype=cresset.float16), a=-0.1, b=0.1)
    assert half.dtype == cresset.float16 and half.abs().max() <= 0.1


def test_what_goes_through_torch_function():
    """PyTorch 2.13: four functions are asked themselves, the others call methods of the tensor."""

    class Asked:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__

    init = cresset.nn.init
    for name in ("uniform_", "normal_", "kaiming_uniform_"):
        assert getattr(init, name)(Asked()) == name
    assert init.constant_(Asked(), 1.0) == "constant_"
    for name in ("ones_", "zeros_", "eye_", "dirac_", "xavier_uniform_", "xavier_normal_", "kaiming_normal_", "orthogonal_", "trunc_normal_"):
        with pytest.raises(AttributeError):
            getattr(init, name)(Asked())
