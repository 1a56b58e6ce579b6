"""linspace and logspace between batches: the type comes from the ends, as in PyTorch 2.13, and no example warns."""

import warnings

import pytest

import cresset
from cresset.func import vmap

# (type of start, type of end or a number, type of the result)
TYPES = [
    ("float32", "float64", "float64"),
    ("float64", "int64", "float64"),
    ("int64", "int64", "float32"),
    ("int64", "float32", "float32"),
    ("complex64", "float64", "complex128"),
    ("float16", 4.5, "float64"),
    ("float16", 4, "float16"),
    ("int64", 4.5, "float64"),
    ("float32", 4j, "complex128"),
]


@pytest.mark.parametrize("name", ["linspace", "logspace"])
@pytest.mark.parametrize(("start", "end", "result"), TYPES)
def test_types(name, start, end, result):
    make = getattr(cresset, name)
    a = cresset.tensor([1, 0]).to(getattr(cresset, start))
    b = cresset.tensor([3, 1]).to(getattr(cresset, end)) if isinstance(end, str) else end
    pairs = [(a, b), (b, a)]
    for x, y in pairs:
        dims = tuple(0 if isinstance(v, cresset.Tensor) else None for v in (x, y))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            got = vmap(lambda p, q: make(p, q, 3), in_dims=dims)(x, y)
        pick = lambda v, i: v[i] if isinstance(v, cresset.Tensor) else v  # noqa: E731
        want = cresset.stack([make(pick(x, i), pick(y, i), 3, dtype=getattr(cresset, result)) for i in range(2)])
        assert got.dtype is getattr(cresset, result)
        cresset.testing.assert_close(got, want)


def test_one_end_batched_and_nested():
    ends = cresset.tensor([[1.0, 2.0], [3.0, 4.0]])
    one = vmap(lambda e: cresset.linspace(0, e, 3))(ends[0])
    assert one.tolist() == [[0.0, 0.5, 1.0], [0.0, 1.0, 2.0]]
    two = vmap(vmap(lambda e: cresset.linspace(cresset.tensor(0.0), e, 2)))(ends)
    assert two.tolist() == [[[0.0, 1.0], [0.0, 2.0]], [[0.0, 3.0], [0.0, 4.0]]]
    assert vmap(lambda e: cresset.linspace(0, e, 3, dtype=cresset.float64))(ends[0]).dtype is cresset.float64
    with pytest.raises(RuntimeError, match="only supports 0-dimensional start and end tensors"):
        vmap(lambda e: cresset.linspace(0, e, 3))(ends)
