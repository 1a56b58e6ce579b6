"""Attention of long sequences, which never holds the matrix of scores: results and gradients of the plain formula, every type and mask;
derivatives beyond the first; memory that grows with the length."""

import re
import subprocess
import sys

import pytest

import cresset

attention = cresset.nn.functional.scaled_dot_product_attention
INF = float("inf")


def plain(q, k, v, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):
    """The formula itself, in float64."""
    if enable_gqa:
        k, v = (t.repeat_interleave(q.size(1) // t.size(1), 1) for t in (k, v))
    scores = q @ k.transpose(-2, -1) * (q.size(-1) ** -0.5 if scale is None else scale)
    if attn_mask is not None and attn_mask.dtype == cresset.bool:
        scores = scores.masked_fill(~attn_mask, -INF)
    elif attn_mask is not None:
        scores = scores + attn_mask
    if is_causal:
        scores = scores.masked_fill(~cresset.ones(scores.shape[-2:], dtype=cresset.bool).tril(), -INF)
    high = scores.amax(-1, keepdim=True).detach()
    weights = (scores - cresset.where(high == -INF, 0.0, high)).exp()
    return weights / weights.sum(-1, keepdim=True).clamp_min(1e-300) @ v


def some_keys(*shape):
    mask = cresset.rand(*shape) > 0.3
    mask[..., 5, :] = False  # a query that sees nothing
    mask[..., 100:300, :] = False
    return mask


CASES = {  # sizes of queries, of keys; options
    "plain": ((1, 2, 600, 32), (1, 2, 700, 32), {}),
    "causal": ((2, 3, 700, 16), (2, 3, 700, 16), {"is_causal": True}),
    "causal, more keys": ((1, 1, 500, 8), (1, 1, 900, 8), {"is_causal": True}),
    "causal, fewer keys": ((1, 1, 900, 8), (1, 1, 500, 8), {"is_causal": True}),
    "numbers as mask": ((2, 2, 512, 24), (2, 2, 513, 24), {"attn_mask": lambda: cresset.randn(512, 513, dtype=cresset.float64)}),
    "mask of an image": ((2, 2, 512, 24), (2, 2, 513, 24), {"attn_mask": lambda: cresset.rand(2, 1, 512, 513) > 0.3}),
    "mask of keys": ((2, 2, 512, 24), (2, 2, 513, 24), {"attn_mask": lambda: cresset.rand(2, 1, 1, 513) > 0.3}),
    "queries without keys": ((1, 2, 512, 8), (1, 2, 600, 8), {"attn_mask": lambda: some_keys(512, 600)}),
    "shared heads": ((1, 4, 600, 16), (1, 2, 600, 16), {"enable_gqa": True}),
    "scale": ((1, 1, 530, 5), (1, 1, 530, 5), {"scale": 0.7}),
    "one query": ((1, 1, 1, 8), (1, 1, 1 << 18, 8), {}),
}
TOLERANCE = {cresset.float64: 1e-13, cresset.float32: 3e-6, cresset.bfloat16: 2e-2, cresset.float16: 3e-3}


def operands(name):
    cresset.manual_seed(0)
    queries, keys, options = CASES[name]
    tensors = [cresset.randn(*s, dtype=cresset.float64) for s in (queries, keys, keys, queries)]
    return tensors, {k: v() if callable(v) else v for k, v in options.items()}


def gradients(f, dtype, q, k, v, grad, **options):
    leaves = [t.to(dtype).requires_grad_() for t in (q, k, v)]
    if "attn_mask" in options and options["attn_mask"].dtype != cresset.bool:
        options["attn_mask"] = options["attn_mask"].to(dtype)
    out = f(*leaves, **options)
    return out, [out.detach(), *cresset.autograd.grad(out, leaves, grad.to(dtype))]


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_results_and_gradients(name, dtype):
    tensors, options = operands(name)
    _, want = gradients(plain, cresset.float64, *tensors, **options)
    out, got = gradients(attention, dtype, *tensors, **options)
    assert "FlashAttention" in type(out.grad_fn).__name__ or "FlashAttention" in str(out.grad_fn)
    for a, b in zip(got, want, strict=True):
        assert a.dtype == dtype
        assert float((a.double() - b).abs().max()) <= TOLERANCE[dtype] * (1 + float(b.abs().max()))


def test_the_same_bits_on_any_number_of_threads():
    tensors, options = operands("causal")
    before, results = cresset.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            cresset.set_num_threads(threads)
            results.append(gradients(attention, cresset.float32, *tensors, **options)[1])
    finally:
        cresset.set_num_threads(before)
    for other in results[1:]:
        assert all(cresset.equal(a, b) for a, b in zip(results[0], other, strict=True))


def test_operands_in_any_layout():
    q = cresset.randn(1, 700, 2, 16).transpose(1, 2)
    k, v = cresset.randn(1, 2, 16, 800).transpose(2, 3), cresset.randn(1, 2, 800, 32)[..., ::2]
    want = plain(q.double(), k.double(), v.double())
    assert float((attention(q, k, v) - want).abs().max()) < 1e-5


def test_numbers_that_are_none_stay_none():
    q, k, v = (cresset.randn(1, 1, 600, 8) for _ in range(3))
    q[0, 0, 3] = float("nan")
    out = attention(q, k, v)
    assert out[0, 0, 3].isnan().all() and not out[0, 0, 4:].isnan().any()


def test_derivatives_of_the_second_order():
    cresset.manual_seed(0)
    q, k, v = (cresset.randn(1, 1, 512, 4, dtype=cresset.float64, requires_grad=True) for _ in range(3))

    def second(f):
        first = cresset.autograd.grad(f(q, k, v, is_causal=True).sin().sum(), (q, k, v), create_graph=True)
        return [*first, *cresset.autograd.grad(sum((g * g).sum() for g in first), (q, k, v))]

    for a, b in zip(second(attention), second(plain), strict=True):
        assert float((a - b).abs().max()) <= 1e-12 * (1 + float(b.abs().max()))


@pytest.mark.parametrize("heads", [1, 2])
def test_heads_share_keys_where_they_are(heads):
    """Long and short sequences, first and second derivatives; nothing of the size of repeated keys is allocated."""
    cresset.manual_seed(0)
    for queries, keys in ((512, 512), (1, 40), (7, 9)):
        leaves = [cresset.randn(2, h, n, 4, dtype=cresset.float64, requires_grad=True) for h, n in ((4, queries), (heads, keys), (heads, keys))]
        found = []
        for f in (attention, plain):
            out = f(*leaves, enable_gqa=True)
            first = cresset.autograd.grad(out.sin().sum(), leaves, create_graph=True)
            found.append([out, *first, *cresset.autograd.grad(sum((g * g).sum() for g in first), leaves)])
        for a, b in zip(*found, strict=True):
            assert float((a - b).detach().abs().max()) <= 1e-12 * (1 + float(b.detach().abs().max()))
    query, key = cresset.randn(1, 8, 1, 64), cresset.randn(1, heads, 2000, 64)
    cresset._C._reset_peak_cpu_memory_stats()
    before = cresset._C._cpu_memory_stats()[0]
    attention(query, key, key, enable_gqa=True)
    assert cresset._C._cpu_memory_stats()[1] - before < key.nbytes


def test_shared_heads_are_counted():
    flash, flash_backward = cresset.ops.aten._scaled_dot_product_flash_attention_for_cpu, cresset.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
    query, key = cresset.randn(1, 4, 3, 8), cresset.randn(1, 3, 5, 8)
    words = "Number of heads in key and value must divide the number of heads in query; got [1, 4, 3, 8] and [1, 3, 5, 8]."
    with pytest.raises(RuntimeError, match=re.escape(words)):
        attention(query, key, key, enable_gqa=True)
    for other in (key, cresset.randn(2, 4, 5, 8)):
        with pytest.raises(RuntimeError, match="with heads a multiple of shared heads; got "):
            flash(query, other, other)
    with pytest.raises(RuntimeError, match="The size of tensor a \\(4\\) must match the size of tensor b \\(2\\)"):
        attention(query, key[:, :2], key[:, :2])
    key = key[:, :2]
    out, logs = flash(query, key, key)
    with pytest.raises(RuntimeError, match="flash_attention_backward: grad_out and out of the size of query"):
        flash_backward(out[:, :2], query, key, key, out, logs, 0.0, False)


def test_forward_mode():
    cresset.manual_seed(0)
    values = [cresset.randn(1, 2, 512, 4, dtype=cresset.float64) for _ in range(6)]
    mask, mask_t = (cresset.randn(512, 512, dtype=cresset.float64) for _ in range(2))
    for tangents in ((0, 1, 2), (1,), (0, 3), (3,)):
        inputs = [*values[:3], mask]
        directions = [t if i in tangents else cresset.zeros_like(t) for i, t in enumerate([*values[3:], mask_t])]
        _, got = cresset.func.jvp(attention, tuple(inputs), tuple(directions))
        _, want = cresset.func.jvp(plain, tuple(inputs), tuple(directions))
        assert float((got - want).abs().max()) <= 1e-12


def test_a_mask_that_is_learned_gets_its_gradient():
    q, k, v = (cresset.randn(1, 1, 520, 8, dtype=cresset.float64) for _ in range(3))
    mask = cresset.randn(520, 520, dtype=cresset.float64, requires_grad=True)
    (got,) = cresset.autograd.grad(attention(q, k, v, attn_mask=mask).sin().sum(), mask)
    (want,) = cresset.autograd.grad(plain(q, k, v, attn_mask=mask).sin().sum(), mask)
    assert float((got - want).abs().max()) <= 1e-12


def test_batches_of_vmap():
    q, k, v = (cresset.randn(3, 1, 2, 520, 8, dtype=cresset.float64) for _ in range(3))
    got = cresset.func.vmap(attention)(q, k, v)
    want = cresset.stack([plain(a, b, c) for a, b, c in zip(q, k, v, strict=True)])
    assert float((got - want).abs().max()) <= 1e-12


def test_memory_grows_with_the_length():
    program = """
import cresset, resource
def peak(tokens):
    q, k, v = (cresset.randn(1, 2, tokens, 16, requires_grad=True) for _ in range(3))
    cresset._C._reset_peak_cpu_memory_stats()
    before = cresset._C._cpu_memory_stats()[0]
    cresset.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()
    return cresset._C._cpu_memory_stats()[1] - before
print(peak(2048), peak(8192))
"""
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    few, many = map(int, out.stdout.split())
    assert many < 6 * few and many < 16 << 20  # the matrices of scores alone would take 512 MiB


LONG = cresset.randn(1, 2, 5000)


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("rows", [lambda n: LONG[..., :16].reshape(1, 2, 1, 16).expand(1, 2, n, 16), lambda n: LONG.as_strided((1, 2, n, 16), (10000, 5000, 5, 1)), lambda n: LONG[..., :n, None].expand(1, 2, n, 16)], ids=["one row", "rows that overlap", "one feature"])
def test_rows_that_share_memory(which, rows):
    lengths = (700, 800, 800)
    operands = [rows(n) if i == which else cresset.randn(1, 2, n, 16) for i, n in enumerate(lengths)]
    got = [t.detach().requires_grad_() for t in operands]
    want = [t.double().contiguous().requires_grad_() for t in operands]
    result, expected = attention(*got), plain(*want)
    assert float((result - expected).abs().max()) < 1e-5
    for a, b in zip(cresset.autograd.grad(result.sum(), got), cresset.autograd.grad(expected.sum(), want), strict=True):
        assert float((a - b).abs().max()) < 1e-3
