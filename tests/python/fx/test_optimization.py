"""fx.experimental.optimization: layers and norms become one, dropout goes."""

import cresset
import pytest
from cresset import fx, nn
from cresset.fx.experimental.optimization import extract_subgraph, fuse, matches_module_pattern, optimize_for_inference, remove_dropout


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.drop = nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2), nn.Dropout(0.3)
        self.shared, self.after = nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2)
        self.now = nn.Sequential(nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2, track_running_stats=False))
        self.flat, self.linear, self.last = nn.Flatten(), nn.Linear(8, 3), nn.BatchNorm1d(3)

    def forward(self, x):
        y = self.shared(self.drop(self.norm(self.conv(x))))
        return self.last(self.linear(self.flat(self.now(self.after(y) + y))))


@pytest.fixture
def model():
    cresset.manual_seed(0)
    m = Model()
    for _ in range(3):
        m(cresset.randn(4, 1, 2, 2))
    return m.eval()


def calls(module):
    return [n.target for n in module.graph.nodes if n.op == "call_module"]


def test_norms_are_computed_by_the_layers_before(model):
    fused, x = fuse(model), cresset.randn(2, 1, 2, 2)
    assert calls(fused) == ["conv", "drop", "shared", "after", "now.0", "now.1", "flat", "linear"]
    cresset.testing.assert_close(fused(x), model(x))
    assert isinstance(model.norm, nn.BatchNorm2d) and not cresset.equal(fused.conv.weight, model.conv.weight)
    again = fuse(fx.symbolic_trace(model), no_trace=True)
    cresset.testing.assert_close(again(x), model(x))
    with pytest.raises(AssertionError, match="Fusion only for eval!"):
        fuse(model.train())


def test_dropout_goes(model):
    without = remove_dropout(model)
    assert "drop" not in calls(without) and not hasattr(without, "drop")
    cresset.testing.assert_close(without.train()(cresset.ones(2, 1, 2, 2)).isfinite().all(), cresset.tensor(True))


def test_parts_of_graphs(model):
    traced = fx.symbolic_trace(model)
    nodes = {n.name: n for n in traced.graph.nodes}
    modules = dict(traced.named_modules())
    assert matches_module_pattern((nn.Conv2d, nn.BatchNorm2d), nodes["norm"], modules)
    assert not matches_module_pattern((nn.Conv2d, nn.BatchNorm2d), nodes["drop"], modules)
    part = extract_subgraph(traced, [nodes["norm"], nodes["drop"]], [nodes["conv"]], [nodes["drop"]])
    x = cresset.randn(1, 1, 2, 2)
    cresset.testing.assert_close(part(model.conv(x)), [model.norm(model.conv(x))])


def test_all_passes():
    model = nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3), nn.Dropout(), nn.ReLU()).eval()
    x = cresset.randn(2, 2, 4, 4)
    for config, left in ((None, ["0", "3"]), ({"remove_dropout": False}, ["0", "2", "3"]), ({"conv_bn_fuse": False}, ["0", "1", "3"])):
        optimized = optimize_for_inference(model, config)
        assert [n.target for n in optimized.graph.nodes if n.op == "call_module"] == left
        assert cresset.allclose(optimized(x), model(x), atol=1e-6)
    with pytest.raises(RuntimeError, match="no pass 'other'"):
        optimize_for_inference(model, {"other": True})
