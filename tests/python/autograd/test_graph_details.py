"""What the graph keeps and checks: histories of changed views, gradients' types, version counters, hooks that come late."""

import abc
import pickle

import pytest

import cresset as torch
from cresset.autograd import GradcheckError, forward_ad, grad, gradcheck, gradgradcheck
from cresset.autograd.graph import Node, saved_tensors_hooks
from cresset.nn import Parameter

f64 = torch.float64


def points(*shape):
    return torch.arange(1.0, 1 + torch.Size(shape).numel(), dtype=f64).reshape(shape).div(7).requires_grad_()


# --- views that a Function changed --------------------------------------------------------------------------------------------------


class Exp(torch.autograd.Function):
    """exp in place, which saves its result."""

    @staticmethod
    def forward(ctx, x):
        x.exp_()
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        return x

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


VIEWS = {
    "whole": lambda y: y,
    "transposed": lambda y: y.t(),
    "narrowed": lambda y: y.t()[1:],
    "chained": lambda y: y.view(-1)[1:5].view(2, 2).t(),
}


@pytest.mark.parametrize("view", VIEWS)
def test_function_in_place_on_a_view(view):
    def f(x):
        y = x.clone()
        Exp.apply(VIEWS[view](y))
        return y

    assert gradcheck(f, (points(2, 3),))
    assert gradgradcheck(f, (points(2, 3),))


@pytest.mark.parametrize("key", ["CPU", "Autograd"])
@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.filterwarnings("ignore")
def test_apply_as_a_kernel(key, view):
    """Function.apply registered for an operator, of the CPU or of autograd, is the same Function."""
    with torch.library._scoped_library("test_apply_as_a_kernel", "DEF") as library:
        library.define("exp_(Tensor(a!) x) -> Tensor(a!)")
        library.impl("exp_", Exp.apply, key)
        op = torch.ops.test_apply_as_a_kernel.exp_

        def f(x):
            y = x.clone()
            op(VIEWS[view](y))
            return y

        assert gradgradcheck(f, (points(2, 3),))


def test_base_with_gaps():
    def f(x):
        base = torch.empty_strided((3, 2), (4, 1), dtype=f64).copy_(x)
        base.t().exp_()
        return base

    assert gradcheck(f, (points(3, 2),)) and gradgradcheck(f, (points(3, 2),))


# --- constants, powers, products ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("power", [lambda x: x**2, lambda x: x.square(), lambda x: x.pow(torch.tensor(2.0)), lambda x: x**2.0, lambda x: x**3])
def test_second_derivatives_have_a_graph(power):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (first,) = grad(power(x).sum(), x, create_graph=True)
    (second,) = grad(first.sum(), x, create_graph=True)
    second.sum().backward()
    assert second.requires_grad and x.grad is not None


def test_no_graph_without_recording():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    assert grad((x**2).sum(), x)[0].tolist() == [2, 4]


@pytest.mark.parametrize("base", [-2.0, -0.5, 3.0])
def test_complex_powers_of_real_numbers(base):
    exponent = torch.tensor([1 + 1j, 2 - 1j, 0.5j, 1.0], dtype=torch.complex128, requires_grad=True)
    number = torch.tensor(base, dtype=f64, requires_grad=True)
    for f, inputs in ((lambda e: torch.pow(base, e), (exponent,)), (torch.pow, (number, exponent)), (lambda b: b ** (1 + 2j), (number,))):
        assert gradcheck(f, inputs, check_forward_ad=True)
        assert gradgradcheck(f, inputs)


def test_complex_powers_of_zero():
    exponent = torch.tensor([1 + 1j, 2.0], dtype=torch.complex128, requires_grad=True)
    torch.pow(0.0, exponent).sum().abs().backward()
    assert exponent.grad.tolist() == [0, 0]


