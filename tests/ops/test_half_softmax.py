"""Softmax of half types: some rows at a time as floats, beside double precision, rounded once."""

import pytest

import cresset


@pytest.mark.parametrize("dtype", [cresset.bfloat16, cresset.float16], ids=str)
@pytest.mark.parametrize("sizes, dim", [((7, 1), 1), ((300, 3), 1), ((40, 16), 1), ((65, 32), -1), ((33, 33), 1), ((5, 1000), 1), ((2, 70000), 1), ((40, 50), 0), ((3, 20, 4), 1)])
@pytest.mark.parametrize("log", [False, True])
def test_beside_double_precision(dtype, sizes, dim, log):
    cresset.manual_seed(0)
    before = cresset.get_num_threads()
    x = (cresset.randn(sizes) * 3).to(dtype)
    grad = cresset.randn(sizes).to(dtype)
    eps = cresset.finfo(dtype).eps
    f = cresset.log_softmax if log else cresset.softmax
    exact = x.double().requires_grad_()
    want = f(exact, dim)
    try:
        for threads in (1, 3):
            cresset.set_num_threads(threads)
            for given in (x, x.t().contiguous().t() if x.dim() == 2 else x.transpose(0, 2).contiguous().transpose(0, 2)):
                leaf = given.detach().requires_grad_()
                got = f(leaf, dim)
                assert got.dtype == dtype
                cresset.testing.assert_close(got.double(), want, rtol=eps, atol=1e-6)
                # The gradient is computed of the rounded result.
                y = got.detach().double()
                g = grad.double()
                wanted = g - y.exp() * g.sum(dim, keepdim=True) if log else (g - (g * y).sum(dim, keepdim=True)) * y
                (gradient,) = cresset.autograd.grad(got, leaf, grad)
                cresset.testing.assert_close(gradient.double(), wanted, rtol=eps, atol=1e-5 * max(1.0, float(wanted.abs().max())))
    finally:
        cresset.set_num_threads(before)
