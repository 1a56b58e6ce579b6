"""Attention between sequences of different lengths: the same as attention of each by itself."""

import math

import numpy
import pytest

import cresset
from cresset.autograd import gradcheck
from cresset.nn.attention.varlen import AuxRequest, varlen_attn, varlen_attn_out

LENGTHS_Q, LENGTHS_K = (2, 4, 1), (3, 4, 5)


def cuts(lengths):
    return cresset.tensor([0, *lengths]).cumsum(0).to(cresset.int32)


def inputs(kv_heads=4, dtype=cresset.float32):
    cresset.manual_seed(0)
    q = cresset.randn(sum(LENGTHS_Q), 4, 8, dtype=dtype)
    return q, *(cresset.randn(sum(LENGTHS_K), kv_heads, 8, dtype=dtype) for _ in range(2))


def attend(*tensors, **options):
    return varlen_attn(*tensors, cuts(LENGTHS_Q), cuts(LENGTHS_K), max(LENGTHS_Q), max(LENGTHS_K), **options)


def expected(q, k, v, window=(-1, -1), scale=None):
    """Output and logarithms, by NumPy, a query at a time."""
    q, k, v = (t.numpy().astype("float64") for t in (q, k, v))
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    out, lse = numpy.zeros(q.shape), numpy.full((q.shape[1], q.shape[0]), -math.inf)
    first_q = first_k = 0
    for rows, columns in zip(LENGTHS_Q, LENGTHS_K):
        for i in range(rows):
            place = i + columns - rows
            seen = [j for j in range(columns) if (window[0] < 0 or j >= place - window[0]) and (window[1] < 0 or j <= place + window[1])]
            for head in range(q.shape[1] if seen else 0):
                of = head * k.shape[1] // q.shape[1]
                exp = numpy.exp(numpy.array([q[first_q + i, head] @ k[first_k + j, of] for j in seen]) * scale)
                lse[head, first_q + i] = math.log(exp.sum())
                out[first_q + i, head] = (exp / exp.sum()) @ numpy.array([v[first_k + j, of] for j in seen])
        first_q, first_k = first_q + rows, first_k + columns
    return out, lse


@pytest.mark.parametrize("window", [(-1, -1), (-1, 0), (1, 0), (0, 2), (2, -1)])
@pytest.mark.parametrize("kv_heads", [4, 2])
def test_values(window, kv_heads):
    tensors = inputs(kv_heads)
    out, lse = attend(*tensors, window_size=window, enable_gqa=kv_heads != 4, scale=0.4, return_aux=AuxRequest(lse=True))
    want = expected(*tensors, window, 0.4)
    assert numpy.allclose(out.numpy(), want[0], atol=1e-5) and numpy.allclose(lse.numpy(), want[1], atol=1e-5)
    assert cresset.equal(attend(*tensors, window_size=window, enable_gqa=kv_heads != 4, scale=0.4), out)


def test_gradients():
    tensors = [t.requires_grad_() for t in inputs(2, cresset.float64)]
    assert gradcheck(lambda *t: attend(*t, enable_gqa=True, window_size=(-1, 0)), tensors)


def test_a_query_without_keys_gives_zeros():
    q, k, v = (t.requires_grad_() for t in inputs())
    out, lse = varlen_attn(q[:6], k[:1], v[:1], cuts((2, 4)), cuts((0, 1)), 4, 1, window_size=(0, 0), return_aux=AuxRequest(lse=True))
    assert out[:5].eq(0).all() and lse[:, :5].eq(-math.inf).all() and cresset.allclose(out[5], v[0])
    out.sum().backward()
    assert q.grad.isfinite().all() and k.grad.isfinite().all()
    assert v.grad[:1].eq(1).all() and v.grad[1:].eq(0).all()


def test_tokens_behind_the_last_sequence_belong_to_none():
    q, k, v = inputs()
    out, lse = varlen_attn(q, k, v, cuts((2, 3)), cuts((2, 3)), 3, 3, return_aux=AuxRequest(lse=True))
    assert cresset.equal(out[:5], varlen_attn(q[:5], k, v, cuts((2, 3)), cuts((2, 3)), 3, 3))
    assert out[5:].eq(0).all() and lse[:, 5:].eq(-math.inf).all()


