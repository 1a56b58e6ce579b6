"""How gamma and beta numbers move with their shapes: against values of fifty digits, also for tiny shapes and far tails."""

import pytest

import cresset

GAMMA = [  # shape, number, d number / d shape
    (0.0001, 1e-30, 6.850050160630704e-25), (0.0061, 1.4e-68, 3.5728020204887764e-64), (0.01, 0.5, 46.67927940515068),
    (0.3, 1e-08, 6.083830000466268e-07), (0.5, 0.2, 0.7940505663308434), (0.9, 0.95, 1.2257967785923494),
    (1.3, 1.05, 1.0154373383712683), (3.0, 0.02, 0.03463562751219009), (40.0, 0.9, 0.08758433214781167),
    (2.5, 3.1, 1.1879638452119297), (50.0, 47.0, 0.9726183673205969), (900.0, 1000.0, 1.053800219254576),
]  # fmt: skip
DIRICHLET = [  # number, its shape, sum of all shapes, slope / (1 - number)
    (1e-20, 0.01, 0.03, 7.935307082263099e-17), (0.2, 0.5, 1.2, 0.9107283754473567), (0.4, 0.7, 0.72, 1.496285490073452),
    (0.9, 0.02, 5.0, 10.250212499247176), (0.97, 3.0, 3.4, 0.3612013407607508), (0.5, 2.0, 4.0, 0.2954314537066302),
    (0.3, 12.0, 40.0, 0.025562460236596276), (0.7, 40.0, 60.0, 0.017244765527487466), (1e-06, 4.0, 9.0, 3.2952526585641553e-06),
    (0.999, 0.3, 0.9, 4.576699612868939), (0.55, 60.0, 110.0, 0.009181947838772965),
]  # fmt: skip


def tensor(values):
    return cresset.tensor(values, dtype=cresset.float64)


@pytest.mark.parametrize("shape, number, slope", GAMMA)
def test_gamma_slope(shape, number, slope):
    found = cresset.ops.aten._standard_gamma_grad(tensor([shape]), tensor([number])).item()
    assert found == pytest.approx(slope, rel=2e-9)


@pytest.mark.parametrize("number, shape, total, slope", DIRICHLET)
def test_dirichlet_slope(number, shape, total, slope):
    found = cresset.ops.aten._dirichlet_grad(tensor([number]), tensor([shape]), tensor([total])).item()
    assert found == pytest.approx(slope, rel=2e-9)


FILLS = {
    "bernoulli_.float": lambda t: t.bernoulli_(0.5), "bernoulli_.Tensor": lambda t: t.bernoulli_(cresset.full((3,), 0.5)),
    "bernoulli_ of itself": lambda t: t.bernoulli_(t), "cauchy_": lambda t: t.cauchy_(), "exponential_": lambda t: t.exponential_(),
    "geometric_": lambda t: t.geometric_(0.5), "log_normal_": lambda t: t.log_normal_(), "normal_": lambda t: t.normal_(),
    "random_": lambda t: t.random_(), "random_.to": lambda t: t.random_(5), "random_.from": lambda t: t.random_(1, 5), "uniform_": lambda t: t.uniform_(),
}  # fmt: skip


@pytest.mark.parametrize("name", FILLS)
def test_a_fill_forgets_what_was_there(name):
    """Both derivatives of what a fill wrote are zero, whatever the memory held."""
    fill, start = FILLS[name], cresset.full((3,), 0.5)
    with cresset.autograd.forward_ad.dual_level():
        dual = cresset.autograd.forward_ad.make_dual(start, cresset.ones(3)).clone()
        fill(dual)
        assert cresset.autograd.forward_ad.unpack_dual(dual).tangent.tolist() == [0.0] * 3
    assert cresset.func.jvp(lambda t: fill(t.clone()), (start,), (cresset.ones(3),))[1].tolist() == [0.0] * 3
    leaf = start.clone().requires_grad_()
    fill(leaf.clone()).sum().backward()
    assert leaf.grad.tolist() == [0.0] * 3
