"""functorch.compile: results and gradients of recorded functions are those of the functions."""

import cresset as torch
import pytest
from cresset._subclasses.fake_tensor import DynamicOutputShapeException
from cresset.functorch.compile import aot_function, aot_module, default_partition, make_boxed_func, nop


def same(function, *args, wanted=None):
    """Calls a function and what it was recorded as, with tensors of their own, and compares everything."""
    found = []
    for call in (function, aot_function(function, nop)):
        torch.manual_seed(0)
        own = [a.detach().clone().requires_grad_(a.requires_grad) for a in args]
        inner = [a.clone() if a.requires_grad else a for a in own]
        results = call(*inner)
        ends = [r for r in torch.utils._pytree.tree_leaves(results) if isinstance(r, torch.Tensor) and r.requires_grad]
        grads = torch.autograd.grad(sum((e * e).sum() for e in ends), [a for a in own if a.requires_grad], allow_unused=True) if ends else ()
        found.append((results, grads, [a.detach() for a in inner]))
    torch.testing.assert_close(found[0], found[1])


def written(x, y):
    y.add_(1)
    z = x.clone()
    z.mul_(y)
    z[0] = 4
    return z.sin()


X, Y = torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(1, 2, 6).reshape(2, 3)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: x * y,
        lambda x, y: {"a": [x.exp().sum(0), 3], "b": (y.relu(), None)},
        lambda x, y: torch.nn.functional.dropout(x) * torch.nn.functional.dropout(x + y),
        lambda x, y: (x.t() @ y).max(1),
        lambda x, y: (x.detach(), y.argmax(1), x.cos()),
        lambda x, y: torch.nn.functional.layer_norm(x @ y.t(), (2,)).softmax(-1).log(),
    ],
)
@pytest.mark.parametrize("requiring", [(), (0,), (0, 1)])
def test_results_and_gradients(function, requiring):
    same(function, *(t.clone().requires_grad_(n in requiring) for n, t in enumerate((X, Y))))


@pytest.mark.parametrize("function", [lambda x, y: y.add_(x.detach()).sum(), lambda x, y: (y.mul_(2), x * 3)[1], written])
def test_arguments_that_are_written(function):
    for requiring in (False, True):
        same(function, X.clone().requires_grad_(requiring), Y)
    with pytest.raises(RuntimeError, match="in-place operation"):
        aot_function(function, nop)(X, Y.clone().requires_grad_())


def test_sizes_that_depend_on_values():
    find = aot_function(lambda x: x.nonzero(), nop, dynamic=True)
    assert find(torch.tensor([1, 0, 2])).tolist() == [[0], [2]] and find(torch.tensor([0, 0, 2])).tolist() == [[2]]
    with pytest.raises(DynamicOutputShapeException):
        aot_function(lambda x: x.nonzero(), nop)(torch.tensor([1, 0, 2]))


def test_when_compilers_are_called():
    forward, backward = [], []
    call = aot_function(lambda x, k: x.sin() * k, lambda g, a: forward.append(len(a)) or g, lambda g, a: backward.append(len(a)) or make_boxed_func(g.forward))
    x = X.clone().requires_grad_()
    call(x, 2), call(x, 2)
    assert (forward, backward) == ([1], [])
    for _ in range(2):
        assert torch.allclose(torch.autograd.grad(call(x, 2).sum(), x)[0], 2 * x.cos())
    assert (forward, len(backward)) == ([1], 1)
    call(x, 3), call(x.detach(), 2), call(x[:1], 2)
    assert len(forward) == 4


def test_a_divided_graph():
    seen = []

    def divide(joint, inputs, *, num_fwd_outputs):
        forward, backward = default_partition(joint, inputs, num_fwd_outputs=num_fwd_outputs)
        seen.extend((forward.code, backward.code))
        return forward, backward

    x = X.clone().requires_grad_()
    aot_function(lambda x: x.sin().exp(), nop, partition_fn=divide)(x).sum().backward()
    assert "aten.exp" in seen[0] and "aten.cos" in seen[0] + seen[1] and "aten.exp" not in seen[1] and "tangents_1" in seen[1] and "tangents_1" not in seen[0]
    torch.testing.assert_close(x.grad, (x.sin().exp() * x.cos()).detach())


def test_modules():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1))
    recorded = aot_module(model, nop)
    torch.testing.assert_close(recorded(X), model(X))
    recorded(X).sum().backward()
    found = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    model(X).sum().backward()
    torch.testing.assert_close(found, [p.grad for p in model.parameters()])


