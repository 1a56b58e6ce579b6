"""Products of matrices of integers against NumPy's, which wrap around as ours do: edges of tiles, few rows, any strides, alpha and beta."""

import cresset
import numpy
import pytest

# (m, k, n): fewer and more rows than a tile and than pay for a copy, columns of no, some and many registers with a rest, no terms.
SIZES = [(1, 70, 300), (3, 70, 130), (5, 33, 257), (17, 40, 64), (67, 70, 131), (130, 31, 33), (20, 300, 1), (4, 0, 200)]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("m, k, n", SIZES)
def test_products(m, k, n, dtype):
    rng = numpy.random.default_rng([m, k, n])
    limits = numpy.iinfo(dtype)
    a, b, c = (rng.integers(limits.min, limits.max, size, dtype, endpoint=True) for size in ((m, k), (k, n), (m, n)))
    with numpy.errstate(over="ignore"):
        want = a @ b
        sums = (c * numpy.array(3, dtype) + want * numpy.array(5, dtype)).astype(dtype)
    rows, columns = cresset.from_numpy(a), cresset.from_numpy(b)
    for x in (rows, cresset.from_numpy(numpy.asfortranarray(a)), cresset.from_numpy(numpy.repeat(a, 2, 1))[:, ::2]):
        for y in (columns, cresset.from_numpy(numpy.asfortranarray(b)), cresset.from_numpy(numpy.repeat(b, 2, 1))[:, ::2]):
            assert numpy.array_equal((x @ y).numpy(), want)
            assert numpy.array_equal(cresset.addmm(cresset.from_numpy(c), x, y, beta=3, alpha=5).numpy(), sums)
