"""Sobol sequences: points that PyTorch 2.13 and SciPy give, the order of calls, errors."""

import hashlib

import cresset
import pytest
from cresset.quasirandom import SobolEngine


def test_first_points():
    assert SobolEngine(3).draw(4).tolist() == [[0, 0, 0], [0.5, 0.5, 0.5], [0.75, 0.25, 0.25], [0.25, 0.75, 0.75]]
    assert repr(SobolEngine(3, scramble=True, seed=7)) == "SobolEngine(dimension=3, scramble=True, seed=7)"


def test_scrambled_points():
    """Recorded from PyTorch."""
    engine = SobolEngine(3, scramble=True, seed=3)
    assert engine.shift.tolist() == [73513868, 241083994, 750744354]
    assert engine.sobolstate[:, 0].tolist() == [659530265, 540231819, 1064791748]
    assert engine.sobolstate[:, 29].tolist() == [1, 809573988, 272140346]


def test_all_dimensions():
    """The digest is that of SciPy's and PyTorch's matrices."""
    state = SobolEngine(SobolEngine.MAXDIM).sobolstate
    text = " ".join(map(str, state[::1000, 7:].flatten().tolist()))
    assert hashlib.sha256(text.encode()).hexdigest() == "a1317d980f6385852b675a1eeb557b23f0e529c5b1a160f35d916d45f3dcc941"


@pytest.mark.parametrize("scramble", [False, True])
def test_order_of_calls_does_not_matter(scramble):
    make = lambda: SobolEngine(5, scramble=scramble, seed=1)  # noqa: E731
    points = make().draw(20)
    engine = make()
    assert cresset.equal(cresset.cat([engine.draw(), engine.draw(6), engine.fast_forward(5).draw(8)]), points[[*range(7), *range(12, 20)]])
    assert cresset.equal(engine.reset().draw_base2(4), points[:16]) and engine.num_generated == 16
    out = cresset.empty(0)
    assert engine.draw(2, out=out) is out and cresset.equal(out, points[16:18])
    assert engine.draw(2, dtype=cresset.float64).dtype == cresset.float64
    assert make().draw(0).shape == (0, 5)


def test_points_are_spread_evenly():
    points = SobolEngine(4, scramble=True, seed=0).draw_base2(10, dtype=cresset.float64)
    for k in range(4):  # every interval of length 1/1024 has one
        assert sorted((points[:, k] * 1024).int().tolist()) == list(range(1024))


def test_errors():
    for dimension in (0, 21202):
        with pytest.raises(ValueError, match=r"Supported range of dimensionality for SobolEngine is \[1, 21201\]"):
            SobolEngine(dimension)
    engine = SobolEngine(1)
    engine.draw(3)
    with pytest.raises(ValueError, match="The balance properties of Sobol' points require n to be a power of 2"):
        engine.draw_base2(2)
