"""backward and grad from Python: leaves, hooks, modes, nodes, custom functions."""

import gc
import weakref

import pytest

import cresset as torch
from cresset.autograd import Function, grad, once_differentiable


@pytest.fixture
def w():
    return torch.arange(3.0, requires_grad=True)


def test_backward(w):
    (w * w).sum().backward()
    assert w.grad.tolist() == [0.0, 2.0, 4.0]
    (w * 2).backward(torch.tensor([1.0, 0.0, 1.0]))
    assert w.grad.tolist() == [2.0, 2.0, 6.0]
    assert w.is_leaf and not (w * 2).is_leaf and w.grad_fn is None


def test_backward_inputs(w):
    v = torch.ones(3, requires_grad=True)
    (w * v).sum().backward(inputs=[v])
    assert w.grad is None and v.grad.tolist() == w.tolist()
    with pytest.raises(RuntimeError, match="`inputs` argument to `backward..` cannot be empty"):
        (w * v).sum().backward(inputs=[])


def test_grad(w):
    (g,) = grad((w**3).sum(), w, create_graph=True)
    (gg,) = grad(g.sum(), w)
    assert gg.tolist() == [0.0, 6.0, 12.0] and w.grad is None
    other = torch.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        grad(w.sum(), [w, other])
    assert grad(w.sum(), [w, other], allow_unused=True)[1] is None
    assert grad(w.sum(), [w, other], materialize_grads=True)[1].tolist() == [0.0]


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda w: (w * 2).backward(), "grad can be implicitly created only for scalar outputs"),
        (lambda w: grad(w * 2, w), "grad can be implicitly created only for scalar outputs"),
        (lambda w: torch.ones(2).sum().backward(), "does not require grad and does not have a grad_fn"),
        (lambda w: [y := w.exp().sum(), y.backward(), y.backward()], "Trying to backward through the graph a second time"),
        (lambda w: [y := w.exp(), y.add_(1), y.sum().backward()], "has been modified by an inplace operation"),
        (lambda w: w.add_(1), "a leaf Variable that requires grad is being used in an in-place operation"),
        (lambda w: (w * 2).requires_grad_(False), "you can only change requires_grad flags of leaf variables"),
        (lambda w: setattr(w, "grad", torch.ones(2)), r"gradient of size '\[2\]' to a tensor of size '\[3\]'"),
        (lambda w: setattr(w, "grad", torch.ones(3, dtype=torch.float64)), "a gradient with dtype"),
        (lambda w: setattr(w, "grad", w), "can't assign Variable as its own grad"),
        (lambda w: torch.ones(1).register_hook(print), "cannot register a hook on a tensor that doesn't require gradient"),
    ],
)
def test_errors(w, call, words):
    with pytest.raises(RuntimeError, match=words):
        call(w)


def test_grad_attribute(w):
    w.grad = torch.ones(3)
    assert w.grad.tolist() == [1.0, 1.0, 1.0]
    w.grad = None
    assert w.grad is None
    with pytest.raises(TypeError, match="expected to be a Tensor or None but got grad of type int"):
        w.grad = 3
    w.grad = torch.zeros(3)
    del w.grad
    assert w.grad is None


def test_set_grad_enabled_takes_bools():
    for wrong in (1, None, "a"):
        with pytest.raises(TypeError, match=rf"set_grad_enabled\(\): argument 'enabled' \(position 1\) must be bool, not {type(wrong).__name__}"):
            torch.set_grad_enabled(wrong)
    assert torch.is_grad_enabled()


def test_modes(w):
    with torch.no_grad():
        assert not (w * 2).requires_grad and not torch.is_grad_enabled()
        with torch.enable_grad():
            assert (w * 2).requires_grad
    with torch.set_grad_enabled(False):
        assert not (w * 2).requires_grad
    assert torch.is_grad_enabled()
    with torch.inference_mode():
        y = w * 2
        assert y.is_inference() and not y.requires_grad
    with pytest.raises(RuntimeError, match="[Ii]nference tensor"):
        (w * y).sum().backward()


