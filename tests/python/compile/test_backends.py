"""Backends of one's own, and PyTorch's names around compile()."""

import copy
import operator
import pickle

import cresset
import pytest
from cresset import fx, nn

X = cresset.arange(12.0).reshape(3, 4) - 5


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 2)

    def forward(self, x):
        return nn.functional.relu(self.lin(x))


def collecting():
    seen = []

    def backend(gm, example_inputs):
        assert isinstance(gm, fx.GraphModule)
        seen.append((gm, example_inputs))
        return gm.forward

    return backend, seen


def test_a_backend_gets_a_graph_module_and_example_inputs():
    """As in PyTorch's tutorial: print_tabular of the graph, and gm.forward back."""
    backend, seen = collecting()

    @cresset.compile(backend=backend)
    def f(x, y):
        a, b = cresset.sin(x), cresset.cos(y)
        return a + b, x

    y = X + 1
    got = f(X, y)
    assert cresset.equal(got[0], X.sin() + y.cos()) and got[1] is X
    (gm, inputs), = seen
    assert [type(i) for i in inputs] == [cresset.Tensor] * 2 and [tuple(i.shape) for i in inputs] == [(3, 4)] * 2
    assert [(n.op, n.target if isinstance(n.target, str) else n.target.__name__) for n in gm.graph.nodes] == [
        ("placeholder", "L_x_"), ("placeholder", "L_y_"), ("call_function", "sin"), ("call_function", "cos"), ("call_function", "add"), ("output", "output")]  # fmt: skip
    assert isinstance(gm(X, y), tuple) and "a, b = cresset.sin(x), cresset.cos(y)" in next(n for n in gm.graph.nodes if n.name == "sin").meta["stack_trace"]
    f(X, y), f(X[:2], y[:2]), f(X[:2], y[:2])
    assert len(seen) == 2


def test_backends_that_change_and_compile_the_graph():
    def swaps(gm, example_inputs):
        for node in gm.graph.nodes:
            if node.target is cresset.relu or node.target == "relu":
                with gm.graph.inserting_after(node):
                    new = gm.graph.call_function(cresset.sigmoid, node.args)
                node.replace_all_uses_with(new)
                gm.graph.erase_node(node)
        gm.recompile()
        return gm

    def traces(gm, example_inputs):
        return cresset.jit.freeze(cresset.jit.trace(gm.eval(), example_inputs))

    f = lambda x: x.relu() * 2  # noqa: E731
    assert cresset.allclose(cresset.compile(f, backend=swaps)(X), X.sigmoid() * 2)
    traced = cresset.compile(f, backend=traces)
    for x in (X, X[:1], X.double()):
        assert cresset.equal(traced(x), f(x))


def test_parameters_are_inputs():
    backend, seen = collecting()
    net = Net()
    compiled = cresset.compile(net, backend=backend)
    compiled(X).sum().backward()
    assert net.lin.weight.grad is not None and len(seen[0][1]) == 3 and any(i is net.lin.weight for i in seen[0][1])
    with cresset.no_grad():
        net.lin.weight.zero_()
    assert cresset.equal(compiled(X), net(X)) and len(seen) == 1


def test_optimized_modules_are_like_the_module():
    net = Net()
    compiled = cresset.compile(net)
    assert isinstance(compiled, cresset._dynamo.OptimizedModule) and isinstance(compiled, cresset._dynamo.eval_frame.OptimizedModule) and compiled._orig_mod is net
    assert list(compiled.state_dict()) == ["_orig_mod.lin.weight", "_orig_mod.lin.bias"] and [n for n, _ in compiled.named_parameters()] == list(compiled.state_dict())
    assert compiled.lin is net.lin and compiled.training and compiled.eval() is compiled and not net.training and not compiled.training
    compiled.extra = 3
    assert net.extra == 3 and "lin" in dir(compiled)
    for other in (copy.deepcopy(compiled), pickle.loads(pickle.dumps(compiled))):
        assert cresset.equal(other(X), net(X)) and other._orig_mod is not net


