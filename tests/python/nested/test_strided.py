"""Nested tensors of the layout strided, the one without `layout=`. Expected values and words are PyTorch 2.13's."""

import copy
import io

import cresset as torch
import pytest
from cresset import nn
from cresset.nested import as_nested_tensor, nested_tensor, to_padded_tensor
from cresset.nn import functional as F


def parts():
    return [torch.arange(6.0).view(2, 3), torch.ones(1, 3)]


@pytest.fixture
def nt():
    return nested_tensor(parts())


def test_facts(nt):
    assert (nt.layout, nt.is_nested, nt.size(0), nt.size(2), nt.size(-1), nt.dim(), nt.numel()) == (torch.strided, True, 2, 3, 3, 3, 9)
    assert nt._nested_tensor_size().tolist() == [[2, 3], [1, 3]] and nt._nested_tensor_storage_offsets().tolist() == [0, 6]
    assert repr(nt) == "nested_tensor([\n  tensor([[0., 1., 2.],\n          [3., 4., 5.]]),\n  tensor([[1., 1., 1.]])\n])"
    assert repr(nested_tensor([torch.ones(1)], requires_grad=True)) == "nested_tensor([\n  tensor([1.], requires_grad=True)\n], requires_grad=True)"
    assert repr(nested_tensor([])) == "nested_tensor([\n\n])" and repr(nested_tensor([[1, 2], [3]])) == "nested_tensor([\n  tensor([1, 2]),\n  tensor([3])\n])"
    assert [p.shape for p in nt] == [(2, 3), (1, 3)] and nt[0, 1].tolist() == [3, 4, 5] and nt[-1].tolist() == [[1, 1, 1]]
    assert nested_tensor([torch.ones(2, 3), torch.ones(4, 1)]).to_padded_tensor(0).shape == (2, 4, 3)  # two ragged dimensions
    assert to_padded_tensor(nt, -1.0, (2, 3, 4))[1].tolist() == [[1, 1, 1, -1], [-1] * 4, [-1] * 4]