def test_modes_decorate(w):
    @torch.no_grad()
    def plain(x):
        """Doc."""
        return (x * 2).requires_grad

    @torch.no_grad
    def bare(x):
        return (x * 2).requires_grad

    @torch.no_grad()
    def numbers():
        got = yield torch.is_grad_enabled()
        while True:
            got = yield (got, torch.is_grad_enabled())

    assert plain(w) is False and bare(w) is False and plain.__doc__ == "Doc."
    generator = numbers()
    assert next(generator) is False and torch.is_grad_enabled()
    assert generator.send("a") == ("a", False) and torch.is_grad_enabled()
    with pytest.raises(ZeroDivisionError):
        with torch.no_grad():
            1 / 0
    assert torch.is_grad_enabled()


def test_hooks(w):
    seen = []
    handle = w.register_hook(lambda g: seen.append(g.tolist()) or g * 2)
    (w * 3).sum().backward()
    assert seen == [[3.0] * 3] and w.grad.tolist() == [6.0] * 3
    handle.remove()
    w.grad = None
    y = w * 3
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    assert w.grad.tolist() == [30.0] * 3
    done = []
    w.register_post_accumulate_grad_hook(lambda p: done.append(p.grad.tolist()))
    (w * 1).sum().backward()
    assert done == [[31.0] * 3]
    z = w * 1
    z.register_hook(lambda g: "no tensor")
    with pytest.raises(TypeError, match="expected Variable, but hook returned 'str'"):
        z.sum().backward()


def test_an_exception_of_a_hook_travels_through_the_engine(w):
    class Mine(Exception):
        pass

    def hook(g):
        raise Mine("from the hook")

    w.register_hook(hook)
    with pytest.raises(Mine, match="from the hook"):
        (w * 2).sum().backward()


def test_retain_grad(w):
    y = w * 2
    y.retain_grad()
    y.sum().backward()
    assert y.grad.tolist() == [1.0] * 3 and y.retains_grad


def test_nodes(w):
    y = (w * 2).sum()
    node = y.grad_fn
    assert node.name() == "SumBackward0" and type(node).__name__ == "SumBackward0" and isinstance(node, torch.autograd.graph.Node)
    assert y.grad_fn is node
    (mul, nr), = node.next_functions
    assert mul.name() == "MulBackward0" and nr == 0
    leaf = mul.next_functions[0][0]
    assert leaf.variable is w and mul.next_functions[1][0] is None
    node.metadata["note"] = 1
    del node
    gc.collect()
    assert y.grad_fn.metadata == {"note": 1}
    seen = []
    mul.register_prehook(lambda grads: seen.append("pre") or (grads[0] * 2,))
    mul.register_hook(lambda inputs, outputs: seen.append((inputs[0].tolist(), outputs[0].tolist())))
    y.backward()
    assert seen == ["pre", ([4.0] * 3, [2.0] * 3)] and w.grad.tolist() == [4.0] * 3
    with pytest.raises(AttributeError, match="variable"):
        mul.variable


def test_views_and_versions():
    x = torch.zeros(2, 3)
    assert x[0]._base is x and x.view(6)._base is x and x._base is None
    before = x._version
    x[0].add_(1)
    assert x._version == before + 1
    assert x.detach()._base is None or x.detach().grad_fn is None
    assert x.data.data_ptr() == x.data_ptr()
    x.data = torch.ones(4)
    assert x.tolist() == [1.0] * 4


