"""Products of few rows with matrices whose rows are as long as pages, and of operands by columns, beside NumPy's in double precision; test_instruction_sets.py
runs them at each level."""

import numpy as np
import pytest

import cresset

DRAW = np.random.default_rng(0)


def drawn(*sizes):
    return DRAW.standard_normal(sizes).astype(np.float32)


def close(got, want):
    assert float(np.abs(got.numpy() - want).max()) <= 2e-6 * float(np.abs(want).max())


@pytest.mark.parametrize("m", [2, 3, 5, 7, 8])
@pytest.mark.parametrize("k, n", [(1023, 1024), (770, 2048), (257, 512)])
def test_products_of_few_rows(m, k, n):
    a, b, c = drawn(m, k), drawn(k, n), drawn(m, n)
    product = a.astype(np.float64) @ b
    x, y, z = map(cresset.from_numpy, (a, b, c))
    close(x @ y, product)
    close(x.t().contiguous().t() @ y, product)  # rows that do not lie together
    close(cresset.addmm(z, x, y, beta=0.5, alpha=-2), 0.5 * c - 2 * product)
    close(cresset.addmm(z[0], x, y), c[0] + product)


@pytest.mark.parametrize("width", [1000, 1021])
def test_products_of_few_rows_with_a_part_of_wider_rows(width):
    a, b = drawn(8, 1024), drawn(1024, 2048)
    close(cresset.from_numpy(a) @ cresset.from_numpy(b)[:, 3 : 3 + width], a.astype(np.float64) @ b[:, 3 : 3 + width])


def test_products_of_few_rows_keep_what_is_not_a_number():
    a, b = drawn(4, 1024), drawn(1024, 1024)
    a[1, 5], b[7, 9] = np.inf, np.nan
    got = cresset.from_numpy(a) @ cresset.from_numpy(b)
    assert got[:, 9].isnan().all() and got[1].isfinite().sum() == 0 and got[[0, 2, 3]].isnan().sum() == 3
    out = cresset.full((4, 1024), float("nan"))
    assert cresset.mm(cresset.from_numpy(drawn(4, 1024)), cresset.from_numpy(drawn(1024, 1024)), out=out).isfinite().all()


@pytest.mark.parametrize("m, k, n", [(64, 512, 64), (16, 1030, 257), (40, 130, 515), (515, 130, 40), (300, 700, 20), (8, 600, 520), (2, 700, 700), (128, 128, 128), (40, 1024, 515),
                                     (33, 700, 300), (49, 1600, 161), (197, 768, 770), (256, 1024, 512), (257, 150, 600)])
@pytest.mark.parametrize("first_by_columns", [False, True])
def test_products_of_a_second_operand_by_columns(m, k, n, first_by_columns):
    a, b, c = drawn(m, k), drawn(n, k), drawn(m, n + 3)
    product = a.astype(np.float64) @ b.T
    x, y, z = map(cresset.from_numpy, (a, b, c))
    x = x.t().contiguous().t() if first_by_columns else x
    close(x @ y.t(), product)
    close(cresset.addmm(z[:, :n], x, y.t(), beta=0.5, alpha=-2), 0.5 * c[:, :n] - 2 * product)
    out = z.clone()
    cresset.addmm(z[0, :n], x, y.t(), out=out[:, 1 : n + 1])  # beside it nothing is written
    close(out[:, 1 : n + 1], c[0, :n] + product)
    assert out[:, 0].equal(z[:, 0]) and out[:, n + 1 :].equal(z[:, n + 1 :])


@pytest.mark.parametrize("m, k, n", [(2, 2, 2), (3, 5, 4), (4, 4, 4), (5, 7, 9), (8, 8, 8), (1, 30, 6), (6, 30, 1), (16, 16, 16), (7, 13, 33), (2, 50, 40), (9, 3, 17)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
def test_small_products(m, k, n, dtype):
    """Batches of matrices too small for BLAS, each operand by rows and by columns, beside what is no number in what beta = 0 replaces."""
    a, b, c = (DRAW.standard_normal((3, *sizes)).astype(dtype) for sizes in ((m, k), (k, n), (m, n)))
    tolerance = 1e-5 if dtype in (np.float32, np.complex64) else 1e-13
    want = np.einsum("bik,bkj->bij", a, b)
    for x in (cresset.from_numpy(a), cresset.from_numpy(a.swapaxes(1, 2).copy()).transpose(1, 2)):
        for y in (cresset.from_numpy(b), cresset.from_numpy(b.swapaxes(1, 2).copy()).transpose(1, 2)):
            np.testing.assert_allclose(x.bmm(y).numpy(), want, rtol=tolerance, atol=tolerance * 10)
            np.testing.assert_allclose((x[0] @ y[0]).numpy(), want[0], rtol=tolerance, atol=tolerance * 10)
            added = cresset.baddbmm(cresset.from_numpy(c), x, y, beta=-2, alpha=0.5)
            np.testing.assert_allclose(added.numpy(), 0.5 * want - 2 * c, rtol=tolerance, atol=tolerance * 10)
            assert cresset.baddbmm(cresset.full((3, m, n), float("nan"), dtype=x.dtype), x, y, beta=0).isfinite().all()


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("m, k", [(300, 70), (70, 300), (1, 3000)])
def test_complex_products_with_a_vector(m, k, dtype):
    a, v, w = (DRAW.standard_normal((*sizes, 2)).astype(np.float64).view(np.complex128)[..., 0].astype(dtype) for sizes in ((m, k), (k,), (m,)))
    tolerance = 1e-4 if dtype == np.complex64 else 1e-12
    x, y, z = map(cresset.from_numpy, (a, v, w))
    for matrix in (x, x.t().contiguous().t()):
        np.testing.assert_allclose((matrix @ y).numpy(), a @ v, rtol=tolerance, atol=tolerance * 10)
        np.testing.assert_allclose((z @ matrix).numpy(), w @ a, rtol=tolerance, atol=tolerance * 10)
        np.testing.assert_allclose(cresset.addmv(z, matrix, y, beta=2, alpha=1j).numpy(), 2 * w + 1j * (a @ v), rtol=tolerance, atol=tolerance * 10)