def test_modules_compile_in_place():
    net = Net().eval()
    want = net(X)
    net.compile(backend="eager")
    assert cresset.equal(net(X), want) and type(net) is Net and list(net.state_dict()) == ["lin.weight", "lin.bias"]
    assert "captured, 1 call: 2 operators, backend eager" in cresset.compile_report(net)
    net.register_forward_hook(lambda module, args, out: out + 1)
    assert cresset.equal(net(X), want + 1) and "has hooks" in cresset.compile_report(net)
    assert copy.deepcopy(net)._compiled_call_impl is None


def test_hooks_of_the_compiled_module_run_around_it():
    net, seen = Net().eval(), []
    compiled = cresset.compile(net)
    want = net(X)
    with cresset.no_grad():
        compiled(X)
        handles = [
            compiled.register_forward_pre_hook(lambda module, args: seen.append("before") or (args[0] * 1,)),
            compiled.register_forward_hook(lambda module, args, out: seen.append("behind") or out + 1),
        ]
        assert cresset.allclose(compiled(X), want + 1, atol=1e-5) and cresset.allclose(net(X), want, atol=1e-5) and seen == ["before", "behind"]
        for handle in handles:
            handle.remove()
        assert cresset.allclose(compiled(X), want, atol=1e-5) and len(seen) == 2
    compiled.register_full_backward_hook(lambda module, into, out: seen.append("backward"))
    compiled(X.clone().requires_grad_()).sum().backward()
    assert seen[-1] == "backward"


def test_names_of_backends():
    @cresset._dynamo.register_backend(name="mine")
    def backend(gm, example_inputs, options=None):
        calls.append(options)
        return gm.forward

    calls = []
    assert cresset.equal(cresset.compile(lambda x: x + 1, backend="mine", options={"a": 1})(X), X + 1) and calls == [{"a": 1}]
    assert "mine" in cresset._dynamo.list_backends()
    with pytest.raises(RuntimeError, match=r"Invalid backend: 'other', see `torch._dynamo.list_backends\(\)` for available backends."):
        cresset.compile(lambda x: x, backend="other")

    def broken(gm, example_inputs):
        raise ValueError("no")

    with pytest.raises(cresset._dynamo.exc.BackendCompilerFailed, match="backend='broken' raised:\nValueError: no"):
        cresset.compile(lambda x: x + 1, backend=broken)(X)
    with pytest.raises(cresset._dynamo.exc.BackendCompilerFailed, match="a callable was required; it gave a int"):
        cresset.compile(lambda x: x + 1, backend=lambda gm, inputs: 3)(X)


def test_whole_graphs():
    def asks(x):
        return x if x.sum() > 0 else -x

    def limits(x):
        try:
            return x + 1
        finally:
            pass

    with pytest.raises(cresset._dynamo.exc.Unsupported, match="fullgraph: the way depends on a tensor's contents .*test_backends.py"):
        cresset.compile(asks, fullgraph=True)(X)
    assert cresset.equal(cresset.compile(lambda x: x + 1, fullgraph=True)(X), X + 1)

    def makes_a_pair(x):
        import collections

        return collections.OrderedDict(x=x)

    with pytest.warns(UserWarning, match="fullgraph: .*makes_a_pair stays eager: Import statements are not captured"):
        assert cresset.compile(makes_a_pair, fullgraph=True)(X)["x"] is X


def test_explain():
    def f(x):
        print("x")
        return x

    def g(x):
        return x.sin() + 1

    first, second = cresset._dynamo.explain(f)(X), cresset._dynamo.explain(g)(X)
    assert (first.graph_count, first.graph_break_count) == (0, 1) and "calls print()" in first.break_reasons[0]
    assert (second.graph_count, second.graph_break_count, second.op_count) == (1, 0, 2) and "Graph Count: 1" in str(second)
    assert any("dtype" in guard for guard in second.out_guards)


