"""export: programs beside what PyTorch 2.13 printed for the same modules (graphs, signatures), and what they compute."""

import re

import cresset
import pytest
from cresset import nn
from cresset.export import ExportedProgram, InputKind, OutputKind, export
from cresset.export.graph_signature import ConstantArgument, TensorArgument
from cresset.testing import assert_close


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("buf", cresset.ones(4))
        self.register_buffer("np", cresset.ones(4), persistent=False)
        self.c = cresset.ones(4) * 3

    def forward(self, x, *, scale=None):
        self.buf.add_(1)
        y = self.linear(x) + self.buf + self.np + self.c + cresset.ones(4)
        return {"a": cresset.relu(y).sum(-1, keepdim=True), "b": [x.view(-1), 3, None]}


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Inner()
        self.bn = nn.BatchNorm1d(4)

    def forward(self, x, d):
        return self.sub(self.bn(x)), d["k"] * 2


# What PyTorch 2.13 prints for them (print(torch.export.export(...).graph)).
GRAPH = """\
graph():
    %p_sub_linear_weight : [num_users=1] = placeholder[target=p_sub_linear_weight]
    %p_sub_linear_bias : [num_users=1] = placeholder[target=p_sub_linear_bias]
    %p_bn_weight : [num_users=1] = placeholder[target=p_bn_weight]
    %p_bn_bias : [num_users=1] = placeholder[target=p_bn_bias]
    %b_sub_buf : [num_users=1] = placeholder[target=b_sub_buf]
    %b_sub_np : [num_users=1] = placeholder[target=b_sub_np]
    %b_bn_running_mean : [num_users=1] = placeholder[target=b_bn_running_mean]
    %b_bn_running_var : [num_users=1] = placeholder[target=b_bn_running_var]
    %b_bn_num_batches_tracked : [num_users=1] = placeholder[target=b_bn_num_batches_tracked]
    %c_sub_c : [num_users=1] = placeholder[target=c_sub_c]
    %x : [num_users=1] = placeholder[target=x]
    %d_k : [num_users=1] = placeholder[target=d_k]
    %d_j : [num_users=0] = placeholder[target=d_j]
    %add_ : [num_users=0] = call_function[target=torch.ops.aten.add_.Tensor](args = (%b_bn_num_batches_tracked, 1), kwargs = {})
    %batch_norm : [num_users=2] = call_function[target=torch.ops.aten.batch_norm.default](args = (%x, %p_bn_weight, %p_bn_bias, \
%b_bn_running_mean, %b_bn_running_var, True, 0.1, 1e-05, False), kwargs = {})
    %add__1 : [num_users=1] = call_function[target=torch.ops.aten.add_.Tensor](args = (%b_sub_buf, 1), kwargs = {})
    %linear : [num_users=1] = call_function[target=torch.ops.aten.linear.default](args = (%batch_norm, %p_sub_linear_weight, %p_sub_linear_bias), kwargs = {})
    %add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%linear, %add__1), kwargs = {})
    %add_1 : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%add, %b_sub_np), kwargs = {})
    %add_2 : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%add_1, %c_sub_c), kwargs = {})
    %ones : [num_users=1] = call_function[target=torch.ops.aten.ones.default](args = ([4],), kwargs = {device: cpu, pin_memory: False})
    %add_3 : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%add_2, %ones), kwargs = {})
    %relu : [num_users=1] = call_function[target=torch.ops.aten.relu.default](args = (%add_3,), kwargs = {})
    %sum_1 : [num_users=1] = call_function[target=torch.ops.aten.sum.dim_IntList](args = (%relu, [-1], True), kwargs = {})
    %view : [num_users=1] = call_function[target=torch.ops.aten.view.default](args = (%batch_norm, [-1]), kwargs = {})
    %mul : [num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = (%d_k, 2), kwargs = {})
    return (sum_1, view, 3, None, mul)"""
