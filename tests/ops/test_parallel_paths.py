"""Operands beyond the sizes from which kernels use several threads: NumPy's results, the same bits for every number of threads,
and errors of any thread reach the caller."""

import numpy as np
import pytest

import cresset

rng = np.random.default_rng(11)
DTYPES = ["float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint8", "bool", "complex64"]
ORDERED = [d for d in DTYPES if d != "complex64"]
SIDE = 300  # SIDE * SIDE is more than any grain of the kernels below


@pytest.fixture(autouse=True)
def restore_threads():
    before = cresset.get_num_threads()
    yield
    cresset.set_num_threads(before)


def array(shape, dtype, high=100):
    if dtype == "bool":
        return rng.random(shape) < 0.5
    values = rng.integers(0, high, shape)
    return (values + 1j * rng.integers(0, high, shape)).astype(dtype) if dtype == "complex64" else values.astype(dtype)


def on_threads(f):
    """What f gives with one thread; with two and three it must be the same."""
    cresset.set_num_threads(1)
    want = f()
    for threads in (2, 3):
        cresset.set_num_threads(threads)
        for a, b in zip(want, f(), strict=True):
            assert a.numpy().tobytes() == b.numpy().tobytes()
    return [t.numpy() for t in want]


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_gather(dtype, dim):
    a, index = array((SIDE, SIDE), dtype), rng.integers(0, SIDE, (SIDE, SIDE))
    t, i = cresset.from_numpy(a), cresset.from_numpy(index)
    (got,) = on_threads(lambda: [t.gather(dim, i)])
    np.testing.assert_array_equal(got, np.take_along_axis(a, index, dim))
    (got,) = on_threads(lambda: [t.t().gather(dim, i.t())])
    np.testing.assert_array_equal(got, np.take_along_axis(a.T, index.T, dim))


def test_gather_along_a_long_line():
    a, index = array(70_001, "float32"), rng.integers(0, 70_001, 90_001)
    (got,) = on_threads(lambda: [cresset.from_numpy(a).gather(0, cresset.from_numpy(index))])
    np.testing.assert_array_equal(got, a[index])
    (got,) = on_threads(lambda: [cresset.from_numpy(a).gather(0, cresset.from_numpy(index)[::2])])
    np.testing.assert_array_equal(got, a[index[::2]])


def added(a, index, source, dim):
    """a with source added at the positions of index along dim, in double precision."""
    out = a.astype(np.complex128 if a.dtype.kind == "c" else np.float64)
    other = (
        np.arange(index.size).reshape(index.shape) // index.shape[1]
        if dim == 1
        else np.arange(index.size).reshape(index.shape) % index.shape[1]
    )
    np.add.at(out, (other, index) if dim == 1 else (index, other), source)
    return out


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("dtype", [d for d in DTYPES if d not in ("bool", "int8", "uint8", "float16")])
def test_scatter_add(dtype, dim):
    a, source, index = (
        array((SIDE, SIDE), dtype, 50),
        array((SIDE, SIDE), dtype, 50),
        rng.integers(0, SIDE, (SIDE, SIDE)),
    )
    t, s, i = (cresset.from_numpy(x) for x in (a, source, index))
    (got,) = on_threads(lambda: [t.scatter_add(dim, i, s)])
    np.testing.assert_array_equal(got, added(a, index, source, dim).astype(dtype))
    (got,) = on_threads(lambda: [t.clone().scatter_add_(dim, i, s)])
    np.testing.assert_array_equal(got, added(a, index, source, dim).astype(dtype))


