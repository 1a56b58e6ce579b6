"""Equal tensor constants on two devices stay two, in graphs and in modules; `tin` is a device of its own process, `meta` has no contents."""

import os
import subprocess
import sys
import textwrap

import pytest

import cresset
from cresset import _C, lowering, nn


def graph_of(constants):
    """A graph that gives the negative of each constant."""
    graph = _C.parse_ir("graph():\n  return ()\n")
    for t in constants:
        node = graph.insertNode(graph.create("aten::neg", [graph.insertConstant(t)], 1))
        graph.registerOutput(node.output())
    return graph


def constants(graph):
    return [str(n.output().toIValue().device) for n in graph.nodes() if n.kind() == "prim::Constant" and isinstance(n.output().toIValue(), cresset.Tensor)]


@pytest.mark.parametrize("name", ["eliminate-common-subexpression", "constant-pooling"])
def test_constants_of_a_graph(name):
    ones = [cresset.ones(2), cresset.ones(2, device="meta"), cresset.ones(2), cresset.ones(2, device="meta")]
    others = [cresset.zeros(2), cresset.ones(3, device="meta"), cresset.ones(2, dtype=cresset.int64, device="meta")]
    graph = graph_of(ones + others)
    before = graph.copy()
    assert lowering.run_pass(name, graph).changed
    graph.lint()
    assert sorted(constants(graph)) == ["cpu", "cpu", "meta", "meta", "meta"]
    for found, wanted in zip(_C._jit_run_graph(graph, []), _C._jit_run_graph(before, []), strict=True):
        assert found.device == wanted.device and found.shape == wanted.shape and found.dtype == wanted.dtype
        assert found.is_meta or cresset.equal(found, wanted)


class OnTwoDevices(nn.Module):
    def __init__(self, device):
        super().__init__()
        self.register_buffer("here", cresset.full((2,), 3.0))
        self.register_buffer("there", cresset.full((2,), 3.0, device=device))
        self.register_buffer("again", cresset.full((2,), 3.0, device=device))

    def forward(self, x):
        return x * self.here, self.there * 2, self.again * 5


def test_buffers_of_a_module():
    lowered = lowering.lower(cresset.jit.script(OnTwoDevices("meta").eval()))
    assert sorted(constants(lowered.graph)) == ["cpu", "meta"]
    here, there, again = lowered(cresset.ones(2))
    assert here.tolist() == [3, 3] and there.is_meta and again.is_meta and again.shape == (2,)


def test_on_a_device_with_contents(tin):
    program = textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        import cresset
        cresset.ops.load_library({str(tin)!r})
        from cresset import _C, lowering
        from test_constants_on_devices import OnTwoDevices, constants, graph_of

        tensors = [cresset.ones(2), cresset.ones(2, device="tin"), cresset.ones(2, device="tin"), cresset.zeros(2, device="tin"), cresset.zeros(2)]
        for name in ("eliminate-common-subexpression", "constant-pooling"):
            graph = graph_of(tensors)
            assert lowering.run_pass(name, graph).changed
            assert sorted(constants(graph)) == ["cpu", "cpu", "tin:0", "tin:0"], graph
            for t, found in zip(tensors, _C._jit_run_graph(graph, []), strict=True):
                assert found.device == t.device and cresset.equal(found.cpu(), -t.cpu())

        lowered = lowering.lower(cresset.jit.script(OnTwoDevices("tin").eval()))
        assert sorted(constants(lowered.graph)) == ["cpu", "tin:0"], lowered.graph
        here, there, again = lowered(cresset.ones(2))
        assert [t.device.type for t in (here, there, again)] == ["cpu", "tin", "tin"]
        assert [t.cpu().tolist() for t in (here, there, again)] == [[3, 3], [6, 6], [15, 15]]
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
