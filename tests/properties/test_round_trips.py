"""Ways out of a tensor and back: text, lists, NumPy, pickles, files, DLPack, schemas."""

import io
import pickle

import cresset
import numpy as np
import pytest
from arrays import ELEMENTS, arrays, laid_out, same, tensor
from hypothesis import given
from hypothesis import strategies as st

NAMES = {"tensor": cresset.tensor, "cresset": cresset, "inf": float("inf"), "nan": float("nan")}
ANY_FLOAT = st.floats(width=32) | st.sampled_from([0.0, -0.0, 1e-30, 1e30, 123456.0, float("nan"), float("inf")])


@pytest.fixture(autouse=True)
def print_all_digits():
    cresset.set_printoptions(precision=17, sci_mode=True, threshold=10_000)
    yield
    cresset.set_printoptions(profile="default", sci_mode=None)


def read_back(x):
    """The tensor that the printed text of x makes."""
    text = repr(x)
    # size=(...) only describes a tensor without elements.
    if ", size=" in text:
        head, size = text.split(", size=")
        shape = size[: size.index(")") + 1]
        return eval(head + size[len(shape) :], NAMES).reshape(eval(shape))
    return eval(text, NAMES)


@given(st.data())
def test_printing_is_read_back(data):
    a = data.draw(arrays())
    x = data.draw(laid_out(a))
    back = read_back(x)
    # The text of integers and default types leaves the dtype out.
    same(back.to(x.dtype), a)
    assert back.dtype == x.dtype or "dtype" not in repr(x)


@given(st.lists(ANY_FLOAT, max_size=6), st.sampled_from(["float32", "float64"]))
def test_any_float_is_read_back(items, dtype):
    x = cresset.tensor(items, dtype=getattr(cresset, dtype))
    back = read_back(x).to(x.dtype)
    assert np.array_equal(back.numpy(), x.numpy(), equal_nan=True)


@given(st.data())
def test_lists(data):
    a = data.draw(arrays(min_side=1))
    x = data.draw(laid_out(a))
    assert x.tolist() == a.tolist()
    same(cresset.tensor(x.tolist(), dtype=x.dtype), a)


@given(st.data())
def test_numpy_pickle_dlpack(data):
    a = data.draw(arrays())
    x = data.draw(laid_out(a))
    assert x.numpy().__array_interface__["data"][0] == x.data_ptr() or not a.size
    same(cresset.from_numpy(x.numpy()), a)
    same(pickle.loads(pickle.dumps(x)), a)
    same(cresset.from_dlpack(x), a)
    same(cresset.from_dlpack(a.copy()), a)


@given(st.dictionaries(st.text("abc.", min_size=1, max_size=4), arrays([d for d in ELEMENTS if d.kind != "c"], min_side=1, max_dims=3), max_size=3))
def test_files(contents):
    file = io.BytesIO()
    cresset.save({name: tensor(a) for name, a in contents.items()}, file)
    file.seek(0)
    back = cresset.load(file)
    assert set(back) == set(contents)
    for name, a in contents.items():
        same(back[name], a)


@given(st.data())
def test_bytes_and_views_of_other_types(data):
    a = data.draw(arrays([np.dtype(np.float64), np.dtype(np.int64)], min_dims=1, min_side=1))
    x = tensor(a)
    for other in (cresset.int32, cresset.uint8, cresset.complex64, cresset.bool):
        if other is not cresset.bool:
            assert x.view(other).view(x.dtype).equal(x)
    assert x.view(cresset.uint8).numpy().tobytes() == a.tobytes()


@pytest.mark.parametrize("text", ["cpu", "cpu:0", "cpu:7", "meta"])
def test_devices(text):
    assert str(cresset.device(text)) == text
    assert eval(repr(cresset.device(text)), {"device": cresset.device}) == cresset.device(text)
