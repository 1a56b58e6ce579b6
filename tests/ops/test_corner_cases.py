"""Corners that the samples of the table do not show; expected values are PyTorch's."""

import cresset


def test_diff_of_order_zero_is_the_input():
    x, row = cresset.arange(6.0).view(2, 3), cresset.ones(1, 3)
    assert cresset.diff(x, 0, 0, prepend=row, append=row).equal(x)


def test_prelu_of_a_number():
    x = cresset.tensor(-2.0, requires_grad=True)
    y = cresset.nn.functional.prelu(x, cresset.tensor([0.25]))
    y.backward()
    assert y.shape == () and y.item() == -0.5 and x.grad.item() == 0.25


def test_lerp_with_a_complex_weight():
    x = cresset.zeros(1, dtype=cresset.complex64, requires_grad=True)
    end = cresset.ones(1, dtype=cresset.complex64, requires_grad=True)
    y = cresset.lerp(x, end, 0.5j)
    cresset.view_as_real(y).sum().backward()
    assert y.item() == 0.5j
    assert x.grad.item() == (1 + 1j) * (1 + 0.5j) and end.grad.item() == (1 + 1j) * -0.5j