SAME = {
    "add": lambda x: x + x, "scaled": lambda x: 1 + 2 * x / 3 - 1, "relu": F.relu, "gelu": F.gelu, "tanh": torch.tanh, "sqrt": torch.sqrt,
    "mask": lambda x: x.masked_fill(x > 1, 0.0), "linear": lambda x: F.linear(x, torch.ones(2, 3), torch.ones(2)), "softmax": lambda x: x.softmax(-1),
    "norm": lambda x: F.layer_norm(x, (3,), torch.ones(3), torch.zeros(3)), "transpose": lambda x: x.transpose(-1, -2), "sum": lambda x: x.sum(-1, keepdim=True),
    "matmul": lambda x: x @ x.transpose(-1, -2), "chunk": lambda x: x.chunk(3, -1)[1], "split": lambda x: x.split([1, 2], -1)[1], "half": lambda x: x.half(),
    "clone": lambda x: x.clone().mul_(2).add_(x), "like": torch.ones_like, "unsqueeze": lambda x: x.unsqueeze(-1).squeeze(-1),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_equals_the_components(nt, name):
    made = SAME[name](nt)
    assert made.is_nested and made.layout is torch.strided
    for a, x in zip(made.unbind(), parts(), strict=True):
        torch.testing.assert_close(a, SAME[name](x))


def test_shapes_and_layers(nt):
    assert [p.shape for p in nt.view(2, -1, 3, 1).unbind()] == [(2, 3, 1), (1, 3, 1)]
    assert [p.shape for p in torch.cat([nt, nt]).unbind()] == [(2, 3), (1, 3)] * 2
    assert [p.tolist() for p in nt.select(2, 0).unbind()] == [[0, 3], [1]] and torch.bmm(nt, torch.ones(2, 3, 2))[1].tolist() == [[3, 3]]
    index = nested_tensor([torch.tensor([1, 2]), torch.tensor([0])])
    assert [p.shape for p in nn.Embedding(3, 4)(index).unbind()] == [(2, 4), (1, 4)]
    q = [torch.randn(2, 3, 4), torch.randn(2, 1, 4)]
    made = F.scaled_dot_product_attention(*[nested_tensor(q)] * 3)
    for a, x in zip(made.unbind(), q, strict=True):
        torch.testing.assert_close(a, F.scaled_dot_product_attention(x, x, x))


def test_gradients():
    x, w = torch.arange(6.0).view(2, 3).requires_grad_(), torch.ones(2, 3, requires_grad=True)
    made = as_nested_tensor([x, x[:1] * 2])
    F.linear(made.relu() * made, w).softmax(-1).to_padded_tensor(0.0)[..., :1].sum().backward()
    assert x.grad.tolist() == [[0] * 3] * 2 and w.grad.tolist() == [[2.25, 5.25, 11.25], [-2.25, -5.25, -11.25]]
    p = nested_tensor([torch.ones(2, 2), torch.ones(1, 2)], requires_grad=True)
    (p @ p.transpose(1, 2)).to_padded_tensor(0.0).sum().backward()
    assert [g.tolist() for g in p.grad.unbind()] == [[[4, 4], [4, 4]], [[2, 2]]]


def test_files_and_copies(nt):
    file = io.BytesIO()
    torch.save([nt, nt.transpose(1, 2)], file)
    file.seek(0)
    a, b = torch.load(file)
    assert [p.tolist() for p in a.unbind()] == [p.tolist() for p in nt.unbind()] and b[0].tolist() == parts()[0].t().tolist()
    assert copy.deepcopy(nt)[0].tolist() == nt[0].tolist()


REFUSED = [
    (lambda t: t.size(1), RuntimeError, "Given dimension 1 is irregular and does not have a size."),
    (lambda t: t.shape, RuntimeError, "Internal error: NestedTensorImpl doesn't support sizes. Please file an issue."),
    (lambda t: t.exp(), NotImplementedError, "Could not run 'aten::exp' with arguments from the 'NestedTensorCPU' backend"),
    (lambda t: t + torch.ones(3), RuntimeError, "Expected both self and other to be nested, but got a nested self and non-nested other"),
    (lambda t: t.mul_(torch.ones(1)), RuntimeError, "Expected both self and other to be nested, but got a nested self and non-nested other"),
    (lambda t: torch.ones(1).mul_(t), RuntimeError, "Expected both self and other to be nested, but got a non-nested self and nested other"),
    (lambda t: t + nested_tensor([torch.ones(1, 3)] * 2), RuntimeError, "add does not support broadcasting when given a NestedTensor"),
    (lambda t: t @ torch.ones(3, 2), RuntimeError, "Expected both to be nested, but got a nested self and non-nested other"),
    (lambda t: t == t, RuntimeError, "eq does not support nested tensor as other value."),
    (lambda t: t.sum(-1), RuntimeError, "NestedTensor always requires keepdim=True for now."),
    (lambda t: t.unbind(1), RuntimeError, "NestedTensor can only be unbound along dimension 0 got dimension 1 instead."),
    (lambda t: t.transpose(0, 1), RuntimeError, "Nested tensor dimension 0 cannot be transposed"),
    (lambda t: nested_tensor([torch.ones(2), torch.ones(1, 1)]), RuntimeError, "Found dimension 2 for Tensor at index 1 and dimension 1 for Tensor at index 0."),
    (lambda t: nested_tensor(3), TypeError, "Only lists"),
    (lambda t: as_nested_tensor(t, layout=torch.jagged), RuntimeError, "Converting between nested tensor layouts is not supported"),
    (lambda t: to_padded_tensor(t, 0.0, (2, 1, 3)), RuntimeError, "Truncation is not supported."),
]


@pytest.mark.parametrize("i", range(len(REFUSED)))
def test_refused(nt, i):
    call, error, words = REFUSED[i]
    with pytest.raises(error, match=words):
        call(nt)


@torch.no_grad()
@pytest.mark.parametrize("average", [True, False])
def test_attention_without_gradients(average):
    torch.manual_seed(0)
    given = [torch.randn(2, 4), torch.randn(3, 4)]
    qkv, proj = nn.Linear(4, 12), nn.Linear(4, 4)
    parameters = 4, 2, qkv.weight, qkv.bias, proj.weight, proj.bias
    nt = nested_tensor(given)
    made, weights = torch._native_multi_head_attention(nt, nt, nt, *parameters, average_attn_weights=average)
    assert weights.shape == ((2, 3, 3) if average else (2, 2, 3, 3))
    for a, w, x in zip(made.unbind(), weights, given, strict=True):
        want, alone = torch._native_multi_head_attention(*[x[None]] * 3, *parameters, None, True, average)
        torch.testing.assert_close(a, want[0])
        torch.testing.assert_close(w[..., : len(x), : len(x)], alone[0])
        assert w.sum() == w[..., : len(x), : len(x)].sum()
    assert torch._native_multi_head_attention(nt, nt, nt, *parameters, None, False)[1] is None
    with pytest.raises(RuntimeError, match="NestedTensor with mask is not supported yet"):
        torch._native_multi_head_attention(nt, nt, nt, *parameters, torch.zeros(2, 3, dtype=torch.bool))
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval()
    for a, x in zip(layer(nt).unbind(), given, strict=True):
        torch.testing.assert_close(a, layer(x[None])[0])


def test_overloads_of_operators():
    aten, nt = torch.ops.aten, torch.nested.nested_tensor([torch.arange(6.0).reshape(2, 3), torch.ones(1, 3)], layout=torch.strided)
    assert aten.add.Tensor(nt, nt).unbind()[0].tolist() == [[0, 2, 4], [6, 8, 10]]
    assert aten.sum.dim_IntList(nt, [2], True).unbind()[0].tolist() == [[3], [12]]
    assert [c.tolist() for c in aten.select.int(nt, 2, 1).unbind()] == [[1, 4], [1]]
    assert aten._softmax.default(nt, 2, False).unbind()[1][0].tolist() == pytest.approx([1 / 3] * 3)
    assert aten.transpose.int(nt, 1, 2).unbind()[0].shape == (3, 2) and aten.detach.default(nt).is_nested
    with pytest.raises(NotImplementedError, match="Could not run 'aten::max.dim' with arguments from the 'NestedTensorCPU' backend"):
        aten.max.dim(nt, 1)


def test_more_functions_of_elements():
    inf = float("inf")
    nt = nested_tensor([torch.tensor([1.0, inf]), torch.tensor([-inf, 0.0, 3.0])])
    assert [c.tolist() for c in torch.isposinf(nt).unbind()] == [[False, True], [False, False, False]]
    assert [c.tolist() for c in torch.isneginf(nt).unbind()] == [[False, False], [True, False, False]]
    assert torch.isreal(nt).unbind()[0].tolist() == [True, True] and (+nt).unbind()[1].tolist() == [-inf, 0, 3]
    assert F.softsign(nt).unbind()[0][0].item() == 0.5 and F.tanhshrink(nt).unbind()[1][1].item() == 0
    assert nt.clone().logical_not_().unbind()[1].tolist() == [0, 1, 0] and nt.clone().sgn_().unbind()[1].tolist() == [-1, 0, 1]
    with pytest.raises(NotImplementedError, match="Could not run 'aten::acos_' with arguments"):
        nt.acos_()


def test_dimensions_of_squeeze_and_unsqueeze():
    ones = nested_tensor([torch.ones(2, 1), torch.ones(3, 1)])
    assert ones.squeeze(2).dim() == 2 and ones.squeeze(1).dim() == 3 and ones.squeeze((1, 2)).dim() == 2
    assert nested_tensor([torch.ones(1, 2), torch.ones(3, 2)]).squeeze(1).dim() == 3  # where one component has more, none loses it
    for single in (nested_tensor([torch.ones(1)] * 2).squeeze, nested_tensor([torch.ones(1, 1)] * 2).squeeze):
        with pytest.raises(RuntimeError, match="squeezing a nested tensor of singleton"):
            single((1, 2) if single.__self__.dim() == 3 else 1)
    with pytest.raises(RuntimeError, match="For nested tensors, squeezing dimension 0"):
        ones.squeeze(0)
    for wrong in (4, -5):
        with pytest.raises(IndexError, match=rf"expected to be in range of \[-4, 3\], but got {wrong}"):
            ones.unsqueeze(wrong)


@pytest.mark.parametrize("make", [torch.empty_like, torch.zeros_like, torch.ones_like, torch.Tensor.clone, torch.Tensor.to, torch.Tensor.contiguous])
def test_memory_formats(make):
    nt = nested_tensor([torch.ones(2, 3), torch.ones(1, 3)])
    for kept in (torch.preserve_format, torch.contiguous_format):
        assert make(nt, memory_format=kept).is_contiguous()
    if make is torch.Tensor.contiguous:
        assert make(nt, memory_format=torch.channels_last) is nt
        return
    for refused, name in ((torch.channels_last, "ChannelsLast"), (torch.channels_last_3d, "ChannelsLast3d")):
        words = f"empty_like_nested only supports memory format Preserve or Contiguous, but got {name} instead."
        if make is torch.Tensor.clone:
            words = f"Nested tensor clone supports Preserve and Contiguous memory formats, called clone with memory format: {name}"
        with pytest.raises(RuntimeError, match=words):
            make(nt, memory_format=refused)
