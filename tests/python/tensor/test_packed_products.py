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


# One row, few, and so many that the weights are widened first; sizes that fill no vector and no block.
@pytest.mark.parametrize("m, n, k", [(1, 5, 32), (3, 70, 33), (4, 129, 96), (5, 70, 33), (40, 129, 96), (0, 3, 4), (2, 3, 0)])
@pytest.mark.parametrize("dtype", [cresset.float32, cresset.bfloat16, cresset.float16])
def test_rows_of_eight_bits(dtype, m, n, k):
    x, rows, scales = cresset.randn(m, k).to(dtype), cresset.randint(-128, 127, (n, k), dtype=INT8), cresset.rand(n).to(dtype)
    out = cresset._weight_int8pack_mm(x, rows, scales)
    expected = x.double() @ (rows.double() * scales.double()[:, None]).t()
    assert out.dtype == dtype and out.is_contiguous()
    cresset.testing.assert_close(out, expected.to(dtype), rtol=1e-5 if dtype == cresset.float32 else 1e-2, atol=2e-3 if dtype == cresset.float32 else 1e-1)


def test_rows_of_eight_bits_refuse():
    x, rows, scales = cresset.randn(3, 32), cresset.randint(-128, 127, (5, 32), dtype=INT8), cresset.rand(5)
    assert cresset.equal(cresset._weight_int8pack_mm(cresset.randn(6, 64)[::2, :32], rows, scales).isnan().any(), cresset.tensor(False))
    for arguments, words in (
        ((x, rows.int(), scales), "expect B to be int8 tensor"),
        ((x, rows, scales[:4]), "expect scales to be 1d tensor with size 5"),
        ((x[0], rows, scales), "expect A to be 2D tensor"),
        ((x.t().contiguous().t(), rows, scales), "A must be contiguous on the last dimension"),
        ((x.double(), rows, scales.double()), "either 32-bit or 16-bit float tensor"),
        ((x, rows, scales.half()), "expected scalar type Float but found Half"),
    ):
        with pytest.raises(RuntimeError, match=words):
            cresset._weight_int8pack_mm(*arguments)


