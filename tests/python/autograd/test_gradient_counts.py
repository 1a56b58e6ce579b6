"""More gradients than outputs are left aside; fewer raise."""

import cresset
import pytest

X = cresset.ones(2, requires_grad=True)
ONE = cresset.ones(2)


def test_more_gradients_than_outputs():
    (g,) = cresset.autograd.grad(X * 2, X, [ONE, ONE])
    assert g.tolist() == [2, 2]
    cresset.autograd.backward([X.sum()], [None, cresset.ones(3)], inputs=[X])
    assert X.grad.tolist() == [1, 1]


def test_fewer_gradients_than_outputs():
    with pytest.raises(RuntimeError, match="got 2 tensors and 1 gradients"):
        cresset.autograd.grad([X.sum(), X.sum()], X, [None])
    with pytest.raises(RuntimeError, match=r"Mismatch in dtype: grad_output\[0\] has a dtype of .*complex64 and output\[0\] has a dtype of .*float32"):
        cresset.autograd.grad(X * 2, X, ONE.to(cresset.complex64))
