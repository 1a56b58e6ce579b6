"""What a script asks of tensors whose class is written in Python: quantized and nested ones."""

import cresset as torch


@torch.jit.script
def asked(x):
    return x.is_quantized, x.is_nested, x.dtype


@torch.jit.script
def like(x, y):
    if not x.is_quantized:
        return y
    return torch.quantize_per_tensor(y, x.q_scale(), x.q_zero_point(), x.dtype)


def quantized(dtype):
    return torch.quantize_per_tensor(torch.tensor([0.1, 0.2]), 0.1, 0, dtype)


def test_quantized_and_nested_tensors():
    numbers = [asked(quantized(dtype)) for dtype in (torch.qint8, torch.quint8, torch.qint32)]
    assert numbers == [(True, False, 12), (True, False, 13), (True, False, 14)]  # PyTorch 2.13's
    assert asked(torch.ones(2)) == (False, False, 6) and asked(torch.ones(2).to_sparse()) == (False, False, 6)
    assert asked(torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])) == (False, True, 6)


def test_a_script_takes_the_type_of_a_quantized_tensor():
    made = like(quantized(torch.quint8), torch.tensor([0.33]))
    assert made.dtype is torch.quint8 and made.int_repr().tolist() == [3]
    assert like(torch.ones(1), torch.tensor([0.25])).item() == 0.25
