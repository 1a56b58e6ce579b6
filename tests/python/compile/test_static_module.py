"""Static modules of graphs and modules answer as those do, now, later and by a future."""

import cresset as torch
import pytest
from cresset import nn


@torch.jit.script
def scaled(x, factor: int = 2):
    return x * factor


def test_graphs():
    static = torch._C._jit_to_static_module(scaled.graph)
    x = torch.arange(3.0)
    assert static(x, 3).tolist() == [0, 3, 6] and static(x, factor=4).tolist() == [0, 4, 8]
    future = static.runAsync((x, 5), {})
    assert future.wait().tolist() == future.value().tolist() == [0, 5, 10]
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        torch._C._jit_to_static_module(torch.jit.script(nn.Linear(3, 2)).eval()._c)(torch.ones(3, 2))


def test_modules_are_frozen(capsys):
    module = torch.jit.script(nn.Sequential(nn.Linear(3, 2), nn.ReLU())).eval()
    static = torch._C._jit_to_static_module(module._c)
    x = torch.ones(4, 3)
    expected = module(x)
    setattr(module, "0", torch.jit.script(nn.Linear(3, 2)))
    assert torch.allclose(static(x), expected)
    static.benchmark([x], {}, 1, 2)
    assert "ms per iter" in capsys.readouterr().out
    metrics = static.benchmark_individual_ops([x], {}, 1, 2)
    assert metrics.total_time > 0 and metrics.total_nodes_count >= 2 and abs(sum(metrics.percent_per_node_type.values()) - 100) < 1e-6
