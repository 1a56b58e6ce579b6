"""fx.experimental.normalize: what PyTorch 2.13 makes of the same graph."""

import operator

import cresset
import cresset.nn.functional as F
from cresset.fx import symbolic_trace
from cresset.fx.experimental.normalize import NormalizeArgs, NormalizeOperators


class Net(cresset.nn.Module):
    def __init__(self):
        super().__init__()
        self.l = cresset.nn.Linear(3, 3)

    def forward(self, x, y):
        a = F.relu(self.l(x) + y, True)
        b = F.dropout(x * 2 - 1, 0.5, training=False)
        g = cresset.add(x, y)
        return cresset.cat([cresset.flatten(a, 1), b], 1) / 3, g.sum(1), cresset.sum(g, 1), cresset.lt(x, y)


def calls(module):
    return {node.name: (node.target, tuple(map(str, node.args)), {k: str(v) for k, v in node.kwargs.items()}) for node in module.graph.nodes}


def same_results(a, b):
    x, y = cresset.randn(2, 3), cresset.randn(2, 3)
    return all(cresset.equal(m, n) for m, n in zip(a(x, y), b(x, y)))


def test_arguments_have_names():
    traced = symbolic_trace(Net())
    named = NormalizeArgs(traced).transform()
    found = calls(named)
    assert found["l"] == ("l", (), {"input": "x"})
    assert found["relu"] == (F.relu, (), {"input": "add", "inplace": "True"})
    assert found["flatten"][1:] == ((), {"input": "relu", "start_dim": "1", "end_dim": "-1"})
    assert found["dropout"][1:] == ((), {"input": "sub", "p": "0.5", "training": "False", "inplace": "False"})
    assert found["cat"][1:] == ((), {"tensors": "[flatten, dropout]", "dim": "1"})
    assert found["sum_2"][1:] == ((), {"input": "add_1", "dim": "1", "keepdim": "False", "dtype": "None"})
    assert found["add_1"][1:] == (("x", "y"), {}) and found["mul"] == (operator.mul, ("x", "2"), {})
    assert same_results(traced, named)


def test_arguments_by_position_stay_there():
    traced = symbolic_trace(Net())
    found = calls(NormalizeArgs(traced, normalize_to_only_use_kwargs=False).transform())
    assert found["flatten"][1:] == (("relu", "1"), {"end_dim": "-1"}) and found["l"][1:] == (("x",), {})


def test_functions_become_operators():
    traced = symbolic_trace(Net())
    changed = NormalizeOperators(traced).transform()
    found = calls(changed)
    assert found["add_1"][0] is operator.add and found["lt"][0] is operator.lt and found["flatten"][0] is cresset.flatten
    assert same_results(traced, changed)