@pytest.mark.parametrize("reduce", ["scatter_reduce", "index_reduce"])
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("values", [[1, 2, 3, 4, 5], [0, 2, 3, 4, 5], [0, 0, 3, 4, 0], [0, 0, 0, 4, 0]], ids=str)
@pytest.mark.parametrize("start", [[1.5, 2.5], [0, 2.5]], ids=str)
@pytest.mark.filterwarnings("ignore")
def test_products_with_zeros(reduce, include_self, values, start):
    index = torch.tensor([0, 1, 0, 0, 1])

    def f(self, src):
        return getattr(torch, reduce)(self, 0, index, src, "prod", include_self=include_self)

    inputs = torch.tensor(start, dtype=f64, requires_grad=True), torch.tensor(values, dtype=f64, requires_grad=True)
    assert gradcheck(f, inputs, check_forward_ad=True)
    assert gradgradcheck(f, inputs, check_fwd_over_rev=True)
    for i in range(2):  # third derivatives; differences near a zero factor divide by the step
        assert gradgradcheck(lambda *v: grad(f(*v).sum(), v, create_graph=True)[i], inputs, atol=1e-2)


# --- the types of gradients ---------------------------------------------------------------------------------------------------------


def returning(make):
    class Made(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return make(g)

    return Made.apply


def test_complex_gradient_of_a_real_input():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="expected a real gradient, as the input is of type Float, but got ComplexFloat"):
        returning(lambda g: g * (1 + 1j))(x).sum().backward()
    assert x.grad is None


def test_integral_gradient_of_a_complex_input():
    z = torch.ones(2, dtype=torch.complex64, requires_grad=True)
    with pytest.raises(RuntimeError, match="expected a complex gradient"):
        returning(lambda g: torch.ones(2, dtype=torch.int64))(z).abs().sum().backward()


def test_gradients_that_are_cast():
    x, z = torch.ones(2, requires_grad=True), torch.ones(2, dtype=torch.complex64, requires_grad=True)
    returning(lambda g: torch.ones(2, dtype=torch.int64))(x).sum().backward()
    returning(lambda g: g.double())(x).sum().backward()
    returning(lambda g: g.real)(z).abs().sum().backward()
    assert x.grad.dtype == torch.float32 and x.grad.tolist() == [2, 2] and z.grad.dtype == torch.complex64


# --- version counters ---------------------------------------------------------------------------------------------------------------


def test_a_tensor_with_other_data_counts_on():
    x, y = torch.zeros(4), torch.ones(4)
    view, detached = x.view(2, 2), x.detach()

    def versions():
        return [t._version for t in (x, view, detached, y)]

    x.data = y
    assert versions() == [0, 0, 0, 0]
    x.add_(1)
    assert versions() == [1, 1, 1, 0]
    y.add_(1)
    x.data.add_(1)
    assert versions() == [1, 1, 1, 1]
    view.add_(1)
    assert versions() == [2, 2, 2, 1]
    alone = torch.zeros(4).add_(1).add_(1)
    alone.data = y
    assert (alone._version, y._version) == (2, 1)


