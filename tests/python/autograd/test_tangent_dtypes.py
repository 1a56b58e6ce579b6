"""A tangent has the dtype of its tensor, also where Python's numbers of other types take part: PyTorch 2.13's answers."""

import cresset as torch
import cresset.autograd.forward_ad as fw
import pytest

CASES = {
    "v * 1j": (lambda v: v * 1j, torch.complex64, [1j, 1j]),
    "(v * 1j).imag": (lambda v: (v * 1j).imag, torch.float32, [1.0, 1.0]),
    "(v * 1j).real": (lambda v: (v * 1j).real, torch.float32, [0.0, 0.0]),
    "(v * 1j).abs()": (lambda v: (v * 1j).abs(), torch.float32, [1.0, 1.0]),
    "view_as_real(v * 1j)": (lambda v: torch.view_as_real(v * 1j), torch.float32, [[0.0, 1.0], [0.0, 1.0]]),
    "v.half() * 1j": (lambda v: v.half() * 1j, torch.complex32, [1j, 1j]),
    "v + 1j": (lambda v: v + 1j, torch.complex64, [1.0, 1.0]),
    "where(v > 1, v, 1j)": (lambda v: torch.where(v > 1, v, 1j), torch.complex64, [0.0, 1.0]),
    "v * 2.5": (lambda v: v * 2.5, torch.float32, [2.5, 2.5]),
    "v * a double without dimensions": (lambda v: v * torch.tensor(2.0).double(), torch.float32, [2.0, 2.0]),
}


@pytest.mark.parametrize("name", CASES)
def test_dtype(name):
    f, dtype, expected = CASES[name]
    x = torch.tensor([1.0, 2.0])
    with fw.dual_level():
        primal, tangent = fw.unpack_dual(f(fw.make_dual(x, torch.ones(2))))
        assert primal.dtype == tangent.dtype == dtype
        assert tangent.tolist() == expected
    assert torch.func.jvp(f, (x,), (torch.ones(2),))[1].dtype == dtype
