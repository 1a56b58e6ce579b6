"""Numbers beyond the largest int64 are values for uint64 and for floating types, by every way that an operator takes a number."""

import pytest

import cresset
from cresset.utils._python_dispatch import TorchDispatchMode

BIG = 2**63 + 5
u64, f64 = cresset.uint64, cresset.float64


class Through(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


WAYS = {
    "full": lambda t: cresset.full((2,), BIG, dtype=t),
    "full_like": lambda t: cresset.full_like(cresset.zeros(2, dtype=t), BIG),
    "new_full": lambda t: cresset.zeros(1).new_full((2,), BIG, dtype=t),
    "fill_": lambda t: cresset.zeros(2, dtype=t).fill_(BIG),
    "scalar_tensor": lambda t: cresset.scalar_tensor(BIG, dtype=t).expand(2),
    "torch.ops": lambda t: cresset.ops.aten.full.default([2], BIG, dtype=t),
    "a packet": lambda t: cresset.ops.aten.fill_(cresset.zeros(2, dtype=t), BIG),
    "vmap": lambda t: cresset.vmap(lambda x: cresset.full_like(x, BIG, dtype=t))(cresset.ones(2)),
}


@pytest.mark.parametrize("dtype", [u64, f64])
@pytest.mark.parametrize("name", WAYS)
def test_a_big_number(name, dtype):
    expected = [BIG] * 2 if dtype is u64 else [float(BIG)] * 2
    assert WAYS[name](dtype).tolist() == expected
    with Through():
        assert WAYS[name](dtype).tolist() == expected


def test_no_other_integer_holds_it():
    for dtype in (cresset.int64, cresset.uint32, cresset.uint8):
        with pytest.raises(RuntimeError, match="without overflow"):
            cresset.full((1,), BIG, dtype=dtype)
    with pytest.raises(OverflowError):
        cresset.full((1,), 2**64, dtype=u64)
    with pytest.raises(RuntimeError, match="without overflow"):
        cresset.full((1,), BIG)


def test_a_bound():
    assert cresset.tensor([1.0]).clamp(max=BIG).tolist() == [1.0]
