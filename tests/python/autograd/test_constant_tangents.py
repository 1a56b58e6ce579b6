"""Forward mode beside constants: the tangent that a constant has not takes no part, so that its zero meets no infinity. Values from PyTorch 2.13."""

import math

import pytest

import cresset
import cresset.autograd.forward_ad as fw

inf, nan = math.inf, math.nan
X = cresset.tensor([1.0, 2.0, 0.0])
Z = cresset.tensor([0.0, inf, nan])
I = cresset.full((3,), inf)
B = cresset.tensor([False, True, True])

CASES = [
    ("x / z", lambda d: d / Z, [inf, 0.0, nan]),
    ("z / x", lambda d: Z / d, [-0.0, -inf, nan]),
    ("div", lambda d: cresset.div(d, Z, rounding_mode=None), [inf, 0.0, nan]),
    ("remainder", lambda d: cresset.remainder(d, Z), [1.0, 1.0, 1.0]),
    ("remainder of bools", lambda d: cresset.remainder(d, B), [1.0, 1.0, 1.0]),
    ("fmod", lambda d: cresset.fmod(d, Z), [1.0, 1.0, 1.0]),
    ("x * inf", lambda d: d * I, [inf, inf, inf]),
    ("inf * x in place", lambda d: (d + 0).mul_(Z), [0.0, inf, nan]),
    ("pow", lambda d: d**I, [inf, inf, nan]),
    ("base of pow", lambda d: I**d, [inf, inf, inf]),
    ("hypot", lambda d: cresset.hypot(d, Z), [1.0, 0.0, nan]),
    ("xlogy", lambda d: cresset.xlogy(d, Z), [-inf, inf, nan]),
    ("addcmul", lambda d: cresset.addcmul(Z, d, I), [inf, inf, inf]),
    ("prelu", lambda d: cresset.nn.functional.prelu(d[None], I)[0], [1.0, 1.0, 1.0]),
    ("copysign", lambda d: cresset.copysign(d, Z), [1.0, 1.0, 0.0]),
]


@pytest.mark.parametrize("call, expected", [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_tangents_beside_constants(call, expected):
    with fw.dual_level():
        tangent = fw.unpack_dual(call(fw.make_dual(X, cresset.ones(3)))).tangent
    assert cresset.equal(cresset.nan_to_num(tangent, 7.0, 8.0, -8.0), cresset.nan_to_num(cresset.tensor(expected), 7.0, 8.0, -8.0)), tangent


def test_products_with_a_constant():
    d, c = cresset.ones(2, 2), cresset.full((2, 2), inf)
    for product in (lambda a, b: a @ b, lambda a, b: cresset.bmm(a[None], b[None])[0], lambda a, b: cresset.addmm(b, a, b), lambda a, b: cresset.mv(a, b[0])):
        with fw.dual_level():
            assert (fw.unpack_dual(product(fw.make_dual(d, d), c)).tangent == inf).all()


def test_sizes_and_types_of_sums():
    with fw.dual_level():
        d = fw.make_dual(cresset.ones(3), cresset.ones(3))
        t = fw.unpack_dual(d + cresset.ones(2, 3, dtype=cresset.float64)).tangent
        assert t.shape == (2, 3) and t.dtype == cresset.float64
        assert fw.unpack_dual(d + cresset.tensor(1.0, dtype=cresset.float64)).tangent.dtype == cresset.float32
        assert fw.unpack_dual(d - cresset.ones(3) * 1j).tangent.dtype == cresset.complex64


def test_a_result_of_the_constant_alone_has_no_tangent():
    with fw.dual_level():
        d = fw.make_dual(X, cresset.ones(3))
        assert fw.unpack_dual(cresset.copysign(I, d)).tangent is None
        assert fw.unpack_dual((d + 0).copy_(I)).tangent.eq(0).all()


def test_recorded_products_stay_in_the_graph():
    """The gradient of a tangent for a primal that it does not depend on is zeros, as with a product with zeros."""
    x, c = cresset.ones(3, requires_grad=True), cresset.tensor([2.0, inf, 1.0])
    with fw.dual_level():
        d = fw.make_dual(x, cresset.ones(3))
        for call in (lambda: d * c, lambda: d / c, lambda: cresset.dot(d, c.nan_to_num(0, 1))):
            tangent = fw.unpack_dual(call()).tangent
            assert cresset.autograd.grad(tangent.sum(), x, allow_unused=True)[0].eq(0).all()
