"""Products of matrices whose elements have eight or four bits."""

import itertools

import cresset
import pytest

INT8 = cresset.int8


@pytest.mark.parametrize("m, k, n", list(itertools.product((0, 5), (0, 3, 8), (4,))))
@pytest.mark.parametrize("first", ["int8", "uint8"])
def test_int_mm(m, k, n, first):
    a = cresset.randint(0, 127, (2 * k, m), dtype=getattr(cresset, first))[::2].t()
    b = cresset.randint(-128, 127, (k, n), dtype=INT8)
    out = cresset._int_mm(a, b)
    assert out.dtype == cresset.int32 and cresset.equal(out, a.int() @ b.int())
    given = cresset.empty(m, n, dtype=cresset.int32)
    assert cresset._int_mm(a, b, out=given) is given and cresset.equal(given, out)


@pytest.mark.parametrize(
    "a, b, words",
    [
        (cresset.ones(2, 3), cresset.ones(3, 2), "Expected self dtype to be int8 or uint8 but got float"),
        (cresset.ones(2, 3, dtype=INT8), cresset.ones(3, 2), "Expected mat2 dtype to be of type int8 but got float"),
        (cresset.ones(2, 3, dtype=INT8), cresset.ones(4, 2, dtype=INT8), r"self.size\(1\) needs to match mat2.size\(0\) but got 3 and 4"),
        (cresset.ones(2, 3, 1, dtype=INT8), cresset.ones(3, 2, dtype=INT8), "Expected self to be of dimension 2 but got 3"),
    ],
)
def test_int_mm_refuses(a, b, words):
    with pytest.raises(RuntimeError, match=words):
        cresset._int_mm(a, b)


@pytest.mark.parametrize("gelu", [False, True])
def test_addmm_activation(gelu):
    c, a, b = (cresset.randn(s, dtype=cresset.float64, requires_grad=True) for s in ((4,), (2, 3), (3, 4)))
    out = cresset._addmm_activation(c, a, b, beta=2, alpha=0.5, use_gelu=gelu)
    act = cresset.nn.functional.gelu if gelu else cresset.relu
    cresset.testing.assert_close(out, act(2 * c + 0.5 * a @ b))
    assert cresset.autograd.gradcheck(lambda *t: cresset._addmm_activation(*t, use_gelu=gelu), (c, a, b))


@pytest.mark.parametrize("dtype", [cresset.float32, cresset.bfloat16, cresset.float16])
def test_rows_of_eight_bits(dtype):
    x, rows, scales = cresset.randn(3, 32).to(dtype), cresset.randint(-128, 127, (5, 32), dtype=INT8), cresset.rand(5).to(dtype)
    out = cresset._weight_int8pack_mm(x, rows, scales)
    assert out.dtype == dtype
    cresset.testing.assert_close(out.float(), x.float() @ (rows.float() * scales.float()[:, None]).t(), rtol=2e-2, atol=1e-1)
    with pytest.raises(RuntimeError, match="expect B to be int8 tensor"):
        cresset._weight_int8pack_mm(x, rows.int(), scales)
    with pytest.raises(RuntimeError, match="expect scales to be 1d tensor with size 5"):
        cresset._weight_int8pack_mm(x, rows, scales[:4])


@pytest.mark.parametrize("dtype", [cresset.float32, cresset.bfloat16])
def test_rows_of_four_bits(dtype):
    numbers = cresset.randint(0, 16, (16, 64), dtype=cresset.int32)
    packed = cresset._convert_weight_to_int4pack_for_cpu(numbers, 2)
    assert packed.dtype == cresset.uint8 and packed.shape == (16, 32)
    x, facts = cresset.randn(3, 64).to(dtype), cresset.rand(2, 16, 2).to(dtype)
    scale, zero = (facts[..., n].float().t().repeat_interleave(32, 1) for n in (0, 1))
    out = cresset._weight_int4pack_mm_for_cpu(x, packed, 32, facts)
    cresset.testing.assert_close(out.float(), x.float() @ ((numbers - 8).float() * scale + zero).t(), rtol=2e-2, atol=1e-1)
    with pytest.raises(RuntimeError, match="expect qGroupSize to be 32, 64, 128 or 256, got 16"):
        cresset._weight_int4pack_mm_for_cpu(x, packed, 16, facts)
    with pytest.raises(RuntimeError, match="expect N to be dividable by 16"):
        cresset._convert_weight_to_int4pack_for_cpu(numbers[:5], 2)
