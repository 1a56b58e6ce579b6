"""run_decompositions of programs with branches and loops. Graphs are PyTorch 2.13's, apart from names in the inner ones and the order of operands."""

import pytest

import cresset as torch


class Branch(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l = torch.nn.Linear(2, 2)
        self.register_buffer("b", torch.ones(2))

    def forward(self, x):
        self.b.add_(1)
        y = torch.cond(x.sum() > 0, lambda x: torch.nn.functional.linear(x, self.l.weight).relu(), lambda x: self.l(x).mul_(2) + self.b, (x,))
        return y + 1


def operators(graph):
    return [str(n.target) for n in graph.nodes if n.op == "call_function" and hasattr(n.target, "_schema")]


@pytest.mark.parametrize("sizes", [None, {"x": {0: torch.export.Dim("n", min=2, max=9)}}])
def test_branches(sizes):
    module = Branch()
    program = torch.export.export(module, (torch.ones(3, 2),), dynamic_shapes=sizes)
    core = program.run_decompositions()
    assert operators(core.graph) == ["aten.add.Tensor", "aten.sum.dim_IntList", "aten.gt.Scalar", "aten.add.Tensor"]
    inner = core.graph_module.true_graph_0.graph, core.graph_module.false_graph_0.graph
    assert operators(inner[0]) == ["aten.permute.default", "aten.mm.default", "aten.relu.default"]
    assert operators(inner[1]) == ["aten.permute.default", "aten.addmm.default", "aten.mul.Tensor", "aten.add.Tensor"]
    assert [s.kind.name for s in core.graph_signature.output_specs] == ["BUFFER_MUTATION", "USER_OUTPUT"]
    flat = core.module()
    for x in (torch.ones(3, 2), -torch.ones(3, 2), *([-torch.ones(5, 2)] if sizes else [])):
        plain = Branch()
        plain.load_state_dict(module.state_dict())
        assert torch.allclose(flat(x), plain(x)) and torch.equal(flat.b, plain.b)
        module.load_state_dict(plain.state_dict())
    again = core.run_decompositions()
    assert operators(again.graph) == operators(core.graph)


class Loop(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.eye(2) * 2)

    def forward(self, n, x):
        def body(n, x):
            y = torch.cond(n > 1, lambda x: x.clone().add_(1), lambda x: torch.nn.functional.linear(x, self.w), (x,))
            return n + 1, y

        return torch.while_loop(lambda n, x: n < 4, body, (n, x))


def test_loops_with_branches():
    module, x = Loop(), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    core = torch.export.export(module, (torch.tensor(0), x)).run_decompositions()
    body = core.graph_module.while_loop_body_graph_0
    assert operators(core.graph_module.while_loop_cond_graph_0.graph) == ["aten.lt.Scalar"]
    assert operators(body.false_graph_0.graph) == ["aten.permute.default", "aten.mm.default"] and operators(body.true_graph_0.graph) == ["aten.clone.default", "aten.add.Tensor"]
    for start in (0, 3, 5):
        got, expected = core.module()(torch.tensor(start), x), module(torch.tensor(start), x)
        assert got[0].item() == expected[0].item() and torch.equal(got[1], expected[1])


def test_operators_without_graphs_stay():
    class Wide(torch.nn.Module):
        def forward(self, x):
            return torch._higher_order_ops.out_dtype.out_dtype(torch.ops.aten.mm.default, torch.int32, x, x)

    x = torch.full((2, 2), 100, dtype=torch.int8)
    core = torch.export.export(Wide(), (x,)).run_decompositions()
    assert "out_dtype" in {str(n.target) for n in core.graph.nodes} and core.module()(x).tolist() == [[20000, 20000]] * 2
