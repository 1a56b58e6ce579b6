"""Engines of the simulated device, beside those of the processor in one graph."""

import os
from pathlib import Path

import cresset
import pytest
from cresset import nn

FOLDERS = [Path(__file__).resolve().parents[1] / "cresset_simulated", *map(Path, os.environ.get("CRESSET_BACKEND_PATH", "").split(":"))]
LIBRARY = next((f / "engine/libcresset_simulated_engine.so" for f in FOLDERS if (f / "engine/libcresset_simulated_engine.so").exists()), None)
pytestmark = pytest.mark.skipif(LIBRARY is None, reason="the library of engines is not built")


@pytest.fixture(scope="module", autouse=True)
def _loaded():
    cresset.engine.backends()  # graphs are there
    cresset.ops.load_library(str(LIBRARY))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 3)

    def forward(self, x):
        y = self.first(x).relu() * 2
        return self.second(y.exp()).softmax(-1), y.size(0)


def test_one_graph_on_two_devices(tmp_path):
    net = Net().eval()
    compiled = cresset.engine.compile(net, inputs=[cresset.lowering.Input((-1, 4))], backend="simulated,cpu", min_block_size=1)
    backends = {getattr(compiled, name).backend() for name in dir(compiled) if name.startswith("engine_")}
    assert backends == {"simulated", "cpu"}
    compiled.save(str(tmp_path / "out.cre"))
    for made in (compiled, cresset.jit.load(str(tmp_path / "out.cre"))):
        for n in (1, 5):
            x = cresset.randn(n, 4)
            got, want = made(x), net(x)
            assert cresset.allclose(got[0], want[0], atol=1e-6) and got[1] == want[1] and got[0].device.type == "cpu"


def test_converters_of_the_device():
    class Converted(nn.Module):
        def forward(self, x):
            return nn.functional.leaky_relu(x.square() - 1, 0.25)

    x = cresset.randn(3, 4)
    compiled = cresset.engine.compile(Converted().eval(), inputs=[x], backend="simulated", require_full_compilation=True)
    cresset.testing.assert_close(compiled(x), Converted()(x))
    assert cresset.engine.check_method_operator_support(Converted().eval(), backend="simulated") == []


def test_what_engines_take():
    class Whole(nn.Module):
        def forward(self, x):
            return (x + x).relu()

    with pytest.raises(ValueError, match="engines of 'simulated' take float32, int32, bool; %x.* is int64. truncate_long_and_double casts it to int32"):
        cresset.engine.compile(Whole().eval(), inputs=["(3)@i64"], backend="simulated")
    with pytest.warns(UserWarning, match="is cast from int64 to int32"):
        compiled = cresset.engine.compile(Whole().eval(), inputs=["(3)@i64"], backend="simulated", truncate_long_and_double=True)
    x = cresset.tensor([1, -2, 3])
    assert compiled(x).tolist() == [2, 0, 6] and compiled(x).dtype == cresset.int64
    data = cresset.engine.convert_method_to_engine(Whole().eval(), inputs=["(3)"], backend="simulated")
    assert b"simulated-1" in data and cresset.engine.embed_engine_in_new_module(data)(cresset.ones(3)).tolist() == [2, 2, 2]
