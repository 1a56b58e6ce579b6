"""torch.cond and torch.while_loop in make_fx: the graphs are those of PyTorch 2.13."""

import pytest

import cresset
from cresset.fx.experimental.proxy_tensor import make_fx


def choose(x):
    z = x * 2
    a, b = cresset.cond(x.sum() > 0, lambda u: (u + z, u.sin()), lambda u: (u - z, u.cos()), (x,))
    return a + b


def loop(i, x):
    return cresset.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (i, x))


def nested(x):
    return cresset.cond(x.sum() > 0, lambda x: cresset.cond(x[0] > 0.5, lambda x: x + 1, lambda x: x + 2, (x,)), lambda x: x * 3, (x,))


X = cresset.tensor([0.25, 1.0, 2.0])
MODES = ["real", "fake", "symbolic"]


def lines(graph_module):
    """The statements of the code, without what is deleted behind them."""
    return [line.split(";")[0].strip() for line in graph_module.code.splitlines() if " = " in line or "return" in line]


@pytest.mark.parametrize("mode", MODES)
def test_cond(mode):
    graph = make_fx(choose, tracing_mode=mode)(X)
    assert lines(graph) == [
        "mul = torch.ops.aten.mul.Tensor(x_1, 2)", "sum_1 = torch.ops.aten.sum.default(x_1)", "gt = torch.ops.aten.gt.Scalar(sum_1, 0)",
        "true_graph_0 = self.true_graph_0", "false_graph_0 = self.false_graph_0",
        "cond = torch.ops.higher_order.cond(gt, true_graph_0, false_graph_0, (x_1, mul))",
        "getitem = cond[0]", "getitem_1 = cond[1]", "add = torch.ops.aten.add.Tensor(getitem, getitem_1)", "return add",
    ]  # fmt: skip
    assert lines(graph.false_graph_0) == ["sub = torch.ops.aten.sub.Tensor(arg0_1, arg1_1)", "cos = torch.ops.aten.cos.default(arg0_1)", "return (sub, cos)"]
    for x in (X, -X):
        assert cresset.equal(graph(x), choose(x))


def test_the_trace_goes_on_with_the_branch_that_is_chosen():
    seen = []
    make_fx(lambda x: seen.append(cresset.cond(x.sum() > 0, cresset.sin, cresset.cos, (x,))))(-X)
    assert cresset.equal(seen[0], X.cos())


@pytest.mark.parametrize("mode", MODES)
def test_while_loop(mode):
    graph = make_fx(loop, tracing_mode=mode)(cresset.tensor(0), X)
    assert lines(graph)[2:] == [
        "while_loop = torch.ops.higher_order.while_loop(while_loop_cond_graph_0, while_loop_body_graph_0, (i_1, x_1), ())",
        "getitem = while_loop[0]", "getitem_1 = while_loop[1]", "return (getitem, getitem_1)",
    ]  # fmt: skip
    found = graph(cresset.tensor(1), X)
    assert found[0].item() == 3 and found[1].tolist() == [1.0, 4.0, 8.0]


@pytest.mark.parametrize("mode", MODES)
def test_nested(mode):
    graph = make_fx(nested, tracing_mode=mode)(X)
    assert [n.target for n in graph.graph.nodes if n.op == "get_attr"] == ["true_graph_0", "false_graph_0"]
    assert hasattr(graph.true_graph_0, "true_graph_0")
    for x in (X, X * 4, -X):
        assert cresset.equal(graph(x), nested(x))


def test_before_dispatch():
    graph = make_fx(choose, pre_dispatch=True)(X)
    assert cresset.equal(graph(-X), choose(-X)) and "higher_order.cond" in graph.code


def test_a_tensor_from_around_is_a_constant():
    around = cresset.tensor([1.0, 2.0, 3.0])
    graph = make_fx(lambda x: cresset.cond(x.sum() > 0, lambda x: x * around, lambda x: x + around, (x,)))(X)
    assert graph(X).tolist() == [0.25, 2.0, 6.0] and graph(-X).tolist() == [0.75, 1.0, 1.0]


def test_what_is_refused():
    weight = cresset.ones(3, requires_grad=True)
    words = "make_fx: gradients through torch.while_loop are not recorded. Trace under torch.no_grad"
    for function, argument in ((cresset.sin, weight), (lambda x: x * weight, X)):
        with pytest.raises(NotImplementedError, match=words):
            make_fx(lambda x: cresset.while_loop(lambda x: x.sum() < 9, function, (x,)))(argument)  # noqa: B023
    with cresset.no_grad():
        graph = make_fx(lambda x: cresset.cond(x.sum() > 0, lambda x: x * weight, cresset.cos, (x,)))(X)
    assert cresset.equal(graph(X), X)
    with pytest.raises(NotImplementedError, match="make_fx: torch.cond of tensors of vmap is not recorded"):
        make_fx(cresset.func.vmap(choose))(cresset.stack([X, X]))
    # Nothing of it stays behind.
    assert cresset.equal(cresset.cond(X.sum() > 0, cresset.sin, cresset.cos, (X,)), X.sin())
