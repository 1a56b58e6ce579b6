"""flex_attention and causal biases beside scaled_dot_product_attention; BlockMasks as PyTorch 2.13 prints and counts them."""

import cresset
import pytest
from cresset.nn.attention.bias import causal_lower_right, causal_upper_left
from cresset.nn.attention.flex_attention import AuxRequest, BlockMask, and_masks, create_block_mask, create_mask, flex_attention, noop_mask, or_masks

sdpa = cresset.nn.functional.scaled_dot_product_attention


def causal(b, h, q, kv):
    return q >= kv


def near(b, h, q, kv):
    return (q - kv).abs() < 5


@pytest.fixture
def qkv():
    cresset.manual_seed(0)
    return [cresset.rand(2, 4, 37, 8, dtype=cresset.float64, requires_grad=True) for _ in range(3)]


def same(a, b, inputs):
    cresset.testing.assert_close(a, b)
    for x, y in zip(cresset.autograd.grad(a.square().sum(), inputs), cresset.autograd.grad(b.square().sum(), inputs)):
        cresset.testing.assert_close(x, y)


@pytest.mark.parametrize("size", [128, 16, (8, 16), 1])
@pytest.mark.parametrize("mask_mod", [causal, near, and_masks(causal, near), or_masks(causal, near), noop_mask])
def test_masks(qkv, size, mask_mod):
    mask = create_block_mask(mask_mod, None, None, 37, 37, device="cpu", BLOCK_SIZE=size)
    same(flex_attention(*qkv, block_mask=mask), sdpa(*qkv, attn_mask=create_mask(mask_mod, 1, 1, 37, 37, device="cpu")), qkv)


def test_scores(qkv):
    positions = cresset.arange(37)
    bias = (positions[:, None] - positions).double()
    same(flex_attention(*qkv, lambda s, b, h, q, kv: s + (q - kv)), sdpa(*qkv, attn_mask=bias), qkv)
    head = cresset.arange(4).double().view(4, 1, 1)
    same(flex_attention(*qkv, lambda s, b, h, q, kv: s + h * kv), sdpa(*qkv, attn_mask=head * positions), qkv)
    offsets = cresset.tensor([0, 5])
    by_document = create_block_mask(lambda b, h, q, kv: kv >= offsets[b], 2, None, 37, 37, device="cpu", BLOCK_SIZE=4)
    same(flex_attention(*qkv, block_mask=by_document), sdpa(*qkv, attn_mask=(positions >= offsets[:, None])[:, None, None]), qkv)


def test_groups_and_aux(qkv):
    q, k, v = qkv[0], qkv[1][:, :2], qkv[2][:, :2]
    out, aux = flex_attention(q, k, v, enable_gqa=True, scale=0.3, return_aux=AuxRequest(lse=True, max_scores=True))
    scores = q @ k.repeat_interleave(2, 1).mT * 0.3
    cresset.testing.assert_close(out, sdpa(q, k, v, enable_gqa=True, scale=0.3))
    cresset.testing.assert_close(aux.lse, scores.logsumexp(-1))
    cresset.testing.assert_close(aux.max_scores, scores.amax(-1))
    assert cresset.equal(flex_attention(q, k, v, enable_gqa=True, scale=0.3, return_lse=True)[1], aux.lse)


def test_a_query_that_looks_at_nothing_gives_zeros(qkv):
    mask = create_block_mask(lambda b, h, q, kv: q < 3, None, None, 37, 37, device="cpu")
    out, lse = flex_attention(*qkv, block_mask=mask, return_lse=True)
    assert out[:, :, 3:].abs().sum() == 0 and lse[:, :, 3:].isneginf().all() and (out[:, :, :3] != 0).all()
    assert all(g.isfinite().all() for g in cresset.autograd.grad(out.sum(), qkv))


