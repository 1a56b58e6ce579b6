"""Special functions at points with known values (special_values.toml), and where they are not finite."""

import math
import tomllib
from pathlib import Path

import cresset
import pytest

VALUES = tomllib.loads((Path(__file__).resolve().parent / "special_values.toml").read_text())
INF, NAN = math.inf, math.nan


def function(name):
    return (
        getattr(cresset.special, name.removeprefix("special_"))
        if name.startswith("special_")
        else getattr(cresset, name)
    )


def call(name, arguments, dtype):
    if name == "polygamma":
        return cresset.polygamma(int(arguments[0]), cresset.tensor(arguments[1], dtype=dtype))
    if name == "mvlgamma":
        return cresset.mvlgamma(cresset.tensor(arguments[0], dtype=dtype), int(arguments[1]))
    return function(name)(*(cresset.tensor(float(a), dtype=dtype) for a in arguments))


@pytest.mark.parametrize("name", VALUES)
def test_known_values(name):
    for *arguments, value in VALUES[name]:
        assert call(name, arguments, cresset.float64).item() == pytest.approx(value, rel=2e-13, abs=1e-14), arguments
        if abs(value) < 1e37 and all(
            float(a) == cresset.tensor(float(a), dtype=cresset.float32).item() for a in arguments
        ):
            assert call(name, arguments, cresset.float32).item() == pytest.approx(value, rel=2e-7, abs=1e-37), arguments


# mpmath, 40 digits: on both sides of where one estimate follows the other, and the last double below one.
@pytest.mark.parametrize(
    "y, value",
    [(1 - 1.192003e-7, 3.7439309077955105), (1 - 2**-23, 3.7439211627767994), (1 - 2**-30, 4.328028275800946), (1 - 2**-53, 5.8635847487551676)],
)  # fmt: skip
def test_erfinv_of_doubles_near_one(y, value):
    assert cresset.erfinv(cresset.tensor([-y], dtype=cresset.float64)).item() == pytest.approx(-value, rel=1e-15)


@pytest.mark.parametrize(
    "name, point, value",
    [
        ("special_bessel_y0", 0, -INF), ("special_bessel_y0", -1, NAN), ("special_bessel_j0", INF, NAN),
        ("special_modified_bessel_k0", 0, INF), ("special_modified_bessel_k0", -1, NAN), ("special_modified_bessel_k1", INF, 0),
        ("special_i0e", INF, 0), ("i0", 800, INF), ("special_i1", -800, -INF), ("special_airy_ai", INF, NAN), ("special_airy_ai", 1e10, 0),
        ("special_spherical_bessel_j0", INF, 0), ("special_erfcx", INF, 0), ("special_erfcx", -27, INF), ("special_ndtr", -INF, 0),
        ("special_ndtri", 0, -INF), ("special_ndtri", 1, INF), ("special_ndtri", 1.5, NAN), ("special_log_ndtr", -INF, -INF),
        ("special_log_ndtr", INF, 0), ("digamma", -1, NAN), ("special_entr", -1, -INF),
    ],
)  # fmt: skip
def test_borders_of_one_argument(name, point, value):
    assert call(name, [point], cresset.float64).item() == pytest.approx(value, nan_ok=True)
    assert math.isnan(call(name, [NAN], cresset.float64).item())


@pytest.mark.parametrize(
    "a, x, lower",
    [
        (0, 0, NAN),
        (0, 1, 1),
        (1, 0, 0),
        (-1, 1, NAN),
        (INF, 1, 0),
        (INF, INF, NAN),
        (1, INF, 1),
        (1, -1, NAN),
        (NAN, 1, NAN),
    ],
)
def test_borders_of_the_incomplete_gamma_functions(a, x, lower):
    assert call("igamma", [a, x], cresset.float64).item() == pytest.approx(lower, nan_ok=True)
    assert call("igammac", [a, x], cresset.float64).item() == pytest.approx(1 - lower, nan_ok=True)


def test_derivatives_that_do_not_exist_raise_in_backward():
    x = cresset.tensor([1.5], dtype=cresset.float64, requires_grad=True)
    for result in (cresset.igamma(x, x.detach()), cresset.igammac(x, x.detach()), cresset.special.zeta(x, x.detach())):
        with pytest.raises(NotImplementedError, match="the derivative for"):
            result.sum().backward()


