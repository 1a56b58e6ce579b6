"""Sorting and searching against NumPy."""

import cresset
import numpy as np
from arrays import REAL, arrays, laid_out, same, tensor
from hypothesis import assume, given
from hypothesis import strategies as st

DOUBLE = [np.dtype(np.float64)]


@given(st.data(), st.booleans())
def test_sort(data, descending):
    a = data.draw(arrays(REAL, min_dims=1))
    d = data.draw(st.integers(-a.ndim, a.ndim - 1))
    values, indices = cresset.sort(data.draw(laid_out(a)), dim=d, descending=descending, stable=True)
    # Stable from large to small: sort the negated numbers.
    order = np.argsort(-a if descending else a, axis=d, kind="stable")
    same(indices, order)
    same(values, np.take_along_axis(a, order, d))
    same(cresset.argsort(tensor(a), dim=d, descending=descending, stable=True), order)


@given(st.lists(st.sampled_from([1.0, 0.0, float("nan"), float("inf"), -float("inf"), -2.0]), max_size=12))
def test_nan_is_the_largest(items):
    a = np.array(items)
    same(cresset.sort(tensor(a))[0], np.sort(a))
    if a.size:
        same(cresset.max(tensor(a)), a.max())
        same(cresset.topk(tensor(a), a.size)[0], np.sort(a)[::-1])


@given(st.data(), st.booleans())
def test_topk_and_kthvalue(data, largest):
    a = data.draw(arrays(REAL, min_dims=1, min_side=1))
    d = data.draw(st.integers(-a.ndim, a.ndim - 1))
    k = data.draw(st.integers(1, a.shape[d]))
    x = data.draw(laid_out(a))
    ordered = np.sort(a, axis=d)
    values, indices = cresset.topk(x, k, dim=d, largest=largest)
    same(values, (np.flip(ordered, d) if largest else ordered).take(np.arange(k), d))
    same(x.gather(d, indices), values.numpy())
    value, index = cresset.kthvalue(x, k, dim=d)
    same(value, ordered.take(k - 1, d))
    same(x.gather(d, index.unsqueeze(d)).squeeze(d), value.numpy())


@given(st.data())
def test_median_and_quantile(data):
    a = data.draw(arrays(DOUBLE, min_dims=1, min_side=1))
    d = data.draw(st.integers(-a.ndim, a.ndim - 1))
    x = data.draw(laid_out(a))
    same(cresset.median(x, d)[0], np.sort(a, axis=d).take((a.shape[d] - 1) // 2, d))
    q = data.draw(st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0]))
    same(cresset.quantile(x, q, dim=d), np.quantile(a, q, axis=d), rtol=1e-12, atol=1e-12)


@given(arrays(REAL))
def test_unique(a):
    values, inverse, counts = cresset.unique(tensor(a), return_inverse=True, return_counts=True)
    want, want_inverse, want_counts = np.unique(a, return_inverse=True, return_counts=True)
    same(values, want)
    same(inverse, want_inverse.reshape(a.shape))
    same(counts, want_counts)


@given(arrays(REAL, min_dims=1, max_dims=2, max_side=4), st.data())
def test_unique_rows(a, data):
    assume(a.size)
    d = data.draw(st.integers(0, a.ndim - 1))
    same(cresset.unique(tensor(a), dim=d), np.unique(a, axis=d))


@given(st.data(), st.booleans())
def test_searchsorted(data, right):
    a = np.sort(data.draw(arrays(REAL, min_dims=1, max_dims=1, max_side=9)))
    values = data.draw(arrays([a.dtype], max_dims=2))
    want = np.searchsorted(a, values, side="right" if right else "left")
    same(cresset.searchsorted(tensor(a), tensor(values), right=right), want)
    same(cresset.bucketize(tensor(values), tensor(a), right=right), want)


@given(arrays(), st.data())
def test_nonzero_and_isin(a, data):
    indices = tensor(a).nonzero(as_tuple=True)
    assert len(indices) == max(a.ndim, 1)
    for have, want in zip(indices, np.atleast_1d(a).nonzero()):
        same(have, want)
    if a.dtype.kind in "if":
        some = data.draw(arrays([a.dtype], max_dims=1, max_side=6))
        same(cresset.isin(tensor(a), tensor(some)), np.isin(a, some))


@given(st.lists(st.integers(0, 12), max_size=20), st.integers(0, 15))
def test_counting(items, least):
    a = np.array(items, np.int64)
    same(cresset.bincount(tensor(a), minlength=least), np.bincount(a, minlength=least))
    if a.size:
        want, _ = np.histogram(a.astype(np.float64), bins=5, range=(0.0, 12.0))
        same(cresset.histc(tensor(a.astype(np.float64)), bins=5, min=0, max=12), want.astype(np.float64))