def test_block_masks_print_and_count():
    mask = create_block_mask(causal, 1, 1, 256, 256, device="cpu", BLOCK_SIZE=64)
    assert str(mask) == "BlockMask(shape=(1, 1, 256, 256), sparsity=37.50%, \n(0, 0)\n██      \n████    \n██████  \n████████\n)"
    assert repr(mask).splitlines()[1:3] == ["    kv_num_blocks=cresset.Size([1, 1, 4]),", "    kv_indices=cresset.Size([1, 1, 4, 4]),"]
    assert repr(mask).splitlines()[-5:] == ["    BLOCK_SIZE=(64, 64),", "    shape=(1, 1, 256, 256),", "    sparsity=37.50%,", "    mask_mod=causal", ")"]
    assert mask.kv_num_blocks.tolist() == [[[1, 1, 1, 1]]] and mask.full_kv_num_blocks.tolist() == [[[0, 1, 2, 3]]]
    assert mask.kv_indices.tolist() == [[[[0, 1, 2, 3], [1, 0, 2, 3], [2, 0, 1, 3], [3, 0, 1, 2]]]]
    assert mask.full_q_num_blocks.tolist() == [[[3, 2, 1, 0]]] and mask.BLOCK_SIZE == (64, 64) and mask.numel() == 65536
    wide = create_block_mask(near, 2, 3, 100, 130, device="cpu", BLOCK_SIZE=32)
    assert wide.shape == (2, 3, 100, 130) and round(wide.sparsity(), 4) == 21.2308
    part = wide[0, 1]
    assert part.shape == (1, 1, 100, 130) and cresset.equal(part.to_dense(), wide.to_dense()[:1, 1:2])
    again = BlockMask.from_kv_blocks(mask.kv_num_blocks, mask.kv_indices, mask.full_kv_num_blocks, mask.full_kv_indices, BLOCK_SIZE=64, mask_mod=causal)
    assert cresset.equal(again.q_indices, mask.q_indices) and again.shape == mask.shape


def test_a_part_of_a_mask_needs_its_function():
    """A mask that is cut out of another one looked at all of its blocks as wholes before."""
    q = cresset.randn(2, 1, 8, 4)
    mask = create_block_mask(causal, 2, 1, 8, 8, device="cpu")
    part = mask[0]
    with pytest.raises(RuntimeError, match="Cannot use mask_mod from a sliced BlockMask"):
        flex_attention(q[:1], q[:1], q[:1], block_mask=part)
    part.mask_mod = mask.mask_mod
    assert cresset.equal(flex_attention(q[:1], q[:1], q[:1], block_mask=part), flex_attention(q, q, q, block_mask=mask)[:1])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda q, k: flex_attention(q, k[:, :2], k[:, :2]), ValueError, "Hq=4 and Hkv=2. Try setting enable_gqa=True"),
        (lambda q, k: flex_attention(q, k[:, :3], k[:, :3], enable_gqa=True), ValueError, "multiple of kv heads for GQA"),
        (lambda q, k: flex_attention(q[0], k, k), ValueError, "to be 4 dimensional"),
        (lambda q, k: flex_attention(q.float(), k, k), ValueError, "to have the same dtype"),
        (lambda q, k: flex_attention(q, k, k, block_mask=create_block_mask(causal, 1, 1, 16, 16, BLOCK_SIZE=16)), ValueError, "smaller length"),
        (lambda q, k: and_masks(3), RuntimeError, "All inputs should be callable mask_mods"),
        (lambda q, k: create_block_mask(lambda s, b, h, q, kv: s, 1, 1, 4, 4), AssertionError, "requires a mask_mod function"),
    ],
)
def test_errors(qkv, call, error, message):
    with pytest.raises(error, match=message):
        call(qkv[0], qkv[1])


def test_causal_biases(qkv):
    q, k, v = qkv[0][:, :, :3], qkv[1][:, :, :5], qkv[2][:, :, :5]
    lower, upper = causal_lower_right(3, 5), causal_upper_left(3, 5)
    plain = cresset.ones(3, 5, dtype=cresset.bool)
    cresset.testing.assert_close(sdpa(q, k, v, attn_mask=lower), sdpa(q, k, v, attn_mask=plain.tril(2)))
    cresset.testing.assert_close(sdpa(q, k, v, attn_mask=upper), sdpa(q, k, v, attn_mask=plain.tril()))
    assert repr(lower) == repr(plain.tril(2)) and lower.shape == (3, 5)
    with pytest.raises(ValueError, match="CausalBias should not be used with causal=True"):
        sdpa(q, k, v, attn_mask=lower, is_causal=True)