def test_integers():
    a, b = cresset.tensor([0, -4, 12, 7]), cresset.tensor([0, 6, 18, 0])
    assert cresset.gcd(a, b).tolist() == [0, 2, 6, 7]
    assert cresset.lcm(a, b).tolist() == [0, 12, 36, 0]
    assert cresset.gcd(cresset.tensor([-(2**63)]), cresset.tensor([0])).tolist() == [-(2**63)]
    with pytest.raises(NotImplementedError, match="gcd_cpu"):
        cresset.gcd(cresset.tensor([1.0]), cresset.tensor([2.0]))


def test_parts_of_numbers():
    mantissa, exponent = cresset.frexp(cresset.tensor([0.0, 3.0, -5e-324, INF, NAN], dtype=cresset.float64))
    assert mantissa.tolist()[:4] == [0.0, 0.75, -0.5, INF] and math.isnan(mantissa[4].item())
    assert exponent.tolist() == [0, 2, -1073, 0, 0] and exponent.dtype == cresset.int32
    # 2^200 itself is no float
    assert cresset.ldexp(cresset.tensor([1e-30]), cresset.tensor([200])).item() == pytest.approx(
        1e-30 * 2.0**200, rel=1e-6
    )
    assert cresset.ldexp(cresset.tensor([1, 2]), cresset.tensor([2, -1])).tolist() == [4.0, 1.0]
    zero, infinity = cresset.tensor(0.0), cresset.tensor(float("inf"))
    assert cresset.ldexp(zero, infinity).isnan() and cresset.ldexp(zero + 1, -infinity) == 0  # the product x * 2**exponent


@pytest.mark.parametrize("dtype, digits", [("float16", 11), ("bfloat16", 8), ("float32", 24), ("float64", 53)])
def test_nextafter_steps_by_one_unit_of_the_last_place(dtype, digits):
    t = lambda v: cresset.tensor(v, dtype=getattr(cresset, dtype))  # noqa: E731
    unit = 2.0 ** (1 - digits)
    assert cresset.nextafter(t([1.0, 1.0, -1.0, 2.0]), t([2.0, 0.0, -2.0, 2.0])).tolist() == [
        1 + unit,
        1 - unit / 2,
        -1 - unit,
        2.0,
    ]
    assert cresset.nextafter(t([0.0]), t([-1.0])).item() < 0 < cresset.nextafter(t([0.0]), t([1.0])).item()
    assert math.isnan(cresset.nextafter(t([NAN]), t([1.0])).item()) and math.isnan(
        cresset.nextafter(t([1.0]), t([NAN])).item()
    )


def test_checks():
    one = cresset.ones(2)
    with pytest.raises(RuntimeError, match="does not support negative n"):
        cresset.polygamma(-1, one)
    with pytest.raises(RuntimeError, match="p has to be greater than or equal to 1"):
        cresset.mvlgamma(one, 0)
    with pytest.raises(RuntimeError, match="Expected object of scalar type Float but got scalar type Double"):
        cresset.polar(one, one.double())
    with pytest.raises(RuntimeError, match="only supports floating-point dtypes"):
        cresset.frexp(cresset.tensor([1, 2]))


def test_derivatives_of_the_logarithm_of_the_normal_area_hold_in_both_tails():
    # By mpmath with 50 digits: density over area r, and -r (x + r).
    points = [-2e4, -180.0, -30.0, -5.0, -1.0, 0.0, 1.0, 5.0, 10.0, 30.0, 100.0]
    second = [-1.0, -0.99996914, -0.99889623, -0.96730357, -0.80090233, -0.63661977, -0.37031371, -7.4336019e-6, -7.6945986e-22, -4.4209384e-195, 0.0]
    x = cresset.tensor(points, dtype=cresset.float64, requires_grad=True)
    (slope,) = cresset.autograd.grad(cresset.special.log_ndtr(x).sum(), x, create_graph=True)
    (bend,) = cresset.autograd.grad(slope.sum(), x)
    cresset.testing.assert_close(slope[[1, 5, 9]].detach(), cresset.tensor([180.005555, 0.79788456, 1.473646135e-196], dtype=cresset.float64), rtol=1e-7, atol=0)
    cresset.testing.assert_close(bend, cresset.tensor(second, dtype=cresset.float64), rtol=1e-7, atol=0)
