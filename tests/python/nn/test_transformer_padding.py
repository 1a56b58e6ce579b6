"""Encoders as PyTorch's for inference: zeros for padding where it drops it, activations that are modules, sequences as nested tensors."""

import copy
import io

import cresset as torch
import pytest
from cresset import nn

END = torch.tensor([[False, False, True], [False, False, False]])
START = torch.tensor([[True, False, False], [False, False, False]])


def encoder(layers=2, enable=True, norm=False, **options):
    layer = nn.TransformerEncoderLayer(4, **{"nhead": 2, "dim_feedforward": 8, "batch_first": True, "dropout": 0.0, **options})
    made = nn.TransformerEncoder(layer, layers, nn.LayerNorm(4) if norm else None, enable_nested_tensor=enable).eval()
    for i, p in enumerate(made.parameters()):
        p.data = torch.linspace(-1, 1, p.numel()).view_as(p).sin() * (i + 1) / 7
    return made


DROPPED = [({}, END), ({"activation": "gelu"}, END), ({"activation": nn.ReLU()}, END), ({"norm": True}, END)]
KEPT = [
    ({}, START), ({"enable": False}, END), ({"norm_first": True}, END), ({"nhead": 1}, END), ({"activation": nn.Tanh()}, END), ({"bias": False}, END),
]  # fmt: skip


@pytest.mark.parametrize(("options", "mask", "zero"), [(*row, True) for row in DROPPED] + [(*row, False) for row in KEPT])
def test_padding(options, mask, zero):
    x, made = torch.arange(24.0).view(2, 3, 4).sin(), encoder(**options)
    with torch.no_grad():
        out = made(x, src_key_padding_mask=mask)
        whole = nn.Sequential(*made.layers)(x[1:])
    place = out[0, 2] if mask is END else out[0, 0]
    if zero and not options.get("norm"):
        assert place.tolist() == [0, 0, 0, 0]
    elif zero:
        torch.testing.assert_close(place, made.norm(torch.zeros(4)))
    else:
        assert place.abs().min() > 0
    if not options.get("norm"):
        torch.testing.assert_close(out[1:], whole)
    assert made(x, src_key_padding_mask=mask)[0].abs().min() > 0  # with gradients nothing is dropped


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: torch.load(_saved(m), weights_only=False)])
@pytest.mark.parametrize("make", [nn.TransformerEncoderLayer, nn.TransformerDecoderLayer])
def test_copies_keep_an_activation_that_is_a_module(make, copied):
    layer = make(4, 2, 8, activation=nn.Tanh(), batch_first=True, dropout=0.0)
    other = copied(layer)
    assert type(other.activation) is nn.Tanh
    x = torch.randn(2, 3, 4)
    args = (x,) if make is nn.TransformerEncoderLayer else (x, x)
    assert torch.equal(other(*args), layer(*args))


def _saved(module):
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return file


def test_nested_sequences():
    made = encoder(1)
    parts = [torch.randn(3, 4), torch.randn(2, 4)]
    with torch.no_grad():
        out = made(torch.nested.nested_tensor(parts))
        for a, x in zip(out.unbind(), parts, strict=True):
            torch.testing.assert_close(a, made(x.unsqueeze(0))[0])
