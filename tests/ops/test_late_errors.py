"""Operators that find a wrong index while they write: `out=` and the tensor itself stay as they were."""

import pytest

import cresset

X, SRC, ROWS = cresset.zeros(4, 3), cresset.ones(4, 3), cresset.ones(2, 3)
OUTSIDE = cresset.zeros(4, 3, dtype=cresset.int64)
OUTSIDE[3, 1] = 9
ROW_OUTSIDE = cresset.tensor([0, 9])

CALLS = {
    "scatter": (0, OUTSIDE, SRC),
    "scatter value": (0, OUTSIDE, 1.0),
    "scatter_add": (0, OUTSIDE, SRC),
    "scatter_reduce": (0, OUTSIDE, SRC, "sum"),
    "index_add": (0, ROW_OUTSIDE, ROWS),
    "index_copy": (0, ROW_OUTSIDE, ROWS),
    "index_reduce": (0, ROW_OUTSIDE, ROWS, "prod"),
}
WORDS = "out of bounds|out of range"


@pytest.mark.parametrize("name", [*CALLS, "gather"])
@pytest.mark.parametrize("sizes", [(4, 3), (0,)])
def test_out_is_kept(name, sizes):
    out = cresset.full(sizes, 7.0)
    with pytest.raises((RuntimeError, IndexError), match=WORDS):
        getattr(cresset, name.split()[0])(X, *CALLS.get(name, (0, OUTSIDE)), out=out)
    assert out.shape == sizes and (out == 7).all()


@pytest.mark.parametrize("name", CALLS)
def test_self_is_kept(name):
    t = cresset.full((4, 3), 7.0)
    with pytest.raises((RuntimeError, IndexError), match=WORDS):
        getattr(t, name.split()[0] + "_")(*CALLS[name])
    assert (t == 7).all()
