"""torch._dynamo.export: a call as an fx.GraphModule, whose nodes know the layer or function that they come from."""

import pytest

import cresset as torch
from cresset.fx.passes.utils.source_matcher_utils import check_subgraphs_connected, get_source_partitions

F = torch.nn.functional


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.relu, self.held = torch.nn.Linear(3, 3), torch.nn.ReLU(), torch.ones(3)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x, *, scale=2):
        self.calls += 1
        x = self.linear(self.linear(x))
        return {"out": F.linear(self.relu(x) + self.held, x), "sizes": [x.size(0), scale]}


@pytest.mark.parametrize("aten", [False, True])
def test_modules(aten):
    module, x = Net(), torch.arange(6.0).reshape(2, 3)
    made, guards = torch._dynamo.export(module, aten_graph=aten)(x, scale=3)
    assert isinstance(made, torch.fx.GraphModule) and not guards and module.calls.item() == 0
    assert sorted(n for n, _ in made.named_parameters()) == ["linear.bias", "linear.weight"] and made.linear.weight is module.linear.weight
    for _ in range(2):
        got = made(x, scale=3)
        assert got["sizes"] == [2, 3] and torch.equal(got["out"], module(x, scale=3)["out"])
    assert made.calls is module.calls and module.calls.item() == 4
    parts = get_source_partitions(made.graph, [torch.nn.Linear, torch.nn.ReLU, F.linear])
    assert [len(parts[s]) for s in (torch.nn.Linear, torch.nn.ReLU, F.linear)] == [2, 1, 1]
    assert check_subgraphs_connected(parts[torch.nn.Linear][1], parts[torch.nn.ReLU][0])
    assert not check_subgraphs_connected(parts[torch.nn.Linear][0], parts[torch.nn.ReLU][0])


def test_functions():
    def f(x, y):
        return F.relu(torch.addmm(y, x, x)), y

    made = torch._dynamo.export(f)(torch.eye(2), torch.ones(2)).graph_module
    x, y = torch.randn(2, 2), torch.randn(2)
    assert torch.equal(made(x, y)[0], f(x, y)[0]) and len(get_source_partitions(made.graph, [F.relu])[F.relu]) == 1
    with pytest.raises(RuntimeError, match=r"Expected input at \*args\[0\].shape\[0\] to be equal to 2, but got 3"):
        made(torch.eye(3), y)
    assert torch._dynamo.utils.same(made(x, y), f(x, y)) and not torch._dynamo.utils.same(made(x, y), f(x, y + 1))
    older = torch._dynamo.export(f, torch.eye(2), torch.ones(2))
    assert older[0].code == made.code
    table = {torch.ops.aten.relu.default: lambda x: x.clamp(min=0)}
    other = torch._dynamo.export(f, aten_graph=True, decomposition_table=table)(x, y).graph_module
    assert "aten.relu" not in other.code and torch.equal(other(x, y)[0], f(x, y)[0])
    with pytest.raises(AssertionError, match="illegal without setting aten_graph=True"):
        torch._dynamo.export(f, decomposition_table=table)
    dynamic = torch._dynamo.export(f, dynamic_shapes={"x": {0: torch.export.Dim("n")}, "y": None})
    with pytest.raises(torch._dynamo.exc.UserError):
        dynamic(x, y)  # x is a square
    rows = torch._dynamo.export(lambda x: x.sum(0) * x.shape[0], dynamic_shapes={"x": {0: torch.export.Dim("n")}})(torch.ones(3, 2)).graph_module
    assert rows(torch.ones(5, 2)).tolist() == [25.0, 25.0]
