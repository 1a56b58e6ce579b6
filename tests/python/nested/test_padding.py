"""Padded batches as nested tensors, and nested tensors that share offsets. Expected values and words are PyTorch 2.13's."""

import re

import pytest

import cresset as torch
from cresset.nested import nested_tensor, nested_tensor_from_jagged, to_padded_tensor
from cresset.nested._internal.nested_tensor import jagged_from_list, nested_from_padded
from cresset.nested._internal.ops import _outer_to_inner_dim

DATA = torch.arange(24.0).reshape(2, 3, 4)
MASK = torch.tensor([[True, True, False], [True, True, True]])
GAPS = torch.tensor([[True, False, True], [True, True, True]])


def lists(nt):
    return [part.tolist() for part in nt.unbind()]


def test_rows_under_a_mask():
    x = DATA.clone().requires_grad_()
    nt = torch._nested_tensor_from_mask(x, MASK)
    assert lists(nt) == [DATA[0, :2].tolist(), DATA[1].tolist()] == lists(torch._nested_tensor_from_mask(x, GAPS, False))
    to_padded_tensor(nt, 0).sum().backward()
    assert x.grad[:, :, 0].tolist() == [[1, 1, 0], [1, 1, 1]]
    assert torch._nested_tensor_from_mask_left_aligned(DATA, MASK) is True and torch._nested_tensor_from_mask_left_aligned(DATA, GAPS) is False
    assert [part.shape for part in torch._nested_tensor_from_mask(DATA, MASK & torch.tensor([[False], [True]])).unbind()] == [(0, 4), (3, 4)]


def test_rows_of_given_sizes():
    sizes = torch.tensor([[1, 2], [3, 4]])
    assert lists(torch._nested_from_padded(DATA, sizes)) == [[[0, 1]], DATA[1].tolist()]
    like = nested_tensor([torch.ones(1, 2), torch.ones(3, 4)])
    assert lists(torch._nested_from_padded_and_nested_example(DATA, like)) == [[[0, 1]], DATA[1].tolist()]
    heads = torch.arange(24.0).reshape(2, 2, 3, 2)
    joined = torch._nested_from_padded(heads, torch.tensor([[1, 4], [3, 4]]), fuse_transform_0213=True)
    assert lists(joined) == [[[0, 1, 6, 7]], [[12, 13, 18, 19], [14, 15, 20, 21], [16, 17, 22, 23]]]


@pytest.mark.parametrize("call, words", [
    (lambda: torch._nested_tensor_from_mask(DATA, GAPS), "Mask must be left-aligned without gaps"),
    (lambda: torch._nested_tensor_from_mask(DATA, MASK.long()), "Expected mask to be of ScalarType Bool, but got Long instead."),
    (lambda: torch._nested_tensor_from_mask(DATA[0], MASK), "Input should be a 3D tensor, N * L * D"),
    (lambda: torch._nested_tensor_from_mask(DATA, MASK[0]), "Padding mask should be 2D"),
    (lambda: torch._nested_tensor_from_mask(DATA, MASK[:1]), "Mask size should match input size"),
    (lambda: torch._nested_from_padded(DATA, torch.tensor([[1, 5], [3, 4]])), "The size of tensor a (5) must match the size of tensor b (4) at non-singleton dimension 2"),
    (lambda: torch._nested_from_padded(DATA, torch.ones(2, 2)), "expected scalar type Long but found Float"),
    (lambda: torch._nested_from_padded(DATA, torch.tensor([[1], [3]])), "_nested_from_padded: sizes of shape [2, 2] were required; got [2, 1]."),
])  # fmt: skip
def test_refusals(call, words):
    with pytest.raises(RuntimeError, match=re.escape(words)):
        call()


def test_shared_offsets():
    parts = [torch.ones(2, 3), torch.ones(4, 3)]
    first, offsets = jagged_from_list(parts, None)
    second, same = jagged_from_list(parts, offsets)
    assert offsets.tolist() == [0, 2, 6] and same is offsets and first.shape == second.shape
    assert lists(first * second) == [part.tolist() for part in parts]
    with pytest.raises(RuntimeError, match=re.escape("jagged_from_list: offsets [0, 2, 5] were required; got [0, 2, 6].")):
        jagged_from_list([torch.ones(2, 3), torch.ones(3, 3)], offsets)