def test_marks_and_questions():
    import math

    @cresset.compiler.allow_in_graph
    def opaque(x):
        return x * math.prod(x.shape)

    @cresset.compiler.assume_constant_result
    def settings():
        return __import__("os").environ.get("NOTHING", "1")

    backend, seen = collecting()

    def f(x):
        if cresset.compiler.is_compiling():
            return opaque(x) * float(settings())
        return x

    assert cresset.equal(cresset.compile(f, backend=backend)(X), X * 12) and f(X) is X
    assert opaque in [n.target for n in seen[0][0].graph.nodes]
    inner = cresset.compile(lambda x: x + 1)
    assert cresset.equal(cresset.compile(lambda x: inner(x) * 2, backend=backend)(X), (X + 1) * 2) and len(seen[1][0].graph.find_nodes(op="call_function", target=__import__("operator").add)) == 1
    disabled = cresset.compile(f, disable=True)
    assert disabled is f and cresset.compile(cresset.compiler.disable(f)) is f


@pytest.mark.parametrize("call, error, words", [
    (lambda: cresset.compile(3), TypeError, "a function or module was required; given: int"),
    (lambda: cresset.compile(len, mode="fast"), RuntimeError, "Unrecognized mode=fast, should be one of: default, reduce-overhead"),
    (lambda: cresset.compile(len, mode="default", options={}), RuntimeError, "Either mode or options can be specified"),
    (lambda: cresset.compile(len, min_block_size=3), TypeError, r"unexpected keyword argument 'min_block_size'; without inputs=\[…\] it takes PyTorch's"),
    (lambda: cresset.compile_report(3), ValueError, r"what compile\(\) gave was required"),
])  # fmt: skip
def test_refusals(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_the_decorator_keeps_the_function():
    @cresset.compile
    def f(x, n=2):
        """Adds."""
        return x + n

    assert f.__name__ == "f" and f.__doc__ == "Adds." and f.__wrapped__(X, 1).sum() == f(X, 1).sum() and cresset.compile(cresset.sin)(X).shape == X.shape
    assert cresset.compile(mode="max-autotune")(lambda x: x + 1)(X).shape == X.shape


def test_the_backend_where_none_is_given():
    seen = []

    def note(module, examples):
        seen.append(len(examples))
        return module.forward

    assert cresset.compiler.get_default_backend() == "inductor"
    try:
        cresset.compiler.set_default_backend(note)
        assert cresset.compiler.get_default_backend() is note
        x = cresset.arange(3.0)
        assert cresset.equal(cresset.compile(lambda v: v * 2 + 1)(x), x * 2 + 1) and seen == [1]
    finally:
        cresset.compiler.set_default_backend(None)
    assert cresset.compiler.get_default_backend() == "inductor"
    with pytest.raises(RuntimeError, match="(?s)nobody"):
        cresset.compiler.set_default_backend("nobody")


def test_a_function_of_python_stands_for_one_whose_code_is_not_there():
    def place(a, b, /):
        for i, item in enumerate(a):
            if item == b:
                return i
        raise ValueError("not there")

    found = cresset.compiler.substitute_in_graph(operator.indexOf)(place)
    assert found is place
    compiled = cresset.compile(lambda x: x + operator.indexOf((4, 5, 6), 6), fullgraph=True, backend="eager")
    assert cresset.equal(compiled(cresset.zeros(2)), cresset.full((2,), 2.0))
    with pytest.raises(TypeError, match="Signature mismatch"):
        cresset.compiler.substitute_in_graph(operator.indexOf)(lambda a: 0)
    with pytest.raises(TypeError, match="expects a function but got <class 'int'>"):
        cresset.compiler.substitute_in_graph(3)


def test_a_default_backend_is_none_for_inputs():
    cresset.compiler.set_default_backend("eager")
    try:
        x = cresset.ones(1, 4)
        module = nn.Linear(4, 2).eval()
        compiled = cresset.compile(module, inputs=[cresset.lowering.Input((1, 4))])
        cresset.testing.assert_close(compiled(x), module(x))
    finally:
        cresset.compiler.set_default_backend(None)
