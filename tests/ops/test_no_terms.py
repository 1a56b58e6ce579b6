"""Products that add up no terms: `beta` counts all the same, in every type and shape."""

import cresset
import pytest

TYPES = [cresset.float32, cresset.float64, cresset.float16, cresset.bfloat16, cresset.int32, cresset.uint8, cresset.complex64]
SHAPES = [(1, 1), (1, 3), (2, 1), (2, 3), (40, 1), (1, 40)]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize(("m", "n"), SHAPES)
@pytest.mark.parametrize(("terms", "alpha"), [(0, 1), (4, 0)])
def test_beta_counts(dtype, m, n, terms, alpha):
    def ones(*size):
        return cresset.ones(size, dtype=dtype)

    start, left, right = ones(m, n) * 11, ones(m, terms), ones(terms, n)
    full = cresset.full((m, n), 33, dtype=dtype)
    given = {"beta": 3, "alpha": alpha}
    found = {
        "addmm": cresset.addmm(start, left, right, **given), "addmm_": start.clone().addmm_(left, right, **given),
        "addmm out": cresset.addmm(start, left, right, **given, out=ones(m, n)), "addbmm": cresset.addbmm(start, left[None], right[None], **given),
        "baddbmm": cresset.baddbmm(start[None], left[None], right[None], **given)[0],
        "transposed": cresset.addmm(start.t(), right.t(), left.t(), **given).t(),
    }  # fmt: skip
    if n == 1:
        found["addmv"] = cresset.addmv(start[:, 0], left, ones(terms), **given)[:, None]
        found["addmv out"] = cresset.addmv(start[:, 0], left, ones(terms), **given, out=ones(m))[:, None]
    for name, result in found.items():
        assert cresset.equal(result, full), name
    nothing = cresset.addmm(start * float("nan") if dtype.is_floating_point else start, left, right, beta=0, alpha=alpha)
    assert not nothing.any()
