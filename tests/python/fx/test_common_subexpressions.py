"""fx_graph_cse: what a graph computes twice. Numbers of nodes are PyTorch 2.13's, apart from writes, which it does not look at."""

import pytest

import cresset as torch
from cresset._functorch.compile_utils import fx_graph_cse
from cresset.fx.experimental.proxy_tensor import make_fx


def twice(x):
    a, b = x.cos().sin(), x.cos().sin()
    return a + a + (b + b)


def sums(x):
    return x.sum(dim=1) + x.sum(dim=1, keepdim=False) + x.sum(dim=[0, 1]) + x.sum(dim=[0, 1]) + torch.cat((x, x))[:2] + torch.cat((x, x))[:2]


def different(x):
    return torch.rand_like(x) + torch.rand_like(x), x * 1.0 + x * 1, x.sum(dim=1, keepdim=True) + x.sum(dim=1)


@pytest.mark.parametrize("program, fewer", [(twice, 3), (sums, 4), (different, 0)])
def test_numbers_of_nodes(program, fewer):
    graph = make_fx(program)(torch.arange(4.0).reshape(2, 2))
    found = fx_graph_cse(graph.graph)
    found.lint()
    assert len(graph.graph.nodes) - len(found.nodes) == fewer and len(fx_graph_cse(found).nodes) == len(found.nodes)
    if fewer:
        x = torch.randn(2, 2)
        assert torch.equal(torch.fx.GraphModule(graph, found)(x), program(x))


def test_writes_part():
    def f(x):
        y = x.clone()
        a = y.cos()
        y.add_(1)
        return a + y.cos(), x.cos() + x.cos()

    graph = make_fx(f)(torch.ones(2))
    found = fx_graph_cse(graph.graph)
    assert len(graph.graph.nodes) - len(found.nodes) == 1
    x = torch.randn(2)
    for a, b in zip(torch.fx.GraphModule(graph, found)(x), f(x)):
        assert torch.equal(a, b)
