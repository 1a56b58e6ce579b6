"""Tensor.grad_dtype: the dtype that a leaf's gradient has, and to which the engine converts what comes in."""

import cresset
import pytest

F16, F32, F64 = cresset.float16, cresset.float32, cresset.float64


def leaf(grad_dtype=F32, dtype=F32):
    x = cresset.ones(2, dtype=dtype, requires_grad=True)
    x.grad_dtype = grad_dtype
    return x


class Doubles(cresset.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g.double()


def test_it_is_the_tensors_own_unless_set():
    for dtype in (F32, cresset.bfloat16, cresset.int32):
        assert cresset.ones(2, dtype=dtype).grad_dtype is dtype
    x = cresset.ones(2, requires_grad=True)
    assert x.grad_dtype is F32
    x.data = x.data.double()
    assert x.grad_dtype is F64
    (x * 2).sum().backward()
    assert x.grad.dtype is F64
    kept = leaf(F16)
    kept.data = kept.data.double()
    assert kept.grad_dtype is F16
    for copy in (leaf(F16).detach(), cresset.nn.Parameter(leaf(F16)), leaf(F16).detach().clone()):
        assert copy.grad_dtype is F32


BACKWARD = {
    "through an operator": (lambda x: (x * 2).sum().backward(), 2),
    "through a function that gives another dtype": (lambda x: Doubles.apply(x).sum().backward(), 1),
    "twice": (lambda x: [(x * 2).sum().backward() for _ in range(2)], 4),
    "with a graph": (lambda x: (x * 2).sum().backward(create_graph=True), 2),
    "into the leaf itself": (lambda x: cresset.autograd.backward(x, cresset.ones(2, dtype=F64)), 1),
}


@pytest.mark.parametrize("how", BACKWARD)
@pytest.mark.parametrize("dtype", [F16, F32, F64, cresset.bfloat16, cresset.complex64])
def test_gradients_are_converted(how, dtype):
    run, value = BACKWARD[how]
    x = leaf(dtype)
    run(x)
    assert x.grad.dtype is dtype and x.grad.tolist() == [value, value]


def test_gradients_of_autograd_grad_too():
    for create_graph in (False, True):
        x = leaf(F64)
        (g,) = cresset.autograd.grad((x * 2).sum(), x, create_graph=create_graph)
        assert g.dtype is F64
    h = leaf(F32, F16)
    (h.float() * 3).sum().backward()
    assert h.grad.dtype is F32


def test_none_takes_any_dtype():
    x = leaf(None)
    assert x.grad_dtype is None
    Doubles.apply(x).sum().backward()
    assert x.grad.dtype is F64
    x.grad = cresset.ones(2, dtype=F16)
    (x * 2).sum().backward()
    assert x.grad.dtype is F16 and x.grad.tolist() == [3, 3]
    x.grad = cresset.ones(2, dtype=cresset.int64)
    x.grad_dtype = None
    y = cresset.ones(2)
    y.grad_dtype = None
    y.requires_grad_()
    y.sum().backward()
    assert y.grad_dtype is None and y.grad.dtype is F32


def test_graphs_made_before_follow():
    x = cresset.ones(2, requires_grad=True)
    loss = (x * 2).sum()
    x.grad_dtype = F64
    (loss + (x * 2).sum()).backward()
    assert x.grad.dtype is F64 and x.grad.tolist() == [4, 4]


def test_hooks_see_the_converted_gradient():
    seen = []
    x = leaf(F64)
    x.register_hook(lambda g: seen.append(g.dtype))
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad.dtype))
    (x * 2).sum().backward()
    assert seen == [F64, F64]


def test_refusals():
    x = cresset.ones(2, requires_grad=True)
    words = "attempting to assign a gradient with dtype 'double' to a tensor with grad_dtype 'Float'. The gradient must match the tensor's grad_dtype"
    with pytest.raises(RuntimeError, match=words):
        x.grad = cresset.ones(2, dtype=F64)
    for how, act in (("accessed", lambda: (x * 2).grad_dtype), ("set", lambda: setattr(x * 2, "grad_dtype", F64))):
        with pytest.raises(RuntimeError, match=f"grad_dtype can only be {how} on leaf tensors."):
            act()
    for value in ("a", 3):
        with pytest.raises(RuntimeError, match=f"grad_dtype must be a torch.dtype or None, but got {type(value).__name__}"):
            x.grad_dtype = value
    x.grad_dtype = cresset.bfloat16
    x.grad = cresset.ones(2, dtype=cresset.bfloat16)
    x.grad_dtype = cresset.bfloat16
    words = "Cannot set grad_dtype to 'Float' because there is already a gradient with dtype 'c10::BFloat16'. Please clear the gradient"
    with pytest.raises(RuntimeError, match=words):
        x.grad_dtype = F32
    x.grad_dtype = None
    x.grad = None
    x.grad_dtype = cresset.int64
    with pytest.raises(RuntimeError, match="a grad_dtype of Long holds no gradients"):
        (x * 2).sum().backward()
    assert x.grad is None


def test_subclasses_and_layers():
    class Sub(cresset.Tensor):
        pass

    x = cresset.ones(2).as_subclass(Sub).requires_grad_()
    x.grad_dtype = F64
    (x * 2).sum().backward()
    assert x.grad_dtype is F64 and x.grad.dtype is F64
    layer = cresset.nn.Linear(2, 2).half()
    for p in layer.parameters():
        p.grad_dtype = F32
    layer(cresset.ones(1, 2, dtype=F16)).sum().backward()
    assert all(p.grad.dtype is F32 for p in layer.parameters())
    layer.zero_grad(set_to_none=False)
    assert all(p.grad.dtype is F32 for p in layer.parameters())