def test_only_the_first_keys_and_pages():
    q, k, v = inputs()
    used = cresset.tensor([2, 3, 1], dtype=cresset.int32)
    rows = cresset.tensor([0, 1, 3, 4, 5, 7])
    want = varlen_attn(q, k[rows], v[rows], cuts(LENGTHS_Q), cuts((2, 3, 1)), 4, 3)
    assert cresset.equal(attend(q, k, v, seqused_k=used), want)
    # Pages of two tokens, in any order: sequence 0 is page 2, sequence 1 is pages 0 and 3, sequence 2 is page 1.
    pool = [cresset.stack([t[[3, 4]], t[[7, 8]], t[[0, 1]], t[[5, 6]]]) for t in (k, v)]
    pages = cresset.tensor([[2, 0], [0, 3], [1, 0]], dtype=cresset.int32)
    out = varlen_attn(q, *pool, cuts(LENGTHS_Q), None, 4, 3, seqused_k=used, block_table=pages)
    assert cresset.equal(out, want)


def test_into_a_tensor():
    tensors = inputs()
    out = cresset.full_like(tensors[0], 7)
    given = varlen_attn_out(out, *tensors, cuts(LENGTHS_Q), cuts(LENGTHS_K), 4, 5)
    assert given is out and cresset.equal(out, attend(*tensors))
    given, lse = varlen_attn_out(out, *tensors, cuts(LENGTHS_Q), cuts(LENGTHS_K), 4, 5, return_aux=AuxRequest(lse=True))
    assert given is out and lse.shape == (4, 7)
    with pytest.raises(ValueError, match=r"out must be cresset.float32 \[7, 4, 8\]"):
        varlen_attn_out(out[:5], *tensors, cuts(LENGTHS_Q), cuts(LENGTHS_K), 4, 5)
    with pytest.raises(RuntimeError, match="out=... have no automatic differentiation"):
        varlen_attn_out(out, tensors[0].requires_grad_(), *tensors[1:], cuts(LENGTHS_Q), cuts(LENGTHS_K), 4, 5)


def test_of_meta_tensors_there_are_sizes():
    q, k, v, positions = (t.to("meta") for t in (*inputs(), cuts((3, 4))))
    out, lse = varlen_attn(q, k, v, positions, positions, 4, 4, return_aux=AuxRequest(lse=True))
    assert out.is_meta and out.shape == (7, 4, 8) and lse.shape == (4, 7)


@pytest.mark.parametrize("options, words", [
    ({"window_size": (1,)}, "window_size must have length 2, got 1"),
    ({"cu_seq_k": None}, "cu_seq_k can be None only with a block_table"),
    ({"cu_seq_k": cuts((3, 4))}, "as many sequences of keys as of queries were required; 3 and 2 were given"),
    ({"cu_seq_q": cuts((3, 4, 5))}, r"cu_seq_q must rise from 0 to at most 7, the number of tokens; given: \[0, 3, 7, 12\]"),
    ({"key": cresset.ones(12, 2, 8)}, "same number of heads but got Hq=4 and Hkv=2. Try setting enable_gqa=True"),
    ({"key": cresset.ones(12, 3, 8), "enable_gqa": True}, "multiple of kv heads for GQA but got Hq=4 and Hkv=3"),
    ({"block_table": cresset.zeros(3, 1, dtype=cresset.int32)}, "block_table requires seqused_k"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(options, words):
    q, k, v = inputs()
    given = {"query": q, "key": k, "value": v, "cu_seq_q": cuts(LENGTHS_Q), "cu_seq_k": cuts(LENGTHS_K), "max_q": 4, "max_k": 5, **options}
    with pytest.raises(ValueError, match=words):
        varlen_attn(**given)


def test_parts_of_sequences_have_no_gradients():
    q, k, v = inputs()
    with pytest.raises(RuntimeError, match="seqused_k is an inference-only parameter"):
        attend(q.requires_grad_(), k, v, seqused_k=cresset.tensor([1, 1, 1]))