@pytest.mark.parametrize("dim", [0, 1])
def test_the_last_of_repeated_indices_is_written(dim):
    a, index = array((SIDE, SIDE), "float32"), rng.integers(0, 3, (SIDE, SIDE))
    source = rng.standard_normal((SIDE, SIDE)).astype(np.float32)
    t, s, i = (cresset.from_numpy(x) for x in (a, source, index))
    (got,) = on_threads(lambda: [t.scatter(dim, i, s)])
    want = a.copy()
    for k in range(SIDE):
        row, at, values = (want[k], index[k], source[k]) if dim == 1 else (want[:, k], index[:, k], source[:, k])
        for position, value in zip(at, values, strict=True):
            row[position] = value
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_scatter_reductions_do_not_depend_on_threads(reduce):
    t, s = (cresset.from_numpy(rng.standard_normal((SIDE, SIDE)).astype(np.float32)) for _ in range(2))
    i = cresset.from_numpy(rng.integers(0, SIDE, (SIDE, SIDE)))
    for dim in (0, 1):
        on_threads(
            lambda dim=dim: [
                t.scatter_reduce(dim, i, s, reduce),
                t.scatter_reduce(dim, i, s, reduce, include_self=False),
            ]
        )


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("bad", [-1, SIDE])
def test_an_index_outside_reaches_the_caller(threads, bad):
    cresset.set_num_threads(threads)
    t = cresset.zeros(SIDE, SIDE)
    index = cresset.zeros(SIDE, SIDE, dtype=cresset.int64)
    index[SIDE - 1, 7] = bad
    words = f"index {bad} is out of bounds for dimension 1 with size {SIDE}"
    for call in (
        lambda: t.gather(1, index),
        lambda: t.scatter_add(1, index, t),
        lambda: t.scatter_add_(1, index, t + 1),
    ):
        with pytest.raises(RuntimeError, match=words):
            call()
    with pytest.raises(RuntimeError, match=words):
        cresset.scatter_add(t, 1, index, t + 1, out=t)
    assert not t.any()  # nothing is written before every index was looked at


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", ORDERED)
def test_sort_of_a_long_line(dtype, descending):
    a = array(100_003, dtype, 30_000)
    t = cresset.from_numpy(a)
    values, indices = on_threads(lambda: cresset.sort(t, stable=True, descending=descending))
    order = (
        np.argsort(~a if dtype == "bool" else -a.astype(np.float64) if descending else a, kind="stable")
        if descending
        else np.argsort(a, kind="stable")
    )
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, a[order])
    values, _ = on_threads(lambda: cresset.sort(t[::2], stable=True, descending=descending))
    np.testing.assert_array_equal(values, np.sort(a[::2])[:: -1 if descending else 1])


def test_sort_of_numbers_of_every_size():
    a = np.concatenate(
        [
            rng.standard_normal(40_000) * 10.0 ** rng.integers(-300, 300, 40_000),
            [np.inf, -np.inf, 0.0, -0.0, np.nan] * 5_000,
        ]
    )
    values, indices = on_threads(lambda: cresset.sort(cresset.from_numpy(a), stable=True))
    order = np.argsort(a, kind="stable")
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, a[order])
    wide = rng.integers(-(2**63), 2**63 - 1, 70_000)
    values, indices = on_threads(lambda: cresset.sort(cresset.from_numpy(wide), stable=True))
    np.testing.assert_array_equal(indices, np.argsort(wide, kind="stable"))
    np.testing.assert_array_equal(values, np.sort(wide))


MANY = 200_003  # from here on a sort moves items to buckets first


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(
    "name", ["normal", "normal of float64", "close integers", "wide integers", "one bucket", "few values", "with NaN"]
)
def test_sort_of_many_elements(name, descending):
    a = {
        "normal": lambda: rng.standard_normal(MANY).astype("float32"),
        "normal of float64": lambda: rng.standard_normal(MANY),
        "close integers": lambda: rng.integers(-(10**6), 10**6, MANY),
        "wide integers": lambda: rng.integers(-(2**62), 2**62, MANY),
        "one bucket": lambda: np.append(rng.integers(0, 2**20, MANY), [2**31 - 1, -(2**31)]).astype("int32"),
        "few values": lambda: rng.integers(-2, 3, MANY).astype("float32"),
        "with NaN": lambda: np.where(rng.random(MANY) < 0.05, np.nan, rng.standard_normal(MANY)).astype("float32"),
    }[name]()
    values, indices = on_threads(lambda: cresset.sort(cresset.from_numpy(a), stable=True, descending=descending))
    order = np.argsort(a, kind="stable")
    if descending:  # stable too: equal elements keep their order
        order = len(a) - 1 - np.argsort(a[::-1], kind="stable")[::-1]
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(values, a[order])


