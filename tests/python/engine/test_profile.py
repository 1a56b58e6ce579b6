"""Profiles by layer: what ran, in which engine, and the trace that Perfetto reads."""

import json

import cresset
import cresset.engine
import pytest
from cresset import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 8, 3), nn.Linear(8, 4)

    def forward(self, x):
        y = self.conv(x).relu().mean([2, 3])
        return self.head(y.sort(1)[0]).softmax(-1)


def compiled(**options):
    with cresset.no_grad():
        return cresset.engine.compile(Net().eval(), inputs=[cresset.lowering.Input((-1, 3, 8, 8))], min_block_size=1, **options)


def test_layers_and_their_times(tmp_path):
    x = cresset.randn(2, 3, 64, 64)
    x8 = cresset.randn(2, 3, 8, 8)
    engine = compiled(torch_executed_ops=["aten::sort"])
    seen = cresset.engine.profile(engine, x8, runs=3)
    operators = [(layer.engine, layer.operator) for layer in seen.layers]
    assert ("engine_0", "cresset::convolution_packed") in operators and ("engine_1", "cresset::linear_packed") in operators
    assert all(len(layer.us) == 3 and layer.mean > 0 for layer in seen.layers)
    assert sum(layer.mean for layer in seen.layers) < seen.total
    times = lambda table: [line for line in table.splitlines() if "of memory for" not in line]  # noqa: E731
    assert len(times(seen.table())) == len(seen.layers) + 2 and "outside of engines" in times(seen.table())[-1] and len(times(seen.table(1))) == 3
    seen.export_chrome_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert [e["name"] for e in events] == [o for _, o in operators] and {e["tid"] for e in events} == {0, 1}
    assert all(e["ph"] == "X" and e["dur"] > 0 for e in events) and "[2, 3, 8, 8]" in events[0]["args"]["shapes"]
    big = cresset.engine.profile(engine, x, runs=2)
    arena, blocks = big.memory["engine_0"]
    assert 2 * 8 * 62 * 62 * 4 < arena <= blocks and "of memory for" in str(big).splitlines()[-1]
    quickest = lambda profile: next(min(layer.us) for layer in profile.layers if layer.operator == "cresset::convolution_packed")  # noqa: E731
    assert quickest(big) > quickest(seen)


class Steps(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps, self.head = nn.LSTM(6, 8, batch_first=True), nn.Linear(8, 4)

    def forward(self, x):
        return self.head(self.steps(x)[0][:, -1])


def test_layers_of_several_results():
    """Results whose types have strides, and operators without an event of their own, hide no layer behind them."""
    engine = cresset.engine.compile(Steps().eval(), inputs=[cresset.lowering.Input((1, 5, 6))])
    seen = cresset.engine.profile(engine, cresset.randn(1, 5, 6), runs=2)
    operators = [layer.operator for layer in seen.layers]
    assert {"cresset::recurrent_packed", "cresset::linear_packed"} < set(operators)
    assert operators.index("cresset::recurrent_packed") < operators.index("cresset::linear_packed") and str(seen) == seen.table()


def test_what_is_refused():
    with pytest.raises(ValueError, match="a module with engines, as compile\\(\\) gives them, was required"):
        cresset.engine.profile(Net(), cresset.ones(1, 3, 8, 8))
    with pytest.raises(ValueError, match="at least one run was required; got 0"):
        cresset.engine.profile(compiled(), cresset.ones(1, 3, 8, 8), runs=0)
