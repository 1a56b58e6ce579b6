"""The operators that a mode sees of forward and backward are those of PyTorch 2.13, in its order: saved outputs are detached when they are saved and
when they are used, first gradients when they are kept."""

import pytest

import cresset
import cresset.nn.functional as F
from cresset.utils._python_dispatch import TorchDispatchMode


class Log(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(str(func).removeprefix("aten."))
        return func(*args, **(kwargs or {}))


def seen(f):
    with Log() as log:
        f()
    return " ".join(log.names)


x = cresset.randn(3, requires_grad=True)
w = cresset.randn(4, 3, requires_grad=True)
b = cresset.randn(4, requires_grad=True)
inputs = cresset.randn(2, 3)
SUM = "sum.default ones_like.default expand.default"
BACKWARD = {
    "exp": (lambda: x.exp(), f"exp.default detach.default {SUM} detach.default mul.Tensor detach.default"),
    "relu": (lambda: x.relu(), f"relu.default detach.default {SUM} detach.default threshold_backward.default detach.default"),
    "softmax": (lambda: x.softmax(0), f"_softmax.default detach.default {SUM} detach.default _softmax_backward_data.default detach.default"),
    "mul": (lambda: x * 2, f"mul.Tensor {SUM} mul.Tensor detach.default"),
    "rsub": (lambda: 1 - x, f"rsub.Scalar {SUM} neg.default detach.default"),
    "twice": (
        lambda: x.exp().exp(),
        f"exp.default detach.default exp.default detach.default {SUM} detach.default mul.Tensor detach.default mul.Tensor detach.default",
    ),
    "linear": (
        lambda: F.linear(inputs, w, b),
        f"t.default addmm.default {SUM} t.default mm.default t.default sum.dim_IntList view.default detach.default t.default detach.default",
    ),
    "mm": (lambda: inputs @ w.t(), f"t.default mm.default {SUM} t.default mm.default t.default t.default detach.default"),
}


@pytest.mark.parametrize("name", BACKWARD)
def test_forward_and_backward(name):
    f, expected = BACKWARD[name]
    x.grad = w.grad = b.grad = None
    assert seen(lambda: f().sum().backward()) == expected


def test_numbers_are_asked_for():
    t = cresset.ones(1)
    assert seen(lambda: t.item()) == seen(lambda: float(t)) == seen(lambda: bool(t)) == "_local_scalar_dense.default"


def test_saved_outputs_are_still_checked_and_may_have_hooks():
    with Log():
        y = x.exp()
        z = x.exp()
    z.grad_fn._raw_saved_result.register_hooks(lambda t: t * 2, lambda t: t)
    assert cresset.equal(cresset.autograd.grad(z.sum(), x)[0], 2 * z.detach())
    with cresset.no_grad():
        y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_gradients_of_transposed_factors_need_no_copy():
    for a, c in ((cresset.randn(2, 3), w), (cresset.randn(2, 3, dtype=cresset.complex64), cresset.randn(4, 3, dtype=cresset.complex64, requires_grad=True))):
        c.grad = None
        (a @ c.t()).abs().sum().backward()
        assert c.grad.stride() == c.stride()
    for make in (lambda: cresset.randn(3, 2, dtype=cresset.complex128).t(), lambda: cresset.randn(2, 3, dtype=cresset.complex128)):
        left, right = make().detach().requires_grad_(), cresset.randn(4, 3, dtype=cresset.complex128).t().detach().requires_grad_()
        assert cresset.autograd.gradcheck(cresset.mm, (left, right))
        assert cresset.autograd.gradgradcheck(cresset.mm, (left, right))


def test_refusals_of_all_handlers():
    class Refusing(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match=r"\n\nFor more information, try re-running with TORCH_LOGS=not_implemented$"), Refusing():
        cresset.ones(1)