def test_sort_of_equal_elements_keeps_them():
    values, indices = on_threads(lambda: cresset.sort(cresset.full((70_000,), 7), stable=True))
    assert (values == 7).all()
    np.testing.assert_array_equal(indices, np.arange(70_000))


@pytest.mark.parametrize("high", [2, 1000, 10**6])
@pytest.mark.parametrize("dtype", ["int64", "int32", "int16", "uint8", "bool", "float32"])
def test_unique(dtype, high):
    a = array((400, 250), dtype, high)
    if dtype in ("int64", "int32"):
        a -= high // 2
    t = cresset.from_numpy(a)
    got = on_threads(lambda: cresset.unique(t, return_inverse=True, return_counts=True))
    values, inverse, counts = np.unique(a, return_inverse=True, return_counts=True)
    for mine, want in zip(got, (values, inverse.reshape(a.shape), counts), strict=True):
        np.testing.assert_array_equal(mine, want)
    (got,) = on_threads(lambda: [cresset.unique(t)])
    np.testing.assert_array_equal(got, values)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64"])
def test_unique_of_many_elements(dtype):
    a = (rng.integers(-30_000, 30_000, MANY) * (2**40 if dtype == "int64" else 0.5)).astype(dtype)
    if dtype != "int64":
        a[::1000], a[1::1000] = -0.0, np.nan
    got = on_threads(lambda: cresset.unique(cresset.from_numpy(a), return_inverse=True, return_counts=True))
    values, _, *rest = np.unique(a, return_index=True, return_inverse=True, return_counts=True, equal_nan=False)  # with indices it is stable
    for mine, theirs in zip(got, (values, *rest), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_unique_neighbours_of_many_elements():
    a = np.repeat(rng.integers(0, 3, MANY // 2), rng.integers(1, 4, MANY // 2)).astype("float32")
    a[::999] = np.nan  # each one by itself
    starts = np.flatnonzero(np.append(True, (a[1:] != a[:-1])))
    got = on_threads(lambda: cresset.unique_consecutive(cresset.from_numpy(a), return_inverse=True, return_counts=True))
    np.testing.assert_array_equal(got[0], a[starts])
    np.testing.assert_array_equal(got[1], np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(a)))))
    np.testing.assert_array_equal(got[2], np.diff(np.append(starts, len(a))))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int8"])
def test_unique_rows_of_many(dtype):
    a = rng.integers(-2, 3, (70_000, 3)).astype(dtype)
    got = on_threads(lambda: cresset.unique(cresset.from_numpy(a), return_inverse=True, return_counts=True, dim=0))
    values, inverse, counts = np.unique(a, return_inverse=True, return_counts=True, axis=0)
    for mine, want in zip(got, (values, inverse.reshape(-1), counts), strict=True):
        np.testing.assert_array_equal(mine, want)


def test_unique_at_the_ends_of_a_type():
    ends = np.array([-(2**63), 2**63 - 1, 0, 2**63 - 1])
    np.testing.assert_array_equal(cresset.unique(cresset.from_numpy(ends)).numpy(), np.unique(ends))
    near = np.array([-(2**63), -(2**63) + 1, -(2**63) + 1], np.int64)
    np.testing.assert_array_equal(cresset.unique(cresset.from_numpy(near)).numpy(), np.unique(near))
    assert cresset.unique(cresset.zeros(0, dtype=cresset.int64)).shape == (0,)


@pytest.mark.parametrize("dtype", ["float32", "uint8", "complex64"])
def test_cat(dtype):
    parts = [array((7, n, 5), dtype) for n in (9000, 1, 0, 17, 6001)]
    (got,) = on_threads(lambda: [cresset.cat([cresset.from_numpy(p) for p in parts], 1)])
    np.testing.assert_array_equal(got, np.concatenate(parts, 1))
    flat = [p.reshape(-1) for p in parts]
    (got,) = on_threads(lambda: [cresset.cat([cresset.from_numpy(p) for p in flat])])
    np.testing.assert_array_equal(got, np.concatenate(flat))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "float16", "int8", "complex64"])