SIGNATURE = """
# inputs
p_sub_linear_weight: PARAMETER target='sub.linear.weight'
p_sub_linear_bias: PARAMETER target='sub.linear.bias'
p_bn_weight: PARAMETER target='bn.weight'
p_bn_bias: PARAMETER target='bn.bias'
b_sub_buf: BUFFER target='sub.buf' persistent=True
b_sub_np: BUFFER target='sub.np' persistent=False
b_bn_running_mean: BUFFER target='bn.running_mean' persistent=True
b_bn_running_var: BUFFER target='bn.running_var' persistent=True
b_bn_num_batches_tracked: BUFFER target='bn.num_batches_tracked' persistent=True
c_sub_c: CONSTANT_TENSOR target='sub.c'
x: USER_INPUT
d_k: USER_INPUT
d_j: USER_INPUT

# outputs
sum_1: USER_OUTPUT
view: USER_OUTPUT
: USER_OUTPUT
: USER_OUTPUT
mul: USER_OUTPUT
"""


@pytest.fixture
def example():
    cresset.manual_seed(0)
    return Outer(), (cresset.randn(2, 4), {"k": cresset.ones(3), "j": 7})


def test_graph_signature_and_parts_are_those_of_pytorch(example):
    module, args = example
    program = export(module, args)
    assert str(program.graph) == GRAPH
    assert str(program.graph_signature) == SIGNATURE
    assert type(program) is ExportedProgram and program.range_constraints == {}
    assert list(program.state_dict) == [
        "sub.linear.weight", "sub.linear.bias", "bn.weight", "bn.bias", "sub.buf", "bn.running_mean", "bn.running_var", "bn.num_batches_tracked",
    ]  # fmt: skip
    assert set(program.constants) == {"sub.c", "sub.np"} and program.example_inputs == (args, {})
    assert [entry.fqn for entry in program.module_call_graph] == ["", "sub", "sub.linear", "bn"]
    nodes = {n.name: n for n in program.graph.nodes}
    assert [name for name, _ in nodes["linear"].meta["nn_module_stack"].values()] == ["", "sub", "sub.linear"]
    assert nodes["linear"].meta["torch_fn"][0] == "linear_1"
    assert "y = self.linear(x)" in nodes["linear"].meta["stack_trace"] and nodes["linear"].meta["val"].shape == (2, 4)
    text = str(program)
    assert text.startswith('ExportedProgram:\n    class GraphModule(torch.nn.Module):\n        def forward(self, p_sub_linear_weight: "f32[4, 4]"')
    assert text.endswith("    mul: USER_OUTPUT\n\nRange constraints: {}\n")
    program.validate()


def test_the_module_computes_writes_and_differentiates_as_the_exported_one(example):
    module, args = example
    twin = Outer()
    twin.load_state_dict(module.state_dict())
    ran = export(module, args).module()
    for given in (args, (cresset.randn(2, 4), args[1])):
        (mine, doubled), (theirs, expected) = ran(*given), twin(*given)
        assert_close(mine["a"], theirs["a"])
        assert_close(mine["b"][0], theirs["b"][0])
        assert mine["b"][1:] == [3, None] and cresset.equal(doubled, expected)
    mine["a"].sum().backward()
    theirs["a"].sum().backward()
    assert dict(ran.named_parameters()).keys() == dict(twin.named_parameters()).keys()
    for name, parameter in twin.named_parameters():
        assert_close(ran.get_parameter(name).grad, parameter.grad)
    for name, buffer in twin.named_buffers():
        assert_close(ran.get_buffer(name), buffer)
    assert ran.sub.linear.weight is module.sub.linear.weight


def test_arguments_are_checked(example):
    module, (x, d) = example
    ran = export(module, (x, d)).module()
    with pytest.raises(AssertionError, match=re.escape("Guard failed: x.size()[0] == 2")):
        ran(cresset.ones(3, 4), d)
    with pytest.raises(AssertionError, match="Guard failed: d_j == 7"):
        ran(x, {**d, "j": 8})
    with pytest.raises(AssertionError, match="Guard failed: x.dtype"):
        ran(x.double(), d)
    with pytest.raises(ValueError, match="Trying to flatten user inputs with exported input tree spec(.|\n)*same number and type of args and kwargs"):
        ran(x)
    export(module, (x, d)).module(check_guards=False)
    for method in (ran.train, ran.eval):
        with pytest.raises(NotImplementedError, match="is not supported yet"):
            method()


