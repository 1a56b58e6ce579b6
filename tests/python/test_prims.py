"""What libraries take from _prims and _refs. Numbers and words are PyTorch's."""

import inspect

import pytest

import cresset
from cresset._prims.context import TorchRefsMode
from cresset._prims_common.wrappers import _maybe_remove_out_wrapper, out_wrapper


@out_wrapper()
def plus(a, b=2):
    return a + b


@out_wrapper("quotient", "rest")
def parts(a):
    return a // 2, a % 2


def test_out_of_one_tensor():
    x = cresset.ones(3)
    assert list(inspect.signature(plus).parameters) == ["a", "b", "out"] and plus.__name__ == "plus"
    for out in (cresset.empty(3), cresset.empty(0), cresset.empty(3, dtype=cresset.float64)):
        assert plus(x, out=out) is out and out.tolist() == [3.0, 3.0, 3.0]
    with pytest.raises(RuntimeError, match="Attempting to cast from .*float32 to out tensor with dtype .*int64, but this can't be cast because it is not safe!"):
        plus(x, out=cresset.empty(3, dtype=cresset.int64))
    with pytest.raises(AssertionError, match="out must be TensorLike, got <class 'int'>"):
        plus(x, out=3)
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype .*float32 but got .*float64 instead"):
        out_wrapper(exact_dtype=True)(lambda a: a)(x, out=cresset.empty(3, dtype=cresset.float64))
    assert out_wrapper(pass_is_out=True)(lambda a, is_out: a + is_out)(x, out=cresset.empty(3)).tolist() == [2.0, 2.0, 2.0]


def test_out_of_several_tensors():
    x = cresset.tensor([5.0, 2.0])
    quotient, rest = parts(x)
    assert quotient.tolist() == [2.0, 1.0] and parts(x).rest.tolist() == rest.tolist() == [1.0, 0.0]
    out = (cresset.empty(2), cresset.empty(2))
    assert parts(x, out=out).quotient is out[0] and out[1].tolist() == [1.0, 0.0]
    with pytest.raises(TypeError, match=r"parts\(\): out must be a tuple of 2 tensors; a Tensor was given."):
        parts(x, out=x)
    assert _maybe_remove_out_wrapper(parts)(x)[0].tolist() == [2.0, 1.0] and _maybe_remove_out_wrapper(len) is len


def test_products_over_several_dimensions():
    x = cresset.full((2, 3, 4), 2.0)
    prod = cresset._refs.prod
    assert prod(x, [0, 2]).tolist() == [256.0] * 3 and prod(x, dim=[0, 2], keepdim=True).shape == (1, 3, 1)
    assert prod(x, []).item() == prod(x).item() == 2.0**24 and prod(x, 1, dtype=cresset.float64).dtype is cresset.float64
    assert prod(cresset.empty(2, 0), [0, 1]).item() == 1.0 and prod(cresset.tensor(3), [0]).item() == 3
    out = cresset.empty(0)
    assert prod(x, [0, 2], out=out) is out and out.shape == (3,)
    with pytest.raises(RuntimeError, match="duplicate value in the list of dims"):
        prod(x, [0, 0])
    with pytest.raises(IndexError, match=r"Dimension out of range \(expected to be in range of \[-3, 2\], but got 5\)"):
        prod(x, [5])


def test_functions_in_the_mode_of_references():
    with TorchRefsMode(strict=True):
        assert cresset.add(cresset.ones(2), 1).tolist() == [2.0, 2.0]


def test_check():
    from cresset._prims_common import check

    with pytest.warns(FutureWarning, match="`torch._prims_common.check` is deprecated and will be removed in the future. Please use `torch._check"):
        assert check(True, lambda: "words") is None
    with pytest.warns(FutureWarning), pytest.raises(ValueError, match="words"):
        check(False, lambda: "words", ValueError)


@pytest.mark.parametrize("number, expected", [(2, "float32"), (2.5, "float32"), (True, "float32"), (1 + 1j, "complex64")])
def test_numbers_stand_for_tensors(number, expected):
    x = cresset.ones(2)
    for result in (cresset.ops.prims.mul(x, number), cresset.ops.prims.mul(number, x), cresset._prims.mul(x, number)):
        assert result.dtype is getattr(cresset, expected) and result.tolist() == [number] * 2
