"""Attention over sequences that two and three ranks share, beside the whole in one process."""

import re

import pytest

import cresset as torch
import cresset.distributed as dist
from cresset.distributed.device_mesh import init_device_mesh
from cresset.distributed.tensor.experimental import context_parallel
from cresset.distributed.tensor.experimental import _attention as cp
from cresset.nn import functional as F

from ranks import RankError


def tensors(dtype, heads=4, length=24):
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(2, h, length, 8, generator=generator).to(dtype) for h in (4, heads, heads)]


def attention(rank, is_causal, balanced, method, dtype, heads, scale):
    """Results and gradients of attention by all ranks are those of one."""
    cp._cp_options.enable_load_balance = balanced
    cp.set_rotate_method(method)
    dtype = getattr(torch, dtype)
    whole = [t.requires_grad_() for t in tensors(dtype, heads)]
    options = {"is_causal": is_causal, "scale": scale, "enable_gqa": heads != 4}
    expected = F.scaled_dot_product_attention(*whole, **options)
    weights = torch.linspace(-1, 1, expected.numel()).reshape(expected.shape).to(dtype)
    (expected * weights).sum().backward()
    parts = tensors(dtype, heads)
    weights = weights.clone()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    before = [p.clone() for p in parts]
    try:
        with context_parallel(mesh, buffers=[*parts, weights], buffer_seq_dims=[2] * 4):
            assert parts[0].shape[2] == 24 // dist.get_world_size()
            local = [p.clone().requires_grad_() for p in parts]
            out = F.scaled_dot_product_attention(*local, **options)
            (out * weights).sum().backward()
            found = cp.context_parallel_unshard(mesh, [out, *(p.grad for p in local)], [2] * 4)
    finally:
        cp._cp_options.enable_load_balance = True
        cp.set_rotate_method("allgather")
    tolerance = {"rtol": 2e-2, "atol": 2e-2} if dtype == torch.bfloat16 else {}
    for mine, theirs in zip(found, [expected, *(t.grad for t in whole)]):
        torch.testing.assert_close(mine, theirs, **tolerance)
    return all(torch.equal(p, b) for p, b in zip(parts, before))


@pytest.mark.parametrize("method", ["allgather", "alltoall"])
@pytest.mark.parametrize("is_causal, balanced, dtype, heads, scale", [
    (True, True, "float32", 4, None), (True, False, "float32", 4, None), (False, True, "float64", 4, 0.3), (True, True, "bfloat16", 2, None),
])  # fmt: skip
def test_attention_of_all_ranks_is_that_of_one(pool, is_causal, balanced, method, dtype, heads, scale):
    assert all(pool.run(attention, is_causal, balanced, method, dtype, heads, scale))


def model(rank):
    """A layer of a transformer, with positions, trained in parts as in one process."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    table, x, y = torch.randn(12, 8), torch.randn(3, 12, 8), torch.randn(3, 12, 8)
    size = dist.get_world_size()
    expected = (layer(x + table) - y).square().mean()
    expected.backward()
    gradients = [p.grad.clone() for p in layer.parameters()]
    layer.zero_grad()
    mesh = init_device_mesh("cpu", (size,))
    with context_parallel(mesh, buffers=[x, y, table], buffer_seq_dims=[1, 1, 0], no_restore_buffers={y}):
        loss = (layer(x + table) - y).square().mean()
        loss.backward()
    assert x.shape == (3, 12, 8) and y.shape == (3, 12 // size, 8)
    for p, expected_grad in zip(layer.parameters(), gradients):
        dist.all_reduce(p.grad)
        torch.testing.assert_close(p.grad / size, expected_grad)
    loss = loss.detach()
    dist.all_reduce(loss)
    torch.testing.assert_close(loss / size, expected.detach())
    return True


def test_a_layer_is_trained_in_parts(pool):
    assert all(pool.run(model))


def refusal(rank, case):
    mesh = init_device_mesh("cpu", (2,))
    q = torch.ones(1, 1, 8, 4)
    if case == "length":
        q = torch.ones(1, 1, 6, 4)
        try:
            with context_parallel(mesh, buffers=[torch.ones(8), q], buffer_seq_dims=[0, 2]):
                pass
        finally:
            assert q.shape == (1, 1, 6, 4)
    if case == "gradients":
        with context_parallel(mesh, buffers=[q.requires_grad_()], buffer_seq_dims=[2]):
            pass
    if case == "dimensions":
        with context_parallel(mesh, buffers=[q], buffer_seq_dims=[]):
            pass
    if case == "mesh":
        with context_parallel(init_device_mesh("cpu", (2, 1)), buffers=[q], buffer_seq_dims=[2]):
            pass
    with context_parallel(mesh):
        if case == "weights":
            torch.nn.MultiheadAttention(4, 1)(q[0], q[0], q[0])
        F.scaled_dot_product_attention(q, q, q, **{case: 0.5 if case == "dropout_p" else torch.ones(8, 8)})


@pytest.mark.parametrize("case, words", [
    ("length", "a sequence length that is a multiple of 4 was required, two parts for each of 2 ranks, not 6."),
    ("gradients", "buffers that need no gradients were required"), ("dimensions", "there are 1 buffers and 0 dimensions"),
    ("mesh", "a mesh of one dimension was required, not of 2"),
    ("weights", "weights are not possible for sequences that are cut among ranks (context_parallel); need_weights=False."), ("dropout_p", "dropout_p is not possible for sequences that are cut among ranks"), ("attn_mask", "attn_mask is not possible for sequences"),
])  # fmt: skip
def test_refusals(pair, case, words):
    with pytest.raises(RankError, match=re.escape(words)):
        pair.run(refusal, case)


def test_what_a_rank_does_with_a_block():
    for balanced, row in ((True, [True, False]), (False, [True, None])):
        cp._cp_options.enable_load_balance = balanced
        assert [cp._is_causal_behavior(0, 2, i, True).value for i in range(2)] == row
        assert [cp._is_causal_behavior(1, 2, i, True).value for i in range(2)] == [True, False]
    assert cp._is_causal_behavior(0, 2, 1, False) is cp._CausalBehavior.NOT_IS_CAUSAL
    assert cp._HeadTailLoadBalancer(8, 2, "cpu")._generate_indices().tolist() == [[0, 1, 6, 7, 2, 3, 4, 5]]
    assert cp._HeadTailLoadBalancer(8, 2, "cpu")._generate_indices(restore=True).tolist() == [[0, 1, 4, 5, 6, 7, 2, 3]]
    with pytest.raises(NotImplementedError, match="Context Parallel does not support using ring for kv shards rotation"):
        cp.set_rotate_method("ring")