def test_refusals(example):
    module, args = example
    with pytest.raises(ValueError, match="Expected `mod` to be an instance of `torch.nn.Module`, got <class 'function'>"):
        export(lambda x: x, args)
    with pytest.raises(cresset._dynamo.exc.UserError, match="Expecting `args` to be a tuple of example positional inputs, got"):
        export(module, args[0])
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly. You should use `exported_program.module\\(\\)` instead."):
        export(module, args)(*args)
    with pytest.raises(NotImplementedError, match="sizes of an exported program are those of the example"):
        export(module, args, dynamic_shapes={"x": {0: cresset.export.Dim("batch")}, "d": None})
    export(module, args, dynamic_shapes={"x": {0: cresset.export.Dim.STATIC}, "d": None})

    class Decides(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    with pytest.raises(RuntimeError, match="data-dependent control flow"):
        export(Decides(), (cresset.ones(2),))

    class Autocast(nn.Module):
        def forward(self, x):
            with cresset.autocast("cpu", dtype=cresset.bfloat16):
                return x @ x

    with pytest.raises(NotImplementedError, match="autocast cannot change"):
        export(Autocast(), (cresset.ones(2, 2),))
    assert not cresset._C._is_any_autocast_enabled()


def test_no_grad_blocks_stay_without_gradient():
    class Cuts(nn.Module):
        def forward(self, x):
            with cresset.no_grad():
                y = x * 3
            return x * 2 + y

    x = cresset.ones(2, requires_grad=True)
    ran = export(Cuts(), (x,)).module()
    ran(x).sum().backward()
    assert x.grad.tolist() == [2, 2] and cresset.is_grad_enabled()


def test_state_that_forward_assigns_anew_is_a_mutation():
    class Counts(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", cresset.zeros(()))

        def forward(self, x):
            self.count = self.count + 1
            return x * self.count

    module = Counts()
    program = export(module, (cresset.ones(2),))
    assert program.graph_signature.buffers_to_mutate == {"add": "count"} and module.count == 0
    ran = program.module()
    assert ran(cresset.ones(2)).tolist() == [1, 1] and ran(cresset.ones(2)).tolist() == [2, 2]
    assert ran.count == 2


def test_tied_parameters_and_keyword_arguments():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(3, 3, bias=False)
            self.b = nn.Linear(3, 3, bias=False)
            self.b.weight = self.a.weight

        def forward(self, x, *more, scale=1.0, shift):
            return self.b(self.a(x)) * scale + shift + more[0]

    module, x = Tied(), cresset.randn(2, 3)
    program = export(module, (x, x + 1), {"shift": cresset.ones(3), "scale": 2.0})
    assert program.graph_signature.parameters == ("a.weight",)
    assert program.graph_signature.user_inputs == ("x", "more_0", "shift", 2.0)
    assert_close(program.module()(x, x + 1, scale=2.0, shift=cresset.ones(3)), module(x, x + 1, scale=2.0, shift=cresset.ones(3)))


def test_run_decompositions_has_no_writes_and_no_composites(example):
    module, args = example
    module.eval()
    program = export(module, args).run_decompositions()
    targets = {str(n.target) for n in program.graph.nodes if n.op == "call_function"}
    assert "aten.linear.default" not in targets and "aten.addmm.default" in targets
    assert not any(n.target._schema.is_mutable for n in program.graph.nodes if hasattr(n.target, "_schema"))
    assert program.graph_signature.buffers_to_mutate == {program.graph.output_node().args[0][0].name: "sub.buf"}
    assert [s.kind for s in program.graph_signature.output_specs] == [OutputKind.BUFFER_MUTATION] + [OutputKind.USER_OUTPUT] * 5
    twin = Outer().eval()
    twin.load_state_dict(module.state_dict())
    ran = program.module()
    for _ in range(2):
        assert_close(ran(*args)[0]["a"], twin(*args)[0]["a"])
    assert cresset.equal(ran.sub.buf, twin.sub.buf)


def test_signatures_follow_renamed_nodes():
    class Add(nn.Module):
        def forward(self, x, y):
            return x + 1, y

    program = export(Add(), (cresset.ones(2), 5))
    first, second = program.graph_signature.input_specs
    assert (first.kind, first.arg) == (InputKind.USER_INPUT, TensorArgument("x")) and second.arg == ConstantArgument("y", 5)
    program.graph_signature.replace_all_uses("add", "sum")
    assert program.graph_signature.user_outputs == ("sum", 5)
