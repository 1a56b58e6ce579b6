"""Helpers for nodes of graphs and the pass that makes views copies. Texts of graphs are PyTorch 2.13's."""

import pytest

import cresset as torch
from cresset._export import utils
from cresset._export.error import InternalError
from cresset._export.passes.replace_set_grad_with_hop_pass import _is_set_grad_enabled_node, _is_set_grad_enabled_sub_mod
from cresset._export.passes.replace_view_ops_with_view_copy_ops_pass import ReplaceViewOpsWithViewCopyOpsPass, get_view_copy_of_view_op, is_view_op


class _Two(torch.nn.Module):
    def forward(self, x1, x2):
        x1 = x1 + 1
        x2 = x2 + 1
        c1, c2 = x1.sin(), x2.cos()
        d1, d2 = c1 + 1, c2 + 1
        return d1, d2, d1 + 1, d2 + 1


def _cut(step):
    gm = torch.export.export(_Two(), (torch.ones(2), torch.ones(2))).module()
    calls = utils.nodes_filter(gm.graph.nodes, lambda n: n.op == "call_function" and str(n.target).startswith("aten.") and "_guard" not in n.name)
    for i, node in enumerate(calls[::step]):
        with gm.graph.inserting_before(node):
            gm.graph.call_function(torch._C._set_grad_enabled, (i % 2 == 0,), {})
    gm.recompile()
    return gm


def test_nodes_are_found_and_counted():
    gm = _cut(2)
    nodes = gm.graph.nodes
    assert utils.nodes_count(nodes, _is_set_grad_enabled_node) == 4 and utils.nodes_first(nodes).op == "placeholder"
    assert utils.nodes_first(nodes, _is_set_grad_enabled_node).args == (True,) and utils.nodes_first(nodes, lambda n: n.op == "call_method") is None
    seen = []
    assert utils.nodes_map(nodes, seen.append) is nodes and seen == list(nodes)


def test_graphs_are_cut_at_nodes_and_put_together_again():
    args = (torch.rand(2), torch.rand(2))
    for step in (1, 2, 3):
        gm = _cut(step)
        before, expected = gm.print_readable(print_output=False), _Two()(*args)
        parts = utils.sequential_split(gm, _is_set_grad_enabled_node)
        assert utils.nodes_count(parts.graph.nodes, _is_set_grad_enabled_sub_mod) == utils.nodes_count(gm.graph.nodes, _is_set_grad_enabled_node)
        assert all(torch.equal(a, b) for a, b in zip(parts(*args), expected))
        if step == 2:
            assert parts.submod_2.code.strip("\n") == (
                "def forward(self, add, add_1):\n"
                "    _set_grad_enabled_1 = torch._C._set_grad_enabled(False);  _set_grad_enabled_1 = None\n"
                "    sin = torch.ops.aten.sin.default(add);  add = None\n"
                "    cos = torch.ops.aten.cos.default(add_1);  add_1 = None\n"
                "    return (sin, cos)\n"
                "    "
            )
        utils.nodes_map(parts.graph.nodes, lambda n: utils.node_inline_(n) if n.op == "call_module" else n)
        parts.graph.lint()
        assert parts.print_readable(print_output=False) == before and not list(parts.children())
        assert all(torch.equal(a, b) for a, b in zip(parts(*args), expected))
    torch.set_grad_enabled(True)


def test_submodules_with_weights_are_put_in_place():
    class Outer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU()))
            self.inner.graph.owning_module.scale = torch.nn.Parameter(torch.full((3,), 2.0))

        def forward(self, x):
            return self.inner(x) + 1

    class Leaf(torch.fx.Tracer):
        def is_leaf_module(self, m, qualified_name):
            return qualified_name == "inner"

    outer = Outer()
    gm = torch.fx.GraphModule(outer, Leaf().trace(outer))
    x = torch.rand(4, 2)
    expected = outer(x)
    (node,) = utils.nodes_filter(gm.graph.nodes, lambda n: n.op == "call_module")
    assert utils.node_inline_(node) is gm
    assert [n.op for n in gm.graph.nodes] == ["placeholder", "call_module", "call_module", "call_function", "output"]
    assert torch.equal(gm(x), expected)
    with pytest.raises(ValueError, match="a call_module node was required; got placeholder"):
        utils.node_inline_(utils.nodes_first(gm.graph.nodes))


def test_a_name_that_is_taken_is_left_to_its_owner():
    inner = torch.nn.Module()
    inner.a = torch.nn.Module()
    inner.a.b = torch.full((2,), 3.0)
    body = torch.fx.Graph()
    body.output(body.call_function(torch.mul, (body.placeholder("x"), body.get_attr("a.b"))))
    root = torch.nn.Module()
    root.inner, root.a_b = torch.fx.GraphModule(inner, body), torch.full((2,), 5.0)
    outer = torch.fx.Graph()
    call = outer.call_module("inner", (outer.placeholder("x"),))
    outer.output(outer.call_function(torch.add, (call, outer.get_attr("a_b"))))
    gm = torch.fx.GraphModule(root, outer)
    utils.node_inline_(utils.nodes_first(gm.graph.nodes, lambda n: n.op == "call_module"))
    assert gm(torch.ones(2)).tolist() == [8, 8] and gm.a_b.tolist() == [5, 5]


def test_nodes_are_replaced():
    gm = torch.fx.symbolic_trace(lambda x: torch.relu(torch.sin(x)))
    sin = utils.nodes_first(gm.graph.nodes, lambda n: n.target is torch.sin)
    with gm.graph.inserting_before(sin):
        cos = gm.graph.call_function(torch.cos, sin.args)
    utils.node_replace_(sin, cos)
    gm.recompile()
    x = torch.rand(3)
    assert torch.equal(gm(x), torch.relu(torch.cos(x)))


def test_views_have_copying_forms():
    aten = torch.ops.aten
    for name in ("transpose.int", "detach.default", "slice.Tensor", "split.Tensor", "expand.default", "unbind.int", "t.default", "select.int", "as_strided.default"):
        base, overload = name.split(".")
        schema = getattr(getattr(aten, base), overload)._schema
        assert is_view_op(schema) and str(get_view_copy_of_view_op(schema)) == f"aten.{base}_copy.{overload}"
    for op in (aten.add.Tensor, aten.squeeze_.default, aten.cat.default, aten.detach_.default):
        assert not is_view_op(op._schema) and get_view_copy_of_view_op(op._schema) is None
    with pytest.raises(InternalError, match="aten::contiguous is missing a view_copy variant"):
        get_view_copy_of_view_op(aten.contiguous.default._schema)


def test_views_of_a_program_become_copies():
    class Module(torch.nn.Module):
        def forward(self, x):
            y = x + 4
            y.add_(4)
            return x.cos() + y.view(y.shape).transpose(0, 1).transpose(0, 1).cos()

    x = torch.rand(4, 2)
    program = torch.export.export(Module(), (x,))._transform_do_not_use(ReplaceViewOpsWithViewCopyOpsPass())
    targets = [str(n.target) for n in program.graph.nodes if n.op == "call_function"]
    assert "aten.view_copy.default" in targets and targets.count("aten.transpose_copy.int") == 2 and "aten.view.default" not in targets
    assert torch.equal(program.module()(x), Module()(x))
