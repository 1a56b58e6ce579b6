"""Smaller graphs that fail: the sizes that PyTorch's test_minifier.py expects."""

import cresset
import pytest
from cresset import fx
from cresset.functorch.compile import make_fx, minifier


def sizes(result):
    module, inputs = result
    return len(module.graph.nodes), len(inputs)


def test_operators_around_the_one_that_fails_become_inputs():
    def f(x, y):
        y = y / 3
        x = x + 3
        x = x * y
        return x + y

    inputs = [cresset.randn(3), cresset.randn(3)]
    found = minifier(make_fx(f)(*inputs), inputs, lambda module, _: cresset.ops.aten.mul.Tensor in [n.target for n in module.graph.nodes])
    assert sizes(found) == (4, 2)
    # The values are those that the operators gave: the product is f's.
    assert cresset.allclose(found[0](*found[1])[0], (inputs[0] + 3) * (inputs[1] / 3))


class MakesNan(cresset.nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = cresset.nn.ReLU()

    def forward(self, x):
        y = self.relu(x)
        zero = y - y
        return zero / zero + 3


@pytest.mark.parametrize("trace", [fx.symbolic_trace, lambda m: make_fx(m)(cresset.randn(3))], ids=["modules", "operators"])
def test_the_operator_that_makes_nan_is_left(trace):
    def fails(module, inputs):
        return not any(cresset.isnan(i).any() for i in inputs) and bool(cresset.isnan(cresset.as_tensor(module(*inputs)[0])).any())

    seen = []
    found = minifier(trace(MakesNan()), [cresset.randn(3)], fails, lambda module, inputs: seen.append(module))
    assert sizes(found) == (3, 1) and seen == [found[0]] and "div" in found[0].code or "truediv" in found[0].code


def test_outputs_and_inputs_go():
    inputs = [cresset.randn(3) for _ in range(3)]
    graph = make_fx(lambda a, b, c: (a.sin(), b, c.cos(), a.sin() * c.cos()))(*inputs)

    def returns_an_input(module, _):
        return any(getattr(o, "op", None) == "placeholder" for o in module.graph.output_node().args[0])

    assert sizes(minifier(graph, inputs, returns_an_input)) == (2, 1)
    with pytest.raises(RuntimeError, match="Input graph did not fail the tester"):
        minifier(graph, inputs, lambda module, _: False)
