"""Arithmetic of numbers in scripts at its edges, where PyTorch 2.13 raises or keeps the sign of a zero; interpreted and in a hot loop."""

import math

import pytest

import cresset


def compiled(expression, kind_a, kind_b):
    return cresset.jit.CompilationUnit(f"def f(a: {kind_a}, b: {kind_b}):\n    return {expression}\n").f


KINDS = [("int", "int"), ("float", "float"), ("int", "float"), ("float", "int")]


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("expression", ["a ** b", "pow(a, b)", "math.pow(a, b)"])
def test_zero_has_no_negative_power(expression, kinds):
    f = compiled(expression, *kinds)
    a, b = (0 if kinds[0] == "int" else 0.0), (-2 if kinds[1] == "int" else -2.0)
    with pytest.raises(RuntimeError, match="0.0 cannot be raised to a negative power"):
        f(a, b)
    assert f(a, -b) == 0 and f(a, 0 * b) == 1 and f(a + 2, b) == 0.25


def test_zero_has_no_negative_power_in_a_loop():
    unit = cresset.jit.CompilationUnit("""
def f(n: int, b: float):
    total = 0.0
    for i in range(n):
        total = total + float(n - 1 - i) ** b
    return total
""")
    assert unit.f(2000, 2.0) == sum(float(i) ** 2 for i in range(2000))
    with pytest.raises(RuntimeError, match="0.0 cannot be raised to a negative power"):
        unit.f(2000, -1.0)


@pytest.mark.parametrize("kinds", [k for k in KINDS if k != ("int", "int")])
def test_a_remainder_of_zero_has_the_divisors_sign(kinds):
    a, b = (0 if kinds[0] == "int" else 0.0), (-2 if kinds[1] == "int" else -2.0)
    assert math.copysign(1, compiled("a % b", *kinds)(a, b)) == -1
    assert math.copysign(1, compiled("a % b", *kinds)(a, -b)) == 1


@pytest.mark.parametrize("kinds", [k for k in KINDS if k != ("int", "int")])
def test_divmod_of_floats(kinds):
    f = compiled("divmod(a, b)", *kinds)
    one = 1 if kinds[0] == "int" else 1.0
    with pytest.raises(RuntimeError, match="ZeroDivisionError: float divmod()"):
        f(one, 0 if kinds[1] == "int" else 0.0)
    assert f(7 * one, -2 if kinds[1] == "int" else -2.0) == (-4.0, -1.0)
    assert f(-8 * one, 3 if kinds[1] == "int" else 3.0) == (-3.0, 1.0)
