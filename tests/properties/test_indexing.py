"""Indexing against NumPy: reading, assigning and accumulating through random indices of every kind."""

import cresset
import numpy as np
from arrays import arrays, laid_out, memory, same, tensor
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

FLOATS = [np.dtype(np.float64)]
slices = st.builds(slice, st.none() | st.integers(-5, 5), st.none() | st.integers(-5, 5), st.none() | st.integers(1, 3))


@st.composite
def basic(draw, shape):
    """Integers, slices, None and one Ellipsis."""
    items = []
    for n in shape[: draw(st.integers(0, len(shape)))]:
        items.append(draw(st.integers(-n, n - 1) | slices if n else slices))
    if draw(st.booleans()):
        # The dimensions behind the ellipsis are indexed from the end.
        at = draw(st.integers(0, len(items)))
        if all(isinstance(i, slice) for i in items[at:]):
            items.insert(at, Ellipsis)
    for _ in range(draw(st.integers(0, 2))):
        items.insert(draw(st.integers(0, len(items))), None)
    return tuple(items)


@st.composite
def advanced(draw, shape):
    """Integer arrays that fit together, bool masks, slices and None. No plain integers: PyTorch selects with them first,
    NumPy counts them as arrays."""
    assume(shape and 0 not in shape)
    result = draw(hnp.array_shapes(min_dims=1, max_dims=2, min_side=1, max_side=3))
    items, d, masked = [], 0, False
    while d < len(shape):
        kind = draw(st.sampled_from(["array", "array", "slice", "mask", "none", "stop"]))
        if kind == "stop":
            break
        if kind == "none":
            assume(len(items) < 7)
            items.append(None)
            continue
        if kind == "mask" and not masked and not any(isinstance(i, np.ndarray) for i in items):
            k = draw(st.integers(1, len(shape) - d))
            items.append(draw(hnp.arrays(bool, shape[d : d + k])))
            result, masked = (1,), True  # other arrays have to fit the number of true elements
            d += k
            continue
        if kind == "slice":
            items.append(draw(slices))
        else:
            own = draw(st.sampled_from([result, result[-1:], tuple(1 for _ in result)]))
            items.append(draw(hnp.arrays(np.int64, own, elements=st.integers(-shape[d], shape[d] - 1))))
        d += 1
    return tuple(items)


def ours(index):
    return tuple(tensor(i) if isinstance(i, np.ndarray) else i for i in index)


@settings(max_examples=150)
@given(st.data())
def test_basic(data):
    a = data.draw(arrays())
    index = data.draw(basic(a.shape))
    x = tensor(a)
    view = x[index]
    same(view, a[index])
    assert not view.numel() or memory(view) == memory(x)


@settings(max_examples=200)
@given(st.data())
def test_advanced(data):
    a = data.draw(arrays(min_dims=1, min_side=1))
    index = data.draw(advanced(a.shape))
    same(data.draw(laid_out(a))[ours(index)], a[index])


@settings(max_examples=150)
@given(st.data(), st.booleans())
def test_assignment(data, plain):
    a = data.draw(arrays(FLOATS, min_dims=1, min_side=1))
    index = data.draw(basic(a.shape) if plain else advanced(a.shape))
    want, x = a.copy(), data.draw(laid_out(a))
    # An element that is written twice must get one value, as the order of writes is not defined.
    places = np.arange(a.size).reshape(a.shape)[index]
    shape = np.shape(places)
    if np.unique(places).size == places.size and data.draw(st.booleans()):
        values = data.draw(arrays(FLOATS, shape=tuple(1 if data.draw(st.booleans()) else n for n in shape)))
        want[index], x[ours(index)] = values, tensor(values)
    else:
        want[index] = x[ours(index)] = -100.0
    same(x, want)


@settings(max_examples=100)
@given(st.data())
def test_accumulate(data):
    a = data.draw(arrays(FLOATS, min_dims=1, max_dims=3, min_side=1))
    dims = data.draw(st.integers(1, a.ndim))
    own = data.draw(hnp.array_shapes(min_dims=1, max_dims=2, min_side=1, max_side=5))
    index = tuple(data.draw(hnp.arrays(np.int64, own, elements=st.integers(-n, n - 1))) for n in a.shape[:dims])
    values = data.draw(arrays(FLOATS, shape=np.shape(a[index])))
    want = a.copy()
    np.add.at(want, index, values)
    same(data.draw(laid_out(a)).index_put_([tensor(i) for i in index], tensor(values), accumulate=True), want)


@given(st.data())
def test_gradient_of_reading_is_accumulation(data):
    a = data.draw(arrays(FLOATS, min_dims=1, min_side=1))
    index = data.draw(advanced(a.shape))
    x = tensor(a).requires_grad_()
    x[ours(index)].sum().backward()
    want = np.zeros_like(a)
    np.add.at(want, index, 1.0)
    same(x.grad, want)


@given(st.data())
def test_masks(data):
    a = data.draw(arrays())
    mask = data.draw(hnp.arrays(bool, a.shape))
    x = data.draw(laid_out(a))
    same(x[tensor(mask)], a[mask])
    same(cresset.masked_select(x, tensor(mask)), a[mask])
    assert [list(i) for i in tensor(mask).nonzero().tolist()] == np.argwhere(mask).tolist()
    same(x.masked_fill(tensor(mask), 1), np.where(mask, np.ones((), a.dtype), a))


@given(st.data())
def test_gather_and_scatter(data):
    a = data.draw(arrays(FLOATS, min_dims=1, max_dims=3, min_side=1))
    d = data.draw(st.integers(0, a.ndim - 1))
    shape = tuple(data.draw(st.integers(0, 5)) if i == d else data.draw(st.integers(0, n)) for i, n in enumerate(a.shape))
    index = data.draw(hnp.arrays(np.int64, shape, elements=st.integers(0, a.shape[d] - 1)))
    # Everywhere but in d the index is a corner of the array.
    corner = a[tuple(slice(None) if i == d else slice(n) for i, n in enumerate(shape))]
    same(cresset.gather(data.draw(laid_out(a)), d, tensor(index)), np.take_along_axis(corner, index, d))
    want = a.copy()
    places = list(np.indices(shape))
    places[d] = index
    np.add.at(want, tuple(places), 1.0)
    same(data.draw(laid_out(a)).scatter_add(d, tensor(index), cresset.ones(shape, dtype=cresset.float64)), want)


@given(st.data())
def test_index_select_and_take(data):
    a = data.draw(arrays(min_dims=1, min_side=1))
    d = data.draw(st.integers(-a.ndim, a.ndim - 1))
    index = np.array(data.draw(st.lists(st.integers(0, a.shape[d] - 1), max_size=5)), np.int64)
    same(cresset.index_select(data.draw(laid_out(a)), d, tensor(index)), a.take(index, d))
    flat = np.array(data.draw(st.lists(st.integers(-a.size, a.size - 1), max_size=5)), np.int64)
    same(cresset.take(data.draw(laid_out(a)), tensor(flat)), a.reshape(-1)[flat])