def test_views():
    nt = nested_tensor_from_jagged(torch.ones(4, 3), torch.tensor([0, 2, 4]))
    assert [x._is_view() for x in (nt.unsqueeze(1), nt.transpose(1, 2), nt.unsqueeze(2).squeeze(2), nt * 2)] == [True, True, True, False]


def test_pieces_of_the_batch_are_views():
    nt = nested_tensor([torch.ones(2, 3), torch.full((4, 3), 2.0), torch.full((3, 3), 3.0)], layout=torch.jagged)
    a, b = nt.chunk(2)
    assert (a.offsets().tolist(), b.offsets().tolist(), a._is_view(), a._get_max_seqlen(), b._get_min_seqlen()) == ([0, 2, 6], [0, 3], True, 4, 3)
    a.values().mul_(10)
    assert nt.values()[:, 0].tolist() == [10, 10, 20, 20, 20, 20, 3, 3, 3] and lists(b) == [[[3, 3, 3]] * 3]
    holes = nested_tensor_from_jagged(torch.arange(10.0)[:, None], torch.tensor([0, 4, 7, 10]), lengths=torch.tensor([2, 3, 2]))
    assert [lists(part) for part in holes.chunk(2)] == [[[[0], [1]], [[4], [5], [6]]], [[[7], [8]]]]
    dense = torch.arange(12.0).reshape(2, 3, 2).clone()
    for layout in (torch.strided, torch.jagged):
        made = torch.nested.as_nested_tensor(dense, layout=layout)
        assert made._is_view() and made._base is dense and lists(made) == dense.tolist()
    assert lists(torch.nested.as_nested_tensor(dense.transpose(1, 2))) == dense.transpose(1, 2).tolist()


def test_rows_by_offsets():
    padded = torch.arange(12.0).reshape(2, 3, 2).requires_grad_()
    nt = nested_from_padded(padded, torch.tensor([0, 1, 4]))
    assert lists(nt) == [[[0, 1]], [[6, 7], [8, 9], [10, 11]]]
    nt.values().sum().backward()
    assert padded.grad[:, :, 0].tolist() == [[1, 0, 0], [1, 1, 1]]
    assert lists(nested_from_padded(padded.transpose(1, 2), torch.tensor([0, 1, 4]), ragged_idx=2)) == [[[0], [1]], [[6, 8, 10], [7, 9, 11]]]


def test_dimensions_of_the_values():
    inner = _outer_to_inner_dim
    assert [inner(4, 0, 1), inner(4, 3, 2), inner(4, -1, 2, canonicalize=True), inner(4, [0, 1, 3], 1), inner(4, (0, 2), 2, canonicalize=True)] == [0, 2, 2, [0, 2], (1,)]
    with pytest.raises(AssertionError, match="a dimension from 0 to 3 was required; got -1."):
        inner(4, -1, 1)


def test_a_python_function_on_each_element():
    nt = nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged, requires_grad=True)
    assert nt.apply_(lambda v: v * 2) is nt and nt.values().tolist() == [2] * 5 and nt.grad is None


def test_lists_in_scripts():
    @torch.jit.script
    def joined(x: torch.Tensor, y: torch.Tensor):
        return torch._nested_tensor_from_tensor_list([x, y], None, None, None, None)

    x = torch.ones(2, 2, requires_grad=True)
    nt = joined(x, torch.zeros(1, 2))
    assert lists(nt) == [[[1, 1], [1, 1]], [[0, 0]]] and nt.requires_grad
    assert torch.ops.aten._nested_tensor_from_tensor_list([x], dtype=torch.float64).dtype is torch.float64
    with pytest.raises(RuntimeError, match="the layout torch.strided was required; got"):
        torch._nested_tensor_from_tensor_list([x], layout=torch.jagged)
