"""Patterns with named nodes, and what programs ask of exported ones node by node."""

import cresset
import cresset.nn.functional as F
import pytest
from cresset import nn
from cresset._export.utils import get_buffer, get_lifted_tensor_constant, get_param, is_buffer, is_lifted_tensor_constant, is_param
from cresset.export import export
from cresset.fx.passes.utils.matcher_with_name_node_map_utils import SubgraphMatcherWithNameNodeMap


class Pattern(nn.Module):
    def forward(self, x, w):
        product = F.linear(x, w)
        kept = F.relu(product)
        return kept, {"product": product, "kept": kept}


class Target(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(cresset.ones(2, 3))
        self.register_buffer("b", cresset.zeros(2))
        self.register_buffer("hidden", cresset.ones(2), persistent=False)

    def forward(self, x):
        return F.relu(F.linear(x, self.w)) * 2 + self.b + self.hidden + cresset.tensor([1.0, 2.0])


def test_matches_name_nodes():
    matcher = SubgraphMatcherWithNameNodeMap(cresset.fx.symbolic_trace(Pattern()))
    target = cresset.fx.symbolic_trace(Target())
    (match,) = matcher.match(target.graph)
    assert {k: v.name for k, v in match.name_node_map.items()} == {"product": "linear", "kept": "relu"}
    with pytest.raises(AssertionError, match="the pattern must return its outputs and, at the end, a dict of named nodes"):
        SubgraphMatcherWithNameNodeMap(cresset.fx.symbolic_trace(lambda x: x + 1))


def test_inputs_of_programs():
    module = Target()
    program = export(module, (cresset.ones(1, 3),))
    nodes = {n.name: n for n in program.graph.nodes if n.op == "placeholder"}
    assert [n for n in nodes if is_param(program, nodes[n])] == ["p_w"] and get_param(program, nodes["p_w"]) is module.w
    assert [n for n in nodes if is_buffer(program, nodes[n])] == ["b_b", "b_hidden"]
    assert cresset.equal(get_buffer(program, nodes["b_b"]), module.b) and cresset.equal(get_buffer(program, nodes["b_hidden"]), module.hidden)
    constants = [n for n in nodes if is_lifted_tensor_constant(program, nodes[n])]
    assert [get_lifted_tensor_constant(program, nodes[n]).tolist() for n in constants] == [[1, 2]]
    x = nodes["x"]
    assert get_param(program, x) is None and get_buffer(program, x) is None and get_lifted_tensor_constant(program, x) is None


def test_classes_that_programs_match():
    from cresset._ops import OperatorBase
    from cresset.amp.autocast_mode import _enter_autocast, _exit_autocast
    from cresset.types import IntLikeType, PySymType, py_sym_types
    from cresset.utils._pytree import KeyEntry, MappingKey

    assert isinstance(cresset.ops.aten.add.Tensor, OperatorBase) and isinstance(cresset.ops.higher_order.cond, OperatorBase)
    assert not isinstance(cresset.ops.aten.add, OperatorBase)
    assert isinstance(MappingKey("a"), KeyEntry) and isinstance(3, IntLikeType) and not isinstance(3, PySymType) and len(py_sym_types) == 3
    mode = _enter_autocast("cpu", cresset.bfloat16)
    assert cresset.mm(cresset.ones(2, 2), cresset.ones(2, 2)).dtype is cresset.bfloat16
    _exit_autocast(mode)
    assert not cresset.is_autocast_enabled("cpu")
