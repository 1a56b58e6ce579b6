"""Reductions and scans over random dimensions against NumPy."""

import cresset
import numpy as np
import pytest
from arrays import REAL, arrays, laid_out, same
from hypothesis import assume, given, settings
from hypothesis import strategies as st

DOUBLE = [np.dtype(np.float64)]
# What NumPy computes, and whether a dimension of no elements has a result.
SEVERAL_DIMS = {
    "sum": (np.sum, True), "nansum": (np.nansum, True), "mean": (np.mean, False), "amax": (np.max, False), "amin": (np.min, False),
    "count_nonzero": (np.count_nonzero, True), "logsumexp": (lambda a, axis, keepdims: np.log(np.sum(np.exp(a), axis, keepdims=keepdims)), False),
}  # fmt: skip
ONE_DIM = {"prod": (np.prod, True), "all": (np.all, True), "any": (np.any, True), "argmax": (np.argmax, False), "argmin": (np.argmin, False)}


@st.composite
def dims_of(draw, a):
    """Some dimensions, each counted from either end."""
    chosen = draw(st.lists(st.integers(0, a.ndim - 1), min_size=1, max_size=a.ndim, unique=True))
    return [draw(st.sampled_from([d, d - a.ndim])) for d in chosen]


@settings(max_examples=150)
@given(st.data(), st.sampled_from(sorted(SEVERAL_DIMS)), st.booleans())
def test_several_dimensions(data, name, keepdim):
    a = data.draw(arrays(DOUBLE, min_dims=1))
    dims = data.draw(dims_of(a))
    numpy, empty = SEVERAL_DIMS[name]
    assume(empty or a.size)
    assume(name != "count_nonzero" or not keepdim)
    want = numpy(a, axis=tuple(dims), keepdims=keepdim)
    options = {} if name == "count_nonzero" else {"keepdim": keepdim}
    same(getattr(cresset, name)(data.draw(laid_out(a)), dims, **options), want, rtol=1e-12, atol=1e-12)


@settings(max_examples=100)
@given(st.data(), st.sampled_from(sorted(ONE_DIM)), st.booleans())
def test_one_dimension(data, name, keepdim):
    a = data.draw(arrays(min_dims=1) if name in ("all", "any") else arrays(DOUBLE, min_dims=1))
    d = data.draw(st.integers(-a.ndim, a.ndim - 1))
    numpy, empty = ONE_DIM[name]
    assume(empty or a.shape[d])
    # Which of several equal elements is found is not defined.
    assume(not name.startswith("arg") or np.unique(a).size == a.size)
    same(getattr(cresset, name)(data.draw(laid_out(a)), d, keepdim=keepdim), numpy(a, axis=d, keepdims=keepdim), rtol=1e-12)


@given(st.data(), st.sampled_from([0, 1]))
def test_variance(data, correction):
    a = data.draw(arrays(DOUBLE, min_dims=1, min_side=1))
    dims = data.draw(dims_of(a))
    assume(np.prod([a.shape[d] for d in dims]) > correction)
    x = data.draw(laid_out(a))
    want = np.var(a, axis=tuple(dims), ddof=correction)
    same(cresset.var(x, dims, correction=correction), want, rtol=1e-12, atol=1e-12)
    same(cresset.std(x, dims, correction=correction), np.sqrt(want), rtol=1e-12, atol=1e-12)
    mean = cresset.var_mean(x, dims, correction=correction, keepdim=True)[1]
    same(mean, a.mean(tuple(dims), keepdims=True), rtol=1e-12, atol=1e-12)


@given(st.data(), st.sampled_from([0.0, 1.0, 2.0, 3.0, float("inf"), -float("inf")]))
def test_vector_norm(data, order):
    a = data.draw(arrays(DOUBLE, min_dims=1, max_dims=3, min_side=1))
    d = data.draw(st.integers(-a.ndim, a.ndim - 1))
    same(cresset.norm(data.draw(laid_out(a)), order, d), np.linalg.norm(a, order, axis=d), rtol=1e-12, atol=1e-12)


@given(st.data())
def test_everything_at_once(data):
    a = data.draw(arrays(REAL))
    x = data.draw(laid_out(a))
    wide = np.int64 if a.dtype.kind == "i" else a.dtype
    same(x.sum(), a.sum(dtype=wide), rtol=1e-6)
    same(x.sum(dtype=cresset.float64), a.sum(dtype=np.float64))
    assert x.any().item() == a.any() and x.all().item() == a.all() and x.count_nonzero().item() == np.count_nonzero(a)
    if a.size:
        assert x.max().item() == a.max() and x.min().item() == a.min()
    else:
        with pytest.raises((RuntimeError, IndexError)):
            x.max()


@given(st.data())
def test_scans(data):
    a = data.draw(arrays(DOUBLE, min_dims=1))
    d = data.draw(st.integers(-a.ndim, a.ndim - 1))
    x = data.draw(laid_out(a))
    same(x.cumsum(d), a.cumsum(d), rtol=1e-12, atol=1e-12)
    same(x.cumprod(d), a.cumprod(d), rtol=1e-12)
    if a.size:
        values, indices = x.cummax(d)
        same(values, np.maximum.accumulate(a, d))
        same(x.gather(d, indices), np.maximum.accumulate(a, d))
        same(x.diff(dim=d), np.diff(a, axis=d))


@given(st.data())
def test_softmax(data):
    a = data.draw(arrays(DOUBLE, min_dims=1, min_side=1))
    d = data.draw(st.integers(-a.ndim, a.ndim - 1))
    e = np.exp(a - a.max(d, keepdims=True))
    want = e / e.sum(d, keepdims=True)
    x = data.draw(laid_out(a))
    same(x.softmax(d), want, rtol=1e-12, atol=1e-15)
    same(x.log_softmax(d), a - a.max(d, keepdims=True) - np.log(e.sum(d, keepdims=True)), rtol=1e-12, atol=1e-12)


@given(st.data())
def test_parts_sum_to_the_whole(data):
    """Reducing dimension by dimension, in any order, is reducing all at once."""
    a = data.draw(arrays(REAL, min_dims=1))
    x = data.draw(laid_out(a))
    whole = x.sum(dtype=cresset.float64)
    for d in data.draw(st.permutations(range(a.ndim))):
        x = x.sum(d, keepdim=True, dtype=cresset.float64)
    assert x.reshape(()).item() == whole.item()
