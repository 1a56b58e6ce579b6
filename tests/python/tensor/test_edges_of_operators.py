"""Values at the edges of operators, found by tools/differential beside PyTorch 2.13 and by finite differences."""

import math

import pytest

import cresset as torch

inf, nan = math.inf, math.nan
aten = torch.ops.aten
f64 = torch.float64


def same(got, want):
    torch.testing.assert_close(got, torch.tensor(want, dtype=got.dtype), equal_nan=True)


def check_tangent(f, *args):
    tangents = tuple((a * 1.7 + 0.3).cos() for a in args)
    _, got = torch.func.jvp(f, args, tangents)
    step = 1e-6
    ahead = f(*(a + step * t for a, t in zip(args, tangents)))
    behind = f(*(a - step * t for a, t in zip(args, tangents)))
    for g, x, y in zip(got, ahead, behind):
        torch.testing.assert_close(g, (x - y) / (2 * step), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
@pytest.mark.parametrize("number", [complex(nan, inf), complex(-inf, nan)])
def test_length_of_a_number_with_an_infinite_part(dtype, number):
    x = torch.tensor([number, 1 + 1j], dtype=dtype)
    for got in (torch.linalg.vector_norm(x), torch.norm(x), torch._foreach_norm([x])[0], torch.dist(x, torch.zeros_like(x)),
                torch.linalg.matrix_norm(x.reshape(1, 2)), torch.frobenius_norm(x.reshape(1, 2), dim=(0, 1))):  # fmt: skip
        assert got.item() == inf
    assert torch.linalg.vector_norm(torch.tensor([[number, 1], [complex(nan, 1), 1], [3, 4j]], dtype=dtype), dim=1)[::2].tolist() == [inf, 5.0]
    assert torch.linalg.vector_norm(torch.tensor([complex(nan, 1), 1], dtype=dtype)).isnan()


def test_trapezoid_of_small_integers_does_not_wrap():
    y = torch.tensor([[200, 200, 1], [4, 3, 250]], dtype=torch.uint8)
    for f in (torch.trapezoid, torch.trapz):
        same(f(y, dx=0.5), [150.25, 65.0])
        same(torch.vmap(lambda row, f=f: f(row, dx=0.5))(y), [150.25, 65.0])
    same(torch.trapezoid(torch.tensor([100, 100, 100], dtype=torch.int8)), 200.0)
    same(torch.trapezoid(torch.tensor([3.0])), 0.0)


def test_topk_of_one_number():
    for k in (0, 1):
        values, indices = torch.topk(torch.tensor(3.0), k)
        assert values.item() == 3 and indices.item() == 0
    values, indices = torch.topk(torch.tensor(3.0), 0, out=(torch.tensor(7.0), torch.tensor(9)))
    assert values.item() == 3 and indices.item() == 0


def test_derivative_of_sinc_near_zero():
    for dtype, tiny in ((torch.float32, 1e-30), (torch.float32, -1e-45), (f64, 1e-200)):
        x = torch.tensor([tiny, 0.0, 0.5], dtype=dtype, requires_grad=True)
        (got,) = torch.autograd.grad(torch.sinc(x).sum(), x)
        assert got[:2].tolist() == [0.0, 0.0] and got[2].item() == pytest.approx(-4 / math.pi)
        assert torch.func.jvp(torch.sinc, (x.detach(),), (torch.ones_like(x),))[1][:2].tolist() == [0.0, 0.0]


def test_tangents_of_statistics_of_groups():
    x = torch.arange(24, dtype=f64).reshape(2, 4, 3).sin()
    w, b = torch.arange(4, dtype=f64).cos(), torch.ones(4, dtype=f64)
    check_tangent(lambda x, w, b: torch.native_group_norm(x, w, b, 2, 4, 3, 2, 1e-5), x, w, b)


@pytest.mark.parametrize("weighted", [False, True])
def test_total_weight_of_nll_loss(weighted):
    x, total, grad = torch.arange(6, dtype=f64).reshape(2, 3).sin(), torch.tensor(3.0, dtype=f64), torch.tensor(1.5, dtype=f64)
    weight = torch.arange(1.0, 4.0, dtype=f64) if weighted else None
    for reduction in (1, 2):
        f = lambda t, r=reduction: (aten.nll_loss_backward(grad, x, torch.tensor([2, 0]), weight, r, -100, t),)  # noqa: E731
        check_tangent(f, total)
        t = total.clone().requires_grad_()
        assert torch.autograd.gradcheck(lambda t, f=f: f(t)[0], (t,))


def test_block_diag_of_nothing():
    assert torch.block_diag().shape == (1, 0)


def test_tangents_that_pytorch_gets_wrong():
    a = torch.tensor([[3.0, 0.5, 0.2], [0.7, 2.0, 0.3], [0.1, 0.9, 4.0]], dtype=f64)
    b = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], dtype=f64)
    for upper in (True, False):
        for transpose in (True, False):
            for unit in (True, False):
                check_tangent(lambda a, u=upper, t=transpose, n=unit: torch.triangular_solve(b, a, u, t, n)[:1], a)
    x, s = torch.arange(1, 10, dtype=f64).reshape(3, 3).sin() + 2, torch.arange(9, dtype=f64).reshape(3, 3).cos() + 1.5
    index = torch.tensor([[0, 1, 0], [0, 0, 1], [2, 2, 0]])
    for include in (True, False):
        check_tangent(lambda x, s, i=include: (torch.scatter_reduce(x, 0, index, s, "prod", include_self=i),), x, s)


