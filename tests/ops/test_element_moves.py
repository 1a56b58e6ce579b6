"""Operators that only move elements, beside NumPy: every size of an element, lengths around the blocks they move in, odd places."""

import cresset
import numpy as np
import pytest

DTYPES = ["uint8", "int16", "float32", "float64", "complex128"]
LENGTHS = [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 1023, 2500]


def numbers(*shape, dtype):
    return (np.arange(np.prod(shape)).reshape(shape) * 7 % 251).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_flip(dtype):
    for n in LENGTHS:
        a = numbers(3, n, dtype=dtype)
        t = cresset.from_numpy(a)
        for dims in ((0,), (1,), (0, 1)):
            assert (t.flip(dims).numpy() == np.flip(a, dims)).all(), (n, dims)
        assert (t[:, : n // 2 + 1].flip(1).numpy() == a[:, : n // 2 + 1][:, ::-1]).all(), n
        assert (t.rot90(1).numpy() == np.rot90(a, 1)).all() and (t.rot90(3).numpy() == np.rot90(a, 3)).all(), n


@pytest.mark.parametrize("dtype", DTYPES)
def test_roll(dtype):
    for n in LENGTHS:
        a = numbers(3, n, dtype=dtype)
        t = cresset.from_numpy(a)
        for shift in (1, 3, -2, n - 1):
            assert (t.roll(shift, 1).numpy() == np.roll(a, shift, 1)).all(), (n, shift)
            assert (t.roll(shift).numpy() == np.roll(a, shift)).all(), (n, shift)
        assert (t.roll((1, 2), (0, 1)).numpy() == np.roll(a, (1, 2), (0, 1))).all(), n


@pytest.mark.parametrize("dtype", DTYPES)
def test_cat_and_stack(dtype):
    for n in LENGTHS[:12]:
        a, b = numbers(5, n, dtype=dtype), numbers(5, 1, dtype=dtype)
        s, t = cresset.from_numpy(a), cresset.from_numpy(b)
        for d in (0, 1, 2):
            assert (cresset.stack([s, s.flip(0), s], d).numpy() == np.stack([a, a[::-1], a], d)).all(), (n, d)
        assert (cresset.cat([t, s, t], 1).numpy() == np.concatenate([b, a, b], 1)).all(), n


@pytest.mark.parametrize(("mode", "theirs"), [("reflect", "reflect"), ("replicate", "edge"), ("constant", "constant")])
def test_pad(mode, theirs):
    a = numbers(2, 3, 6, 5, dtype="float32")
    t = cresset.from_numpy(a)
    for left, right, top, bottom in ((0, 0, 0, 0), (1, 2, 3, 0), (4, 4, 5, 5), (0, 3, 0, 1)):
        want = np.pad(a, ((0, 0), (0, 0), (top, bottom), (left, right)), mode=theirs)
        got = cresset.nn.functional.pad(t, (left, right, top, bottom), mode=mode).numpy()
        assert (got == want).all(), (left, right, top, bottom)


@pytest.mark.parametrize("factor", [1, 2, 3])
def test_nearest_copies_elements(factor):
    a = numbers(2, 3, 4, 5, dtype="float32") - 100
    a[0, 0, 0, :3] = [-0.0, np.inf, np.nan]
    got = cresset.nn.functional.interpolate(cresset.from_numpy(a), scale_factor=factor).numpy()
    want = a.repeat(factor, 2).repeat(factor, 3)
    assert got.tobytes() == want.tobytes()
    last = cresset.from_numpy(a).contiguous(memory_format=cresset.channels_last)
    assert cresset.nn.functional.interpolate(last, scale_factor=factor).contiguous().numpy().tobytes() == want.tobytes()


def test_huber_loss():
    x, y = np.float64([[0.0, 1.0, -3.0, 2.5]]), np.float64([[0.0, 0.5, 1.0, np.nan]])
    for delta in (0.3, 1.0, 4.0):
        z = np.abs(x - y)
        want = np.where(z <= delta, 0.5 * z * z, delta * (z - 0.5 * delta))
        got = cresset.nn.functional.huber_loss(cresset.from_numpy(x), cresset.from_numpy(y), reduction="none", delta=delta)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-15)
