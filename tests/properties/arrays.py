"""NumPy arrays and the tensors that should hold the same: strategies and comparison."""

import cresset
import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

# Small numbers: sums and products of a few of them are exact in single precision.
ELEMENTS = {
    np.dtype(bool): st.booleans(),
    np.dtype(np.int32): st.integers(-9, 9),
    np.dtype(np.int64): st.integers(-9, 9),
    np.dtype(np.float32): st.integers(-36, 36).map(lambda n: n / 4),
    np.dtype(np.float64): st.integers(-36, 36).map(lambda n: n / 4),
    np.dtype(np.complex128): st.builds(complex, st.integers(-5, 5), st.integers(-5, 5)),
}
REAL = [d for d in ELEMENTS if d.kind in "if"]


def shapes(min_dims=0, max_dims=4, min_side=0, max_side=4):
    return hnp.array_shapes(min_dims=max(min_dims, 1), max_dims=max_dims, min_side=min_side, max_side=max_side) | (
        st.just(()) if min_dims == 0 else st.nothing()
    )


@st.composite
def arrays(draw, dtypes=tuple(ELEMENTS), shape=None, **limits):
    dtype = draw(st.sampled_from(list(dtypes)))
    return draw(hnp.arrays(dtype, shape if shape is not None else shapes(**limits), elements=ELEMENTS[dtype]))


def tensor(array):
    """A tensor with a copy of the array."""
    return cresset.from_numpy(np.array(array)).reshape(np.shape(array))


@st.composite
def laid_out(draw, array):
    """A tensor with the values of the array in some layout: dense, permuted in memory, or every other element of a larger one."""
    layout = draw(st.sampled_from(["dense", "permuted", "gaps"]))
    if layout == "permuted" and array.ndim:
        order = draw(st.permutations(range(array.ndim)))
        return tensor(np.ascontiguousarray(array.transpose(order))).permute(np.argsort(order).tolist())
    if layout == "gaps" and array.ndim:
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
        wide[..., ::2] = array
        return tensor(wide)[..., ::2]
    return tensor(array)


def memory(t):
    """The address where the tensor's storage begins."""
    return t.data_ptr() - t.storage_offset() * t.element_size()


def numpy(t):
    return t.detach().resolve_conj().resolve_neg().numpy()


def same(t, array, rtol=0.0, atol=0.0, dtype=True):
    """Asserts that the tensor has the array's shape, values and (unless dtype=False) type. NaN equals NaN."""
    have, want = numpy(t), np.asarray(array)
    assert have.shape == want.shape, f"shape {have.shape}, NumPy has {want.shape}"
    if dtype:
        assert have.dtype == want.dtype, f"dtype {have.dtype}, NumPy has {want.dtype}"
    np.testing.assert_allclose(have, want, rtol=rtol, atol=atol)