def test_a_change_before_other_data_is_seen():
    w = torch.ones(2, requires_grad=True)
    y = w.clone()
    z = (y * y).sum()
    with torch.no_grad():
        y.add_(1)
    y.data = torch.ones(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


# --- hooks --------------------------------------------------------------------------------------------------------------------------


def test_hooks_for_saved_tensors_are_functions():
    for hooks in ((1, lambda t: t), (lambda t: t, None)):
        with pytest.raises(TypeError, match="must be callable"), saved_tensors_hooks(*hooks):
            pass


def test_hooks_that_come_while_the_node_runs():
    seen, node = [], []

    def unpack(t):
        node[0].register_hook(lambda inputs, outputs: seen.append((inputs[0].tolist(), outputs[0].tolist())))
        return t

    x = torch.zeros(2, requires_grad=True)
    with saved_tensors_hooks(lambda t: t, unpack):
        y = x.exp()
    node.append(y.grad_fn)
    (y * 3).sum().backward()
    assert seen == [([3, 3], [3, 3])]


def test_hooks_of_saved_tensors_see_the_tensor():
    x, p = torch.ones(2, requires_grad=True), Parameter(torch.ones(2))
    inner, seen = x * 2, []
    with saved_tensors_hooks(lambda t: (seen.append(t), t)[1], lambda t: t):
        y = x * p + inner * inner
    assert [any(t is s for s in seen) for t in (x, p, inner)] == [True, True, True]
    y.sum().backward()
    assert x.grad.tolist() == [9, 9] and p.grad.tolist() == [1, 1]


# --- forward mode -------------------------------------------------------------------------------------------------------------------


def test_jvp_inside_of_forward():
    found = []

    class Made(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            one = torch.ones_like(x)
            found.append(torch.func.jvp(torch.sin, (x,), (one,))[1])
            found.append(torch.func.jacfwd(torch.sin)(x))
            found.append(torch.func.jvp(lambda y: torch.func.jvp(torch.sin, (y,), (one,))[1], (x,), (one,))[1])
            with forward_ad.dual_level():
                assert forward_ad.unpack_dual(forward_ad.make_dual(x, one) * 2).tangent is None  # as in PyTorch: forward mode is off
            return x.clone()

    x = torch.tensor(0.3, requires_grad=True)
    Made.apply(x)
    assert [round(t.item(), 4) for t in found] == [0.9553, 0.9553, -0.2955]


# --- pickles ------------------------------------------------------------------------------------------------------------------------


def test_pickles_of_results_are_leaves():
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.note = 3
    back = pickle.loads(pickle.dumps([x, y, y[:1], y.detach()]))
    assert [(t.tolist(), t.requires_grad, t.is_leaf) for t in back] == [([1, 1], True, True), ([2, 2], True, True), ([2], True, True), ([2, 2], False, True)]
    assert back[1].note == 3


# --- words --------------------------------------------------------------------------------------------------------------------------


def test_gradcheck_of_batches_raises_its_own_error():
    def with_item(g):
        return g * (g.sum() * 0 + 2).item()

    class Made(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return with_item(g)

    x = torch.ones(2, dtype=f64, requires_grad=True)
    with pytest.raises(GradcheckError, match="gradcheck or gradgradcheck failed while testing batched gradient computation"):
        gradcheck(Made.apply, (x,), check_batched_grad=True)
    assert gradcheck(Made.apply, (x,), check_batched_grad=True, raise_exception=False) is False


def test_vmap_wants_setup_context_first():
    class Made(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

    with pytest.raises(RuntimeError, match="it must override the setup_context staticmethod"):
        torch.vmap(Made.apply)(torch.ones(3))


def test_versions_of_inference_tensors_are_not_counted():
    with torch.inference_mode():
        x = torch.ones(2)
        torch.autograd.graph.increment_version(x)
    torch.autograd.graph.increment_version(x)
    assert x.is_inference()


# --- how changed views are rebuilt ---------------------------------------------------------------------------------------------------


def test_views_are_replayed_where_that_is_asked_for():
    def node():
        x = torch.ones(2, 2, requires_grad=True)
        view = x.clone().view(-1)
        view.add_(1)
        return type(view.grad_fn).__name__

    assert not torch.autograd.is_view_replay_enabled() and node() == "AsStridedBackward0"
    with torch.autograd._force_original_view_tracking(True):
        assert torch.autograd.is_view_replay_enabled() and node() == "ViewBackward0"
        with torch.autograd._force_original_view_tracking(False):
            assert node() == "AsStridedBackward0"
        assert node() == "ViewBackward0"
    assert torch.autograd._force_original_view_tracking(True)(node)() == "ViewBackward0"
    torch.autograd._force_original_view_tracking(False)
    assert node() == "AsStridedBackward0"


@pytest.mark.parametrize("fast", [True, False])
def test_undefined_gradients_are_explained(fast):
    def f(x):
        def hook(g):
            if g is None:
                raise RuntimeError("x is undefined")

        y = x.clone()
        y.register_hook(hook)
        return y

    with pytest.warns(UserWarning, match="New undefined gradient support checking feature"):
        with pytest.raises(GradcheckError, match="Expected backward function to handle undefined output grads"):
            gradcheck(f, (points(1),), fast_mode=fast)


# --- nodes --------------------------------------------------------------------------------------------------------------------------


def test_node_is_a_class_that_is_asked():
    node = torch.ones(2, requires_grad=True).exp().grad_fn
    leaf = node.next_functions[0][0]
    assert isinstance(node, Node) and isinstance(leaf, Node) and issubclass(type(node), Node) and issubclass(Node, Node)
    assert Node not in type(node).mro() and Node.__mro__[1:] == (abc.ABC, object)
    assert not any(isinstance(o, Node) for o in (None, 1, Node, type(node), torch._C._functions.AccumulateGrad))
    assert issubclass(torch._C._functions.AccumulateGrad, Node) and issubclass(torch._C._functions.DelayedError, Node)

    class Own(Node):
        pass

    assert issubclass(Own, Node) and not issubclass(type(node), Own)
    with pytest.raises(TypeError, match="abstract class Node"):
        Node()
