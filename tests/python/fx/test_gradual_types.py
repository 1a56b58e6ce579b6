"""fx.experimental.graph_gradual_typechecker: types of nodes where sizes may be unknown. Types and words are PyTorch 2.13's; with ceil_mode and padding="same", which
its checker leaves out, those of the layers themselves."""

import pytest

import cresset
from cresset import nn
from cresset.fx import symbolic_trace
from cresset.fx.experimental.graph_gradual_typechecker import GraphTypeChecker, Refine, broadcast_types
from cresset.fx.experimental.refinement_types import Equality
from cresset.fx.experimental.unify_refinements import infer_symbolic_types
from cresset.fx.tensor_type import Dyn, TensorType

T = TensorType


def _traced(function, types, own=None):
    class Program(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = function if isinstance(function, nn.Module) else None

    if isinstance(function, nn.Module):
        Program.forward = lambda self, x: self.part(x)
    elif len(types) == 1:
        Program.forward = lambda self, x: function(x)
    else:
        Program.forward = lambda self, x, y: function(x, y)
    traced, given = symbolic_trace(Program()), iter(types)
    for node in traced.graph.nodes:
        if node.op == "placeholder":
            node.type = next(given)
        elif node.op != "output":
            node.type = own
    return traced


def _checked(function, *types, own=None):
    traced = _traced(function, types, own)
    assert GraphTypeChecker({}, traced).type_check()
    return traced


def _last(traced):
    return list(traced.graph.nodes)[-1].type


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (T((1, 2, 3, 4)), T((1, 2, 1, 4)), (T((1, 2, 3, 4)), T((1, 2, 3, 4)))),
        (T(()), T((4, 1)), (T((4, 1)), T((4, 1)))),
        (T((1, 2, 3, Dyn)), T((2, 3, 4)), (T((1, 2, 3, Dyn)), T((1, 2, 3, 4)))),
        (Dyn, T((1, 2)), (Dyn, T((1, 2)))),
        (T((Dyn, 1)), T((1, Dyn)), (T((Dyn, Dyn)), T((Dyn, Dyn)))),
    ],
)
def test_broadcast_types(a, b, expected):
    assert broadcast_types(a, b) == expected


@pytest.mark.parametrize(
    ("function", "types", "own", "expected"),
    [
        (cresset.add, (T((1, 2, 3, Dyn)), T((2, 3, 4))), None, T((1, 2, 3, Dyn))),
        (cresset.add, (T((3, 1)), T((1, 4))), None, T((3, 4))),
        (cresset.add, (T((1, 2)), Dyn), None, Dyn),
        (cresset.add, (int, T((2, 3))), None, T((2, 3))),
        (lambda x: cresset.reshape(x, [1, 5, -1]), (T((1, 15)),), None, T((1, 5, Dyn))),
        (lambda x: cresset.transpose(x, 0, 1), (T((1, 2, 3, 5)),), None, T((2, 1, 3, 5))),
        (lambda x: cresset.flatten(x, 1, 2), (T((1, Dyn, 3, 5, Dyn)),), None, T((1, Dyn, 5, Dyn))),
        (lambda x: cresset.flatten(x, start_dim=1, end_dim=3), (T((2, 3, 4, 5)),), None, T((2, 60))),
        (nn.BatchNorm2d(2), (Dyn,), T((2, 2, Dyn, 4)), T((2, 2, Dyn, 4))),
        (nn.Conv2d(2, 3, 3, stride=2, padding=1), (T((Dyn, Dyn, Dyn, 5)),), None, T((Dyn, 3, Dyn, 3))),
        (nn.Conv2d(2, 3, 3, padding="same"), (T((4, 2, 8, 5)),), None, T((4, 3, 8, 5))),
        (nn.MaxPool2d(5, 8), (T((64, 8, 8)),), None, T((64, 1, 1))),
        (nn.MaxPool2d(2, ceil_mode=True), (T((4, 2, 8, 5)),), None, T((4, 2, 4, 3))),
        (nn.AdaptiveAvgPool2d((6, 7)), (T((4, 2, 8, 5)),), None, T((4, 2, 6, 7))),
        (nn.Linear(5, 7), (T((Dyn, 2, 5)),), None, T((Dyn, 2, 7))),
        (nn.ReLU(), (T((1, Dyn)),), T((1, 2)), T((1, 2))),
    ],
)
def test_types(function, types, own, expected):
    assert _last(_checked(function, *types, own=own)) == expected