class Exp(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


class Scale(Function):
    @staticmethod
    def forward(x, by, note=None):
        assert not torch.is_grad_enabled()
        return x * by, "text"

    @staticmethod
    def setup_context(ctx, inputs, output):
        assert len(inputs) == 3
        ctx.by = inputs[1]

    @staticmethod
    def backward(ctx, g, none):
        assert none is None and ctx.needs_input_grad == (True, False, False)
        return g * ctx.by, None, None

    @staticmethod
    def jvp(ctx, t, *none):
        return t * ctx.by, None


def test_function(w):
    y = Exp.apply(w)
    assert type(y.grad_fn).__name__ == "ExpBackward" and isinstance(y.grad_fn, torch.autograd.graph.Node)
    assert y.grad_fn.next_functions[0][0].variable is w
    (g,) = grad(y.sum(), w, create_graph=True)
    (gg,) = grad(g.sum(), w)
    assert gg.tolist() == pytest.approx(w.exp().tolist())
    with pytest.raises(RuntimeError, match="a second time"):
        z = Exp.apply(w).sum()
        z.backward()
        z.backward()


def test_function_with_separate_context(w):
    y, text = Scale.apply(w, by=3)
    assert text == "text"
    y.sum().backward()
    assert w.grad.tolist() == [3.0] * 3


def test_function_in_forward_mode():
    import cresset.autograd.forward_ad as fwAD

    with fwAD.dual_level():
        dual = fwAD.make_dual(torch.ones(2), torch.tensor([1.0, 2.0]))
        y, _ = Scale.apply(dual, 3)
        assert fwAD.unpack_dual(y).tangent.tolist() == [3.0, 6.0]
        with pytest.raises(NotImplementedError, match="implement the jvp function"):
            Exp.apply(dual)


@pytest.mark.parametrize(
    "result, words",
    [
        (lambda g: (g, g), r"returned an incorrect number of gradients \(expected 1, got 2\)"),
        (lambda g: "text", r"expected Variable or None \(got str\)"),
        (lambda g: torch.ones(7), "expected shape compatible with"),
    ],
)
def test_function_gradient_errors(w, result, words):
    class Bad(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return result(g)

    with pytest.raises(RuntimeError, match=words):
        Bad.apply(w).sum().backward()


def test_function_marks(w):
    class Both(Function):
        @staticmethod
        def forward(ctx, x):
            a, b = x * 2, x > 1
            ctx.mark_non_differentiable(b)
            ctx.set_materialize_grads(False)
            return a, b, x * 3

        @staticmethod
        def backward(ctx, ga, gb, gc):
            assert gb is None and gc is None
            return ga * 2

    a, b, c = Both.apply(w)
    assert a.requires_grad and not b.requires_grad and c.requires_grad
    a.sum().backward()
    assert w.grad.tolist() == [2.0] * 3

    class AddOne(Function):
        @staticmethod
        def forward(ctx, x):
            x.add_(1)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 5

    x = w * 1
    y = AddOne.apply(x)
    assert y is x and y.grad_fn.name() == "AddOneBackward"
    w.grad = None
    y.sum().backward()
    assert w.grad.tolist() == [5.0] * 3


def test_once_differentiable(w):
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

    (g,) = grad(Square.apply(w).sum(), w)
    assert g.tolist() == [0.0, 2.0, 4.0]
    weight = torch.ones(3, requires_grad=True)
    (g,) = grad((Square.apply(w) * weight).sum(), w, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.sum().backward()


def test_function_needs_its_methods(w):
    class Nothing(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with pytest.raises(NotImplementedError, match="either the backward or vjp method"):
        Nothing.apply(w).sum().backward()
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        old = Nothing()
    with pytest.raises(RuntimeError, match="non-static forward"):
        old(w)


def test_contexts_are_freed(w):
    class Keep(Exp):
        pass

    y = Keep.apply(w)
    ref = weakref.ref(y.grad_fn)
    assert ref() is not None
    del y
    gc.collect()
    assert ref() is None


def test_anomaly_mode(w):
    y = w / 0
    with pytest.warns(UserWarning):
        with torch.autograd.detect_anomaly():
            with pytest.raises(RuntimeError, match="returned nan values"):
                (w * 0 / (w * 0)).sum().backward()
    assert y is not None and not torch.is_anomaly_enabled()


def test_saved_tensors_hooks(w):
    packed = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: packed.append(t.tolist()) or t * 10, lambda t: t / 10):
        y = (w * w).sum()
    assert packed == [w.tolist()] * 2
    y.backward()
    assert w.grad.tolist() == [0.0, 2.0, 4.0]
    with torch.autograd.graph.save_on_cpu():
        w.exp().sum().backward()
    with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"):
            with torch.autograd.graph.save_on_cpu():
                pass
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor but got result of type"):
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: 3):
            y = w.exp().sum()
        y.backward()
