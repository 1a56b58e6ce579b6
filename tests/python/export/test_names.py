"""Names of a program's inputs, of the functions that its operators come from, and programs of modules that are fakes already."""

import dataclasses

import pytest

import cresset as torch
from cresset._export.utils import register_dataclass_as_pytree_node
from cresset._library.utils import hop_schema_from_fx_node
from cresset._subclasses import FakeTensorMode
from cresset.export import export
from cresset.utils import _pytree as pytree


class Sum(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.param = torch.nn.Parameter(torch.ones(4))
        self.alpha = torch.nn.Buffer(torch.ones(4))
        self.gamma = torch.ones(4)

    def forward(self, p, b_alpha, c_gamma):
        return p["param"] + self.param + self.alpha + b_alpha + self.gamma + c_gamma


def test_equal_names_are_numbered():
    # As PyTorch names them: the inputs' names come first, further ones have _1, _2.
    class Nested(torch.nn.Module):
        def forward(self, x, x_foo, x_foo_0):
            return x["foo"][0] + x_foo[0] + x_foo_0

    one = torch.ones(4)
    names = [s.arg.name for s in export(Nested(), ({"foo": [one]}, (one,), one)).graph_signature.input_specs]
    assert names == ["x_foo_0", "x_foo_0_1", "x_foo_0_2"]
    program = export(Sum(), ({"param": one}, one, one))
    names = [s.arg.name for s in program.graph_signature.input_specs]
    assert names == ["p_param_1", "b_alpha_1", "c_gamma_1", "p_param", "b_alpha", "c_gamma"]
    assert program.module()({"param": one}, one, one).tolist() == [6.0] * 4


def test_modules_and_inputs_that_are_fakes():
    mode = FakeTensorMode()
    with mode:
        model, x = torch.nn.Linear(4, 2), torch.randn(3, 4)
    for module, given in ((model, torch.randn(3, 4)), (torch.nn.Linear(4, 2), x), (model, x)):
        program = export(module, (given,))
        assert [str(n.target) for n in program.graph.nodes if n.op == "call_function"] == ["aten.linear.default"]
        assert next(n for n in program.graph.nodes if n.op == "call_function").meta["val"].shape == (3, 2)


def test_kinds_of_functions():
    class Model(torch.nn.Module):
        def forward(self, x, w):
            return torch.add(torch.nn.functional.relu(torch.nn.functional.linear(x, w)), 1) + x

    program = export(Model(), (torch.ones(3, 3), torch.ones(3, 3)))
    assert [n.meta["torch_fn"] for n in program.graph.nodes if n.op == "call_function"] == [
        ("linear_1", "builtin_function_or_method.linear"), ("relu_1", "function.relu"), ("add_1", "builtin_function_or_method.add"), ("add_2", "method_descriptor.add"),
    ]  # fmt: skip


def test_fresh_copies_are_clones():
    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.ops.aten.lift_fresh_copy(x)

    program = export(Model(), (torch.ones(2),)).run_decompositions({})
    assert [str(n.target) for n in program.graph.nodes if n.op == "call_function"] == ["aten.clone.default"]


def test_sizes_that_vary_are_shown():
    import copy

    class Model(torch.nn.Module):
        def forward(self, x):
            return x.reshape(-1), x.split(1, 1), x.shape[0] * 2

    program = export(Model(), (torch.ones(5, 2),), dynamic_shapes={"x": {0: torch.export.Dim("n")}})
    for each in (program, program.run_decompositions(), copy.deepcopy(program)):
        shown = {n.name: n.meta["val"] for n in each.graph.nodes if "val" in n.meta}
        assert str(tuple(shown["x"].shape)) == "(s0, 2)" and str(shown["x"].size(0)) == f"{shown['x'].shape[0]}" == "s0"
        assert isinstance(shown["x"].shape[0], torch.SymInt) and not isinstance(shown["x"].shape[1], torch.SymInt)
        assert [n for n in shown if str(tuple(getattr(shown[n], "shape", ()))) == "(2*s0,)"]  # of reshape, or view
        assert str(shown["mul"]) in ("2*s0",) and repr(shown["x"]) == "FakeTensor(..., size=(s0, 2))"
        assert shown["x"].shape == (5, 2) and shown["x"].shape.numel() == 10  # what the example had
        x = torch.arange(6.0).reshape(3, 2)
        assert each.module()(x)[2] == 6 and torch.equal(each.module()(x)[0], x.reshape(-1))


def test_schemas_of_higher_order_operators():
    class Branch(torch.nn.Module):
        def forward(self, x, y):
            return torch.cond(x.sum() > 4, lambda x, y: (x.cos() + y, x), lambda x, y: (x - y, y.clone()), (x, y))

    program = export(Branch(), (torch.ones(2), torch.ones(2)))
    node = next(n for n in program.graph.nodes if n.name == "cond")
    assert hop_schema_from_fx_node(node) == "cond(Tensor pred, GraphModule true_fn, GraphModule false_fn, Tensor[2] operands) -> Tensor[2]"


def test_dataclasses_as_nodes_of_trees():
    @dataclasses.dataclass
    class Parts:
        x: int
        y: int
        z: int | None = None

    @dataclasses.dataclass
    class All(Parts):
        pass

    register_dataclass_as_pytree_node(Parts, serialized_type_name="test_names.Parts")
    register_dataclass_as_pytree_node(All, return_none_fields=True, serialized_type_name="test_names.All")
    for value, leaves, context in [(Parts(3, 4), [3, 4], [["x", "y"], ["z"]]), (All(3, 4), [3, 4, None], [["x", "y", "z"], []])]:
        flat, spec = pytree.tree_flatten(value)
        assert (flat, spec.context) == (leaves, context) and pytree.tree_unflatten(flat, spec) == value
        assert pytree.treespec_loads(pytree.treespec_dumps(spec)) == spec
    with pytest.raises(AssertionError, match="Only dataclasses"):
        register_dataclass_as_pytree_node(int)