@pytest.mark.parametrize(("call", "text"), [
    (lambda: torch.bilinear(torch.ones(3, 4, dtype=f64), torch.ones(3, 4, dtype=f64), torch.ones(5, 4, 4, dtype=f64), torch.ones(5)),
     "All tensors must have the same dtype, got input1: double, input2: double, weight: double, bias: float"),
    (lambda: torch.bilinear(torch.ones(3, 4), torch.ones(3, 4, dtype=f64), torch.ones(5, 4, 4)),
     "All tensors must have the same dtype, got input1: float, input2: double, weight: float"),
    (lambda: torch.norm_except_dim(torch.ones(3, dtype=torch.int64)), "norm(): input dtype should be either floating point or complex. Got Long instead."),
    (lambda: torch.baddbmm(torch.ones(3), torch.ones(1, 2, 3, dtype=f64), torch.ones(1, 3, 3, dtype=f64)),
     "Input dtypes must be the same, got: input float, batch1: double, batch2: double"),
    (lambda: torch.conv1d(torch.ones(1, 2, 3, dtype=f64), torch.ones(1, 2, 3, dtype=f64), torch.ones(1)),
     "Input type (double) and bias type (float) should be the same"),
])  # fmt: skip
def test_words(call, text):
    with pytest.raises(RuntimeError) as raised:
        call()
    assert str(raised.value) == text


def test_isclose_of_large_unsigned_numbers():
    a, b = torch.tensor([2**64 - 2, 4, 2**63 + 1, 0], dtype=torch.uint64), torch.tensor([2**64 - 3, 2**64 - 3, 2**63 + 1, 1], dtype=torch.uint64)
    assert torch.isclose(a, b).tolist() == [True, False, True, False]
    assert torch.isclose(a, b, rtol=0, atol=0).tolist() == [False, False, True, False]


def test_masked_fill_of_complex_halves():
    x, mask = torch.ones(3, dtype=torch.complex32), torch.tensor([True, False, True])
    for filled in (x.masked_fill(mask, 2 + 1j), x.masked_fill(mask, torch.tensor(2 + 1j)), x.clone().masked_fill_(mask, 2 + 1j)):
        assert filled.dtype is torch.complex32 and filled.tolist() == [2 + 1j, 1, 2 + 1j]


def test_a_part_of_a_complex_mean_that_is_not_finite_makes_the_other_nan():  # PyTorch 2.13's, and NumPy's; the sum keeps its parts apart
    for number, wanted in ((complex(inf, 1), (inf, nan)), (complex(1, -inf), (nan, -inf)), (complex(nan, 1), (nan, nan))):
        x = torch.tensor([[number, 1 + 1j], [1, 2]], dtype=torch.complex64)
        for mean in (x.mean(), x.mean(1)[0], x.mean((0, 1), keepdim=True).squeeze(), x.t().mean(0)[0]):
            torch.testing.assert_close(torch.view_as_real(mean), torch.tensor(wanted), equal_nan=True)
        assert x.mean(1)[1].item() == 1.5