@pytest.mark.parametrize("columns", [1, 3, 31, 65, 256, 316, 511, 512, 700, 1025, 3162])
def test_rows_and_columns_that_repeat(columns, dtype):
    rows = 5 + 80_000 // columns
    a, row, column = array((rows, columns), dtype, 50), array((columns,), dtype, 50), array((rows, 1), dtype, 50)
    x, r, c = (cresset.from_numpy(v) for v in (a, row, column))
    for f in (lambda a, b: a + b, lambda a, b: b * a, lambda a, b: a * b, lambda a, b: a - b, lambda a, b: a == b):
        (got,) = on_threads(lambda f=f: [f(x, r)])
        np.testing.assert_array_equal(got, f(a, row))
        (got,) = on_threads(lambda f=f: [f(x, c)])
        np.testing.assert_array_equal(got, f(a, column))
    (got,) = on_threads(lambda: [c + r])
    np.testing.assert_array_equal(got, column + row)
    (got,) = on_threads(lambda: [x[:, : columns // 2 + 1] + c])
    np.testing.assert_array_equal(got, a[:, : columns // 2 + 1] + column)
    (got,) = on_threads(lambda: [x.clone().add_(c)])
    np.testing.assert_array_equal(got, a + column)


@pytest.mark.parametrize("columns", [1, 15, 16, 17, 31, 316, 1000])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softmax_and_running_sums(columns, dtype):
    a = rng.standard_normal((100_000 // columns, columns)).astype(dtype)
    x = cresset.from_numpy(a)
    for dim in (0, 1):
        wide = a.astype(np.float64)
        e = np.exp(wide - wide.max(dim, keepdims=True))
        got, log, sums = on_threads(lambda dim=dim: [x.softmax(dim), x.log_softmax(dim), x.cumsum(dim)])
        np.testing.assert_allclose(got, e / e.sum(dim, keepdims=True), rtol=2e-6)
        np.testing.assert_allclose(log, np.log(e / e.sum(dim, keepdims=True)), rtol=2e-6, atol=2e-6)
        np.testing.assert_allclose(sums, np.cumsum(wide, dim), rtol=2e-6, atol=1e-4 if dtype == "float32" else 1e-9)


@pytest.mark.parametrize("n", [16_384, 16_385, 100_003, 400_000])
@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int16", "uint8"])
def test_running_totals_of_long_lines(dtype, rows, n):
    a = array((rows, n), dtype)
    t = cresset.from_numpy(a)
    (got,) = on_threads(lambda: [t.cumsum(1, dtype=t.dtype)])
    np.testing.assert_array_equal(got, np.cumsum(a, 1, dtype=np.int64 if got.dtype.kind in "iu" else np.float64).astype(dtype))
    if dtype == "float32":
        x = cresset.from_numpy(rng.standard_normal((rows, n)).astype(dtype) * 1e-3 + 1)
        product, total = on_threads(lambda: [x.cumprod(1), x.cumsum(1)])
        wide = x.numpy().astype(np.float64)
        np.testing.assert_allclose(product, np.cumprod(wide, 1), rtol=1e-6)
        np.testing.assert_allclose(total, np.cumsum(wide, 1), rtol=1e-7)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_running_totals_after_what_is_not_finite(bad):
    a = rng.standard_normal(400_000).astype("float32")
    a[200_000] = bad
    (got,) = on_threads(lambda: [cresset.from_numpy(a).cumsum(0)])
    np.testing.assert_allclose(got, np.cumsum(a.astype(np.float64)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("columns", [1, 7, 16, 33, 316, 1000])
@pytest.mark.parametrize("dtype, rtol", [("float32", 2e-5), ("float64", 1e-10), ("float16", 5e-3)])
@pytest.mark.parametrize("affine", ["weight and bias", "weight", "neither"])
def test_layer_norm(columns, dtype, rtol, affine):
    rows = 100_000 // columns
    x, w, b, g = (rng.standard_normal(shape).astype(dtype) for shape in ((rows, columns), columns, columns, (rows, columns)))
    wide = x.astype(np.float64)
    centred, rstd = wide - wide.mean(1, keepdims=True), 1 / np.sqrt(wide.var(1, keepdims=True) + 1e-3)
    hat, factor = centred * rstd, w.astype(np.float64) if "weight" in affine else 1.0

    def both():
        tx, tw, tb = (cresset.from_numpy(v).requires_grad_() for v in (x, w, b))
        used = {"weight and bias": (tw, tb), "weight": (tw, None), "neither": (None, None)}[affine]
        y = cresset.nn.functional.layer_norm(tx, (columns,), *used, eps=1e-3)
        y.backward(cresset.from_numpy(g))
        return [t.detach() for t in (y, tx.grad, tw.grad, tb.grad) if t is not None]

    got = on_threads(both)
    np.testing.assert_allclose(got[0], hat * factor + (b if "bias" in affine else 0), rtol=rtol, atol=rtol)
    # Ba, Kiros and Hinton, Layer Normalization, 2016: the gradient is free of its mean and of its part along the result.
    wide_g = g.astype(np.float64) * factor
    gx = rstd * (wide_g - wide_g.mean(1, keepdims=True) - hat * (wide_g * hat).mean(1, keepdims=True))
    np.testing.assert_allclose(got[1], gx, rtol=rtol * 4, atol=rtol * 4 * max(1, np.abs(gx).max()))
    if "weight" in affine:
        np.testing.assert_allclose(got[2], (g * hat).sum(0), rtol=rtol * 4, atol=rtol * 50)
    if "bias" in affine:
        np.testing.assert_allclose(got[3], g.astype(np.float64).sum(0), rtol=rtol * 4, atol=rtol * 50)


@pytest.mark.parametrize(
    "m, k, n", [(128, 128, 128), (33, 700, 65), (2, 4096, 333), (1, 3072, 768), (3072, 768, 1), (1000, 700, 17)]
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_products_in_parts(m, k, n, dtype):
    """Parts may round otherwise than the whole; the operands are integers, so that nothing is rounded."""
    a, b, c = array((m, k), dtype, 9), array((k, n), dtype, 9), array((m, n), dtype, 9)
    wide = np.complex128 if dtype == "complex64" else np.float64
    want = (a.astype(wide) @ b.astype(wide)).astype(dtype)
    plain, across = (cresset.from_numpy(v) for v in (a, b)), (cresset.from_numpy(v.T.copy()).t() for v in (a, b))
    for x, y in (tuple(plain), tuple(across)):
        got, added = on_threads(lambda x=x, y=y: [x.mm(y), cresset.addmm(cresset.from_numpy(c), x, y, beta=2)])
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(added, want + 2 * c)


@pytest.mark.parametrize("n", [1000, 65_536, 200_003])
def test_random_numbers(n):
    def draw():
        cresset.manual_seed(5)
        return [
            cresset.rand(3),  # the stream does not begin with a block
            cresset.rand(n),
            cresset.rand(n, dtype=cresset.float64),
            cresset.empty(n).bernoulli_(0.3),
            cresset.randint(10, (n,)),
            cresset.randint(-(2**62), 2**62, (n,)),
            cresset.randperm(n),
            cresset.nn.functional.dropout(cresset.ones(n), 0.4),
            cresset.rand(3),
        ]

    on_threads(draw)


@pytest.mark.parametrize("kernel, stride", [((2, 2), (2, 2)), ((3, 5), (1, 2)), ((1, 4), (3, 1))])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_average_pooling(dtype, kernel, stride):
    a = array((6, 50, 70), dtype)
    t = cresset.from_numpy(a)
    (got,) = on_threads(lambda: [cresset.nn.functional.avg_pool2d(t, kernel, stride)])
    windows = np.lib.stride_tricks.sliding_window_view(a, kernel, (1, 2))[:, :: stride[0], :: stride[1]]
    sums = windows.sum((-2, -1))
    want = (sums / (kernel[0] * kernel[1])).astype(dtype)  # integers are not negative: cutting rounds down
    np.testing.assert_allclose(got, want, rtol=1e-6 if dtype != "int64" else 0)


def test_flips_and_rolls_of_a_long_line():
    a = array(200_001, "float32")
    (got,) = on_threads(lambda: [cresset.from_numpy(a).flip(0)])
    np.testing.assert_array_equal(got, a[::-1])
    (got,) = on_threads(lambda: [cresset.from_numpy(a).roll(77_777, 0)])
    np.testing.assert_array_equal(got, np.roll(a, 77_777))
