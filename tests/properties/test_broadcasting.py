"""Broadcasting against NumPy: shapes, values, strides of expanded views, in-place forms, and shapes that do not fit."""

import cresset
import numpy as np
import pytest
from arrays import REAL, arrays, laid_out, same, shapes, tensor
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "maximum": np.maximum, "minimum": np.minimum, "less": np.less, "eq": np.equal}


def together(n, min_side=0):
    """n shapes that fit together."""
    return hnp.mutually_broadcastable_shapes(num_shapes=n, max_dims=4, min_side=min_side, max_side=3).map(lambda found: found.input_shapes)


def fits(*several):
    try:
        return np.broadcast_shapes(*several)
    except ValueError:
        return None


@given(st.lists(shapes(min_side=0, max_side=3), min_size=1, max_size=3))
def test_broadcast_shapes(several):
    want = fits(*several)
    if want is None:
        with pytest.raises(RuntimeError):
            cresset.broadcast_shapes(*several)
    else:
        assert tuple(cresset.broadcast_shapes(*several)) == want


@given(st.data(), st.sampled_from(sorted(BINARY)))
def test_binary_operators(data, name):
    first, second = data.draw(together(2))
    a, b = data.draw(arrays(REAL, shape=first)), data.draw(arrays(REAL, shape=second))
    same(getattr(cresset, name)(data.draw(laid_out(a)), data.draw(laid_out(b))), BINARY[name](a, b), dtype=False)


@given(shapes(), shapes())
def test_shapes_that_do_not_fit(first, second):
    a, b = cresset.zeros(first), cresset.zeros(second)
    if fits(first, second) is None:
        with pytest.raises(RuntimeError, match="must match"):
            a + b
    else:
        assert tuple((a + b).shape) == fits(first, second)


@given(st.data())
def test_where_and_addcmul(data):
    one, two, three = data.draw(together(3))
    condition = data.draw(arrays([np.dtype(bool)], shape=one))
    a, b = (data.draw(arrays([np.dtype(np.float64)], shape=shape)) for shape in (two, three))
    same(cresset.where(tensor(condition), tensor(a), tensor(b)), np.where(condition, a, b))
    same(cresset.addcmul(tensor(condition).to(cresset.float64), tensor(a), tensor(b), value=2), condition + 2 * a * b)


@given(st.data())
def test_expand(data):
    a = data.draw(arrays(min_side=1, max_dims=3))
    shape = data.draw(hnp.broadcastable_shapes(a.shape, min_dims=a.ndim, max_dims=4, max_side=3))
    if fits(a.shape, shape) != shape:
        with pytest.raises(RuntimeError):
            tensor(a).expand(shape)
        return
    x = tensor(a)
    view = x.expand(shape)
    same(view, np.broadcast_to(a, shape))
    assert view.data_ptr() == x.data_ptr()
    assert all(stride == 0 for stride, n, old in zip(view.stride()[::-1], shape[::-1], a.shape[::-1]) if old == 1 and n > 1)


@given(st.data())
def test_in_place_keeps_the_shape(data):
    first, second = data.draw(together(2, min_side=1))
    a, b = (data.draw(arrays([np.dtype(np.float64)], shape=shape)) for shape in (first, second))
    x = data.draw(laid_out(a))
    if fits(first, second) == first:
        same(x.mul_(tensor(b)), a * b)
        x.copy_(tensor(b))
        same(x, np.broadcast_to(b, first))
    else:
        with pytest.raises(RuntimeError):
            x.mul_(tensor(b))
        same(x, a)


@given(st.lists(arrays([np.dtype(np.float64)], max_dims=2, max_side=3), min_size=2, max_size=3))
def test_broadcast_tensors(several):
    if fits(*(a.shape for a in several)) is None:
        return
    for have, want in zip(cresset.broadcast_tensors(*map(tensor, several)), np.broadcast_arrays(*several)):
        same(have, want)