@pytest.mark.parametrize(
    ("function", "types", "own", "words"),
    [
        (cresset.add, (T((1, 2, 3, Dyn)), T((1, 2, 3))), None, r"Cannot add arguments x \(.*\) and y \(.*\) in node add. Types should match"),
        (cresset.add, (float, T((2,))), None, "Cannot broadcast types <class 'float'> and"),
        (lambda x: cresset.reshape(x, [1, 2, -1]), (T((Dyn, 5)),), None, "Cannot reshape in node reshape"),
        (lambda x: cresset.transpose(x, 0, 10), (T((1, 2, 3, 5)),), None, "Cannot transpose 0 and 10 in type"),
        (lambda x: cresset.flatten(x, 5, 6), (T((2, 3)),), None, "Incompatible dimensions 5, 6 in type"),
        (nn.BatchNorm2d(2), (T((2, 8, 5)),), None, "has rank 3. It should have rank 4"),
        (nn.BatchNorm2d(1), (Dyn,), T((2, 2, Dyn, 4)), "Cannot apply BatchNorm2d"),
        (nn.Conv2d(2, 3, 3), (T((4, 3, 8, 6)),), None, "Cannot apply Conv2d"),
        (nn.Conv2d(2, 2, 3), (T((2, 2, 5, 5)),), T((1, Dyn, Dyn, 7)), "Inconsistent types"),
        (nn.MaxPool2d(2), (T((2,)),), None, "Wrong size .* for MaxPool2d"),
        (nn.AdaptiveAvgPool2d(2), (T((2,)),), None, "Tensor ranks must be 3 or 4"),
        (nn.Linear(5, 7), (T((4, 6)),), None, "Inconsistent 5 and 6 in Linear"),
    ],
)
def test_types_that_do_not_fit(function, types, own, words):
    with pytest.raises(TypeError, match=words):
        _checked(function, *types, own=own)


def test_without_rule():
    with pytest.raises(RuntimeError, match="No inference rule registered for target"):
        _checked(lambda x: cresset.sin(x), T((2,)))
    with pytest.raises(NotImplementedError, match="Method call_method not yet implemented"):
        _checked(lambda x: x.relu(), T((2,)))


@pytest.mark.parametrize(
    ("function", "types", "expected"),
    [
        (cresset.add, (T((1, 2, 3, Dyn)), T((2, 3, 4))), [Equality(1, 1), Equality(2, 2), Equality(3, 3)]),
        (lambda x: cresset.flatten(x, 1, 3), (T((2, 3, 4, 5)),), [Equality(2, 2)]),
        (nn.Conv2d(2, 3, 3), (T((4, 2, 8, 5)),), [Equality(4, 4)]),
        (nn.MaxPool2d(2), (T((4, 2, 8, 5)),), [Equality(4, 4), Equality(2, 2)]),
    ],
)
def test_refinement(function, types, expected):
    refined = Refine(_checked(function, *types))
    assert refined.refine() and refined.constraints == expected
    names = Refine(_checked(nn.ReLU(), T((Dyn, 5))))
    names.refine()
    assert repr(names.constraints) == "[~0 = ~1, 5 = 5]" and repr(_last(names.traced)) == "TensorType[(~1, 5)]"


def _inferred(function, *types, own=None):
    traced = _checked(function, *types, own=own)
    infer_symbolic_types(traced)
    return [repr(n.type) for n in traced.graph.nodes]


def test_names_of_sizes():
    """Of two names that stand for the same size the later one is kept."""
    assert _inferred(cresset.add, T((1, 2)), T((Dyn, 2))) == ["TensorType[(1, 2)]"] + ["TensorType[(~1, 2)]"] * 3
    assert _inferred(cresset.add, T((1, 2, 3, Dyn)), T((2, 3, 4))) == [
        "TensorType[(1, 2, 3, ~0)]", "TensorType[(2, 3, 4)]", "TensorType[(1, 2, 3, ~1)]", "TensorType[(1, 2, 3, ~1)]",
    ]  # fmt: skip
    assert _inferred(lambda x: x + x, T((Dyn, 4))) == ["TensorType[(~1, 4)]"] * 3
    assert _inferred(nn.BatchNorm2d(2), Dyn, own=T((2, 2, Dyn, 4))) == ["TensorType[(2, 2, ~4, 4)]"] * 3
    traced = _checked(nn.ReLU(), T((Dyn, 5)))
    for _ in range(2):  # once more changes nothing
        infer_symbolic_types(traced)
        assert repr(_last(traced)) == "TensorType[(~1, 5)]"


def test_sizes_of_convolutions():
    sympy = pytest.importorskip("sympy")
    traced = _checked(nn.Conv2d(3, 6, 5), T((4, 3, Dyn, 9)))
    infer_symbolic_types(traced)
    assert _last(traced) == T((4, 6, sympy.floor(sympy.Symbol("~0") - 4), 5))