@pytest.mark.parametrize("m, n, k, group", [(1, 16, 64, 32), (3, 48, 256, 64), (4, 80, 256, 128), (5, 16, 64, 32), (40, 80, 256, 256), (0, 16, 32, 32)])
@pytest.mark.parametrize("dtype", [cresset.float32, cresset.bfloat16, cresset.float16])
def test_rows_of_four_bits(dtype, m, n, k, group):
    numbers = cresset.randint(0, 16, (n, k), dtype=cresset.int32)
    packed = cresset._convert_weight_to_int4pack_for_cpu(numbers, 2)
    assert packed.dtype == cresset.uint8 and packed.shape == (n, k // 2)
    x, facts = cresset.randn(m, k).to(dtype), cresset.rand(k // group, n, 2).to(dtype)
    scale, zero = (facts[..., i].double().t().repeat_interleave(group, 1) for i in (0, 1))
    out = cresset._weight_int4pack_mm_for_cpu(x, packed, group, facts)
    expected = x.double() @ ((numbers - 8).double() * scale + zero).t()
    cresset.testing.assert_close(out, expected.to(dtype), rtol=1e-5 if dtype == cresset.float32 else 1e-2, atol=1e-4 if dtype == cresset.float32 else 1e-1)


def test_rows_of_four_bits_refuse():
    numbers = cresset.randint(0, 16, (16, 64), dtype=cresset.int32)
    packed, x, facts = cresset._convert_weight_to_int4pack_for_cpu(numbers, 2), cresset.randn(3, 64), cresset.rand(2, 16, 2)
    with pytest.raises(RuntimeError, match="expect qGroupSize to be 32, 64, 128 or 256, got 16"):
        cresset._weight_int4pack_mm_for_cpu(x, packed, 16, facts)
    with pytest.raises(RuntimeError, match=r"expect qScaleAndZeros to be 3d tensor with sizes \[:, 16, 2\]"):
        cresset._weight_int4pack_mm_for_cpu(x, packed, 64, facts)
    with pytest.raises(RuntimeError, match="expect N to be dividable by 16"):
        cresset._convert_weight_to_int4pack_for_cpu(numbers[:5], 2)


def test_shapes_without_data():
    meta = lambda *sizes, dtype: cresset.empty(*sizes, dtype=dtype, device="meta")
    x = meta(3, 64, dtype=cresset.bfloat16)
    out = cresset._weight_int8pack_mm(x, meta(5, 64, dtype=INT8), meta(5, dtype=cresset.bfloat16))
    assert out.shape == (3, 5) and out.dtype == cresset.bfloat16
    out = cresset._weight_int4pack_mm_for_cpu(x, meta(16, 32, dtype=cresset.uint8), 32, meta(2, 16, 2, dtype=cresset.bfloat16))
    assert out.shape == (3, 16) and out.dtype == cresset.bfloat16
    assert cresset._int_mm(meta(3, 4, dtype=INT8), meta(4, 2, dtype=INT8)).dtype == cresset.int32


# ---- 8-bit floats

F8 = cresset.float8_e4m3fn


def matrices(m=4, k=32, n=16, types=(F8, F8)):
    cresset.manual_seed(0)
    return cresset.randn(m, k).to(types[0]), cresset.randn(n, k).to(types[1]).t()


@pytest.mark.parametrize("types", [(F8, F8), (cresset.float8_e5m2, F8), (cresset.float8_e4m3fnuz, cresset.float8_e5m2fnuz)])
@pytest.mark.parametrize("lines", [False, True])
@pytest.mark.parametrize("bias", [None, cresset.float32, cresset.bfloat16])
@pytest.mark.parametrize("out_dtype", [None, cresset.float32, cresset.bfloat16, cresset.float8_e5m2])
def test_scaled_products(types, lines, bias, out_dtype):
    a, b = matrices(types=types)
    scale_a, scale_b = (cresset.rand(4, 1) + 1, cresset.rand(1, 16) + 1) if lines else (cresset.tensor(2.0), cresset.tensor([3.0]))
    added = None if bias is None else cresset.randn(16).to(bias)
    out = cresset._scaled_mm(a, b, scale_a, scale_b, bias=added, out_dtype=out_dtype)
    expected = (a.float() @ b.float()) * scale_a * scale_b + (0 if bias is None else added.float())
    expected = expected.to(out_dtype or types[0])
    assert out.dtype == expected.dtype
    cresset.testing.assert_close(out.float(), expected.float(), rtol=1e-5 if out_dtype == cresset.float32 else 0.13, atol=1e-5)
    given = cresset.empty(0, dtype=out.dtype)
    assert cresset._scaled_mm(a, b, scale_a, scale_b, bias=added, out_dtype=out_dtype, out=given) is given
    assert cresset.equal(given.float(), out.float())


def test_scaled_products_end_at_the_largest_number():
    a, b = matrices()
    one = cresset.tensor(1.0)
    assert cresset._scaled_mm(a, b, one * 1e4, one).float().abs().max() == 448
    assert cresset._scaled_mm(a, b, one * 1e6, one, out_dtype=cresset.float8_e5m2).float().abs().max() == 57344
    assert cresset._scaled_mm(a, b, one * float("nan"), one).float().isnan().all()
    halved = cresset._scaled_mm(a, b, one, one, scale_result=one * 2, out_dtype=F8)
    assert cresset.equal(halved.float(), (a.float() @ b.float() / 2).to(F8).float())
    # As in PyTorch: the type of out decides, and results that are no 8-bit floats are not rescaled.
    out = cresset._scaled_mm(a, b, one, one, out=cresset.empty(4, 16))
    assert cresset.equal(out, cresset._scaled_mm(a, b, one, one, scale_result=one * 2, out_dtype=cresset.float32))


def test_scaled_products_refuse():
    a, b = matrices()
    one, column = cresset.tensor(1.0), cresset.ones(4, 1)
    for arguments, keywords, error, words in (
        ((a, b[:5], one, one), {}, RuntimeError, r"mat_a and mat_b shapes cannot be multiplied \(4x32 and 5x16\)"),
        ((a[None], b, one, one), {}, RuntimeError, "mat1 must be a matrix"),
        ((a, b[0], one, one), {}, RuntimeError, "mat2 must be a matrix"),
        ((a, b, one, one), {"bias": cresset.ones(15)}, RuntimeError, "Bias must be size 16 but got 15"),
        ((a, b, column, one), {}, ValueError, r"scale_a should be \(4, 1\) and scale_b should be \(1, 16\)"),
        ((a, b, one.double(), one), {}, ValueError, r"scale_a.dtype\(\)=Double"),
        ((a.float(), b.float(), one, one), {}, ValueError, r"a and b should be float8"),
        ((a, b, one, one), {"scale_result": cresset.ones(2)}, RuntimeError, "scale_result must be a float scalar"),
        ((a, b, one, one), {"out_dtype": cresset.float32, "out": cresset.empty(4, 16).half()}, ValueError, "out_dtype must match output matrix type"),
    ):
        with pytest.raises(error, match=words):
            cresset._scaled_mm(*arguments, **keywords)