def test_gradients_come_to_the_recorded_backward_as_they_were_recorded():
    class Identity(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g.contiguous().as_strided((2, 2), (2, 1))  # row by row, in memory

    x, g = torch.ones(2, 2, requires_grad=True), torch.tensor([[1.0, 2.0], [3.0, 4.0]]).t()
    assert torch.autograd.grad(Identity.apply(x), x, g)[0].equal(g)
    assert torch.autograd.grad(aot_function(Identity.apply, nop)(x), x, g)[0].equal(g)


def test_settings_of_a_block():
    from cresset.functorch.compile import config

    with config.patch(debug_assert=True), config.patch({"fake_tensor_allow_meta": False}):
        assert config.debug_assert is True and config.fake_tensor_allow_meta is False
    assert config.debug_assert is False and config.fake_tensor_allow_meta is True
    with pytest.raises(AttributeError, match="_functorch.config has no setting 'unknown'"), config.patch(unknown=1):
        pass


def test_simplified_modules_compile_at_once():
    from cresset.functorch.compile import aot_module_simplified, default_decompositions, make_boxed_compiler

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.l = torch.nn.Linear(3, 2)
            self.register_buffer("b", torch.ones(2))

        def forward(self, x):
            return (torch.nn.functional.hardtanh(self.l(x)) * self.b,)

    seen = []

    def compiler(graph, arguments):
        seen.append([tuple(a.shape) for a in arguments])
        assert "hardtanh" not in graph.code
        return graph.forward

    net, x = Net(), torch.randn(4, 3)
    call = aot_module_simplified(net, (x,), make_boxed_compiler(compiler), decompositions=default_decompositions)
    assert seen == [[(2, 3), (2,), (2,), (4, 3)]]  # PyTorch's order: parameters, buffers, arguments
    result = call(x)
    assert isinstance(result, list) and len(seen) == 1
    torch.testing.assert_close(result[0], net(x)[0])
    result[0].sum().backward()
    assert len(seen) == 2
    recorded, net.l.weight.grad = net.l.weight.grad, None
    net(x)[0].sum().backward()
    torch.testing.assert_close(recorded, net.l.weight.grad)


def _shifted(a):
    a.add_(1)
    return a.view(-1)


def _doubled(a):
    before = a.detach()
    a.mul_(2)
    return a, before


def _row_filled(a):
    b = a[0]
    return b.masked_fill_(torch.ones_like(b, dtype=torch.bool), 0)


def _product(a, b):
    a.mul_(b)
    return a.sin() * b


@pytest.mark.parametrize("function, count", [(_shifted, 1), (_doubled, 1), (_row_filled, 1), (_product, 2)])
def test_arguments_that_require_a_gradient_are_written(function, count):
    found = []
    for call in (function, aot_function(function, nop)):
        torch.manual_seed(0)
        leaves = [torch.randn(3, 3, requires_grad=True) for _ in range(count)]
        given = [leaf * 1 for leaf in leaves]
        results = call(*given)
        results = results if isinstance(results, tuple) else (results,)
        sum((r.sum() * (i + 1)).sin() for i, r in enumerate([*results, *given])).backward()
        found.append([*(r.detach() for r in results), *(g.detach() for g in given), *(leaf.grad for leaf in leaves)])
        shares = [r.data_ptr() == given[0].data_ptr() for r in results]
        found[-1].append(torch.tensor(shares))
    assert all(torch.allclose(a * 1.0, b * 1.0) for a, b in zip(*found, strict=True))


def test_fake_tensors_as_examples():
    """As compilers give them; a fake tensor that the function itself holds is refused in PyTorch 2.13's words."""
    from cresset._functorch.aot_autograd import aot_module_simplified

    mode = torch._subclasses.fake_tensor.FakeTensorMode()
    example, held = mode.from_tensor(torch.ones(2, 4, requires_grad=True)), mode.from_tensor(torch.ones(4))
    linear = torch.nn.Linear(4, 3)
    x = torch.ones(2, 4, requires_grad=True)
    result = aot_module_simplified(linear, (example,), nop)(x)
    torch.testing.assert_close(result, linear(x))
    torch.testing.assert_close(torch.autograd.grad(result.sum(), x)[0], linear.weight.sum(0).expand(2, 4))

    class Holds(torch.nn.Module):
        def forward(self, x):
            return (x + held,)

    with pytest.raises(AssertionError, match="Unexpected fake buffer _tensor_constant0"):
        aot_module_simplified(Holds(), (example,), nop)
