"""Operators of the class, promotion with Python numbers, conversion to Python numbers."""

import operator

import pytest

import cresset as torch


def same(a, b, dtype=None):
    assert a.tolist() == pytest.approx(b) and (dtype is None or a.dtype is dtype)


def test_arithmetic():
    x = torch.arange(1, 4)
    same(x + x, [2, 4, 6], torch.int64)
    same(x * 2.5, [2.5, 5.0, 7.5], torch.float32)
    same(2 - x, [1, 0, -1], torch.int64)
    same(x / 2, [0.5, 1.0, 1.5], torch.float32)
    same(6 / x, [6.0, 3.0, 2.0], torch.float32)
    same(7 // x, [7, 3, 2], torch.int64)
    same(7 % x, [0, 1, 1], torch.int64)
    same(-x % 3, [2, 1, 0], torch.int64)
    same(2**x, [2, 4, 8], torch.int64)
    same(x**2, [1, 4, 9], torch.int64)
    same(x << 1, [2, 4, 6])
    same(1 << x, [2, 4, 8])
    same(x & 1, [1, 0, 1])
    same(x | 4, [5, 6, 7])
    same(True ^ torch.tensor([True, False]), [False, True], torch.bool)
    same(-x, [-1, -2, -3])
    same(~x, [-2, -3, -4])
    same(abs(-x), [1, 2, 3])
    same(+x, [1, 2, 3])
    same(torch.ones(2, 3) @ torch.ones(3), [3.0, 3.0])
    same(x + 1j, [1 + 1j, 2 + 1j, 3 + 1j], torch.complex64)


@pytest.mark.parametrize("op", [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge])
def test_comparison(op):
    values = [1, 2, 3]
    x = torch.tensor(values)
    assert op(x, 2).tolist() == [op(v, 2) for v in values]
    assert op(2, x).tolist() == [op(2, v) for v in values]
    assert op(x, torch.tensor([3, 2, 1])).tolist() == [op(v, w) for v, w in zip(values, [3, 2, 1])]
    assert op(x, x).dtype is torch.bool


def test_in_place():
    x = torch.ones(2)
    alias = x
    x += 1
    x *= 3
    x -= torch.tensor(1.0)
    x /= 5
    x **= 2
    assert x is alias and x.tolist() == [1.0, 1.0]
    i = torch.arange(3)
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        i += 1.5
    i //= 2
    i <<= 1
    i |= 1
    assert i.tolist() == [1, 1, 3]


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda x: x + "a", r"unsupported operand type\(s\) for \+: 'Tensor' and 'str'"),
        (lambda x: None + x, r"unsupported operand type\(s\) for \+: 'NoneType' and 'Tensor'"),
        (lambda x: x @ 2, r"unsupported operand type\(s\) for @: 'Tensor' and 'int'"),
        (lambda x: x < "a", "'<' not supported between instances of 'Tensor' and 'str'"),
        (lambda x: pow(x, 2, 3), "with a modulus"),
    ],
)
def test_foreign_operands(call, words):
    with pytest.raises(TypeError, match=words):
        call(torch.ones(2))


def test_equality_with_anything():
    assert (torch.ones(2) == "a") is False and (torch.ones(2) != None) is True  # noqa: E711


def test_shape_errors_name_the_operand():
    with pytest.raises(RuntimeError, match="The size of tensor a .2. must match the size of tensor b .3. at non-singleton dimension 0"):
        torch.ones(2) + torch.ones(3)


def test_truth():
    assert bool(torch.tensor([1.5])) and not torch.tensor(0)
    with pytest.raises(RuntimeError, match="more than one value is ambiguous"):
        bool(torch.ones(2))
    with pytest.raises(RuntimeError, match="no values is ambiguous"):
        bool(torch.tensor([]))


def test_conversion():
    assert int(torch.tensor(3.7)) == 3 and float(torch.tensor([[4]])) == 4.0 and complex(torch.tensor(2)) == 2 + 0j
    assert torch.tensor(5).item() == 5 and type(torch.tensor(True).item()) is bool
    assert [10, 20][torch.tensor(1)] == 20
    assert f"{torch.tensor(1.25):.1f}" == "1.2"
    with pytest.raises(ValueError, match="only one element tensors can be converted to Python scalars"):
        int(torch.ones(2))
    with pytest.raises(RuntimeError, match="a Tensor with 2 elements cannot be converted to Scalar"):
        torch.ones(2).item()
    with pytest.raises(TypeError, match="only integer tensors of a single element can be converted to an index"):
        [1, 2][torch.tensor(1.0)]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_item_and_tolist_of_every_dtype(dtype):
    t = torch.tensor([[1, 0], [1, 1]], dtype=getattr(torch, dtype))
    assert t.tolist() == [[1, 0], [1, 1]] and t.t().tolist() == [[1, 1], [0, 1]]
    assert t[1, 0].item() == 1 and t[0, 1].tolist() == 0
    assert type(t[0, 0].item()) is (bool if dtype == "bool" else complex if "complex" in dtype else float if "float" in dtype else int)


def test_hash_is_identity():
    x = torch.ones(2)
    assert hash(x) == id(x) and x in {x}
