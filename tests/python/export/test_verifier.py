"""Checks of programs, passes over them, and constants as inputs. Words and graphs are PyTorch 2.13's."""

import re

import pytest

import cresset as torch
from cresset._export.pass_base import ExportPassBaseError, _ExportPassBaseDeprecatedDoNotUse
from cresset._export.passes.lift_constants_pass import ConstantAttrMap, lift_constants_pass
from cresset._export.tools import report_exportability
from cresset._export.verifier import SpecViolationError, TrainingIRVerifier, Verifier, load_verifier
from cresset.export.graph_signature import ExportGraphSignature, InputKind, InputSpec, OutputKind, OutputSpec, TensorArgument
from cresset.fx.passes.infra.pass_base import PassResult

aten = torch.ops.aten


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l = torch.nn.Linear(2, 2)
        self.register_buffer("b", torch.ones(2))

    def forward(self, x):
        self.b.add_(1)
        return self.l(x) + self.b


def program():
    return torch.export.export(Net(), (torch.ones(2, 2),))


def target(new, old=aten.add.Tensor):
    def change(p):
        for node in p.graph.nodes:
            if node.target == old:
                node.target = new

    return change


def method(p):
    node = next(n for n in p.graph.nodes if n.op == "call_function")
    node.op, node.target = "call_method", "relu"


def without_values(p):
    for node in p.graph.nodes:
        if node.op == "call_function":
            del node.meta["val"]


def spec(kind, at, name, path, persistent=None):
    def change(p):
        p.graph_signature.input_specs[at] = InputSpec(kind, TensorArgument(name), path, persistent)

    return change


VIOLATIONS = [
    (method, "call_method is not valid: got 'relu' "),
    (target(aten.add_.Tensor), "operator 'aten.add_.Tensor' is not functional"),
    (target(torch.add), "is not an allowed operator type"),
    (target(aten.add), "Operator 'aten.add' is not an allowed operator type"),
    (without_values, "Node.meta add is missing val field."),
    (spec(InputKind.PARAMETER, 0, "p_l_weight", "bad_param"), "Parameter bad_param is not in the state dict."),
    (lambda p: p.state_dict.update({"l.weight": torch.ones(2)}), "State dict entry for parameter l.weight is not an instance of torch.nn.Parameter."),
    (spec(InputKind.BUFFER, 2, "c", "bad_buffer", True), "Input spec name c does not match node name b_b"),
    (spec(InputKind.BUFFER, 2, "b_b", "bad_buffer", True), "Buffer bad_buffer is not in the state dict."),
    (lambda p: setattr(p.graph_signature.output_specs[1], "arg", TensorArgument("nothing")), "User output add_1 is not in the correct order"),
    (lambda p: p.graph_signature.output_specs.pop(), "Number of output nodes 2 is different Than the number of outputs specified by the graph signature: 1"),
    (lambda p: p.graph_signature.input_specs.pop(), "Number of graph inputs (4) does not match number of inputs in the graph signature (3)"),
    (lambda p: setattr(p.graph_signature.output_specs[0], "target", "nob"), "Buffer output add does not point to a buffer that exists."),
]


@pytest.mark.parametrize("change, words", VIOLATIONS)
def test_violations(change, words):
    found = program().run_decompositions()
    Verifier().check(found)
    change(found)
    with pytest.raises(SpecViolationError, match=re.escape(words)):
        Verifier().check(found)


def test_dialects():
    found = program()
    assert found.verifiers == [TrainingIRVerifier] and found.run_decompositions().verifier is Verifier
    TrainingIRVerifier().check(found)
    with pytest.raises(SpecViolationError, match="operator 'aten.add_.Tensor' is not functional"):
        Verifier().check(found)
    with pytest.raises(SpecViolationError, match="Node.meta x is missing val field"):
        Verifier()._check_graph_module(torch.fx.symbolic_trace(Net()))
    assert load_verifier("ATEN") is Verifier and load_verifier("TRAINING") is TrainingIRVerifier
    with pytest.raises(KeyError):
        load_verifier("NOPE")

    class NoSums(Verifier):
        def check_valid_op(self, op):
            if op is aten.sum.default:
                raise SpecViolationError("sum")

    class Sum(torch.nn.Module):
        def forward(self, x):
            return torch.cond(x.max() > 0, lambda x: x.sum(), lambda x: x.max(), (x,))

    with pytest.raises(SpecViolationError, match="^sum$"):  # in a branch
        NoSums().check(torch.export.export(Sum(), (torch.ones(2),)))


class Sigmoids(_ExportPassBaseDeprecatedDoNotUse):
    """relu becomes sigmoid."""

    def call_operator(self, op, args, kwargs, meta):
        return super().call_operator(aten.sigmoid.default if op is aten.relu.default else op, args, kwargs, meta)


class Branches(Net):
    def forward(self, x, y):
        a, b = torch.split(self.l(x), 1)
        return torch.cond(x.sum() > 0, lambda x: x.relu(), lambda x: x.cos(), (a + b + self.b.relu(),)), y


def test_passes():
    module = Branches()
    before = torch.export.export(module, (torch.ones(2, 2), 3))
    text = before.graph_module.code
    after = before._transform_do_not_use(Sigmoids())
    assert [line.strip().partition(" = ")[0] for line in after.graph_module.code.strip().splitlines()[1:-1]] == [
        "linear", "split", "getitem", "getitem_1", "sum_1", "gt", "add", "sigmoid", "add_1", "submodule_0", "submodule_1", "cond", "getitem_2",
    ]  # fmt: skip
    assert "torch.ops.higher_order.cond(gt, submodule_0, submodule_1, [add_1])" in after.graph_module.code
    assert [str(n.target) for n in after.graph_module.submodule_0.graph.nodes if n.op == "call_function"] == ["aten.sigmoid.default"]
    assert before.graph_module.code == text and before.graph_module is not after.graph_module
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    a, b = module.l(x).split(1)
    torch.testing.assert_close(after.module()(x, 3)[0], (a + b + module.b.sigmoid()).sigmoid())
    Verifier().check(after)
    same = before._transform_do_not_use(_ExportPassBaseDeprecatedDoNotUse())
    assert [n.name for n in same.graph.nodes if n.op == "call_function"] == [n.name for n in before.graph.nodes if n.op == "call_function"]
    assert all(n.stack_trace for n in same.graph.nodes if n.op == "call_function")
    with pytest.raises(ExportPassBaseError, match="Cannot construct an input for graph module"):
        Sigmoids()(torch.fx.symbolic_trace(lambda x: x + 1))


def test_renaming_passes():
    def renamed(module):
        for node in module.graph.nodes:
            if node.op == "call_function":
                node.name += "_modified"
        module.recompile()
        return PassResult(module, True)

    before = program()
    after = before._transform_do_not_use(renamed)
    assert after.graph_signature.user_outputs == ("add_modified",) and before.graph_signature.user_outputs == ("add",)
    assert before._transform_do_not_use(lambda module: PassResult(module, False)) is before

    def fewer(module):
        (output,) = (n for n in module.graph.nodes if n.op == "output")
        output.args = ((),)
        return PassResult(module, True)

    with pytest.raises(RuntimeError, match="gave a graph with 4 inputs and 0 outputs; the program has 4 and 1"):
        before._transform_do_not_use(fewer)


def test_maps_of_constants():
    found, a, b = ConstantAttrMap(), torch.ones(2), torch.ones(2)
    found.add(a, "a")
    found.add(b, "b")
    found.add(a, "c.a")
    assert len(found) == 2 and found[a] == ["a", "c.a"] and a in found and torch.ones(2) not in found and [k is x for k, x in zip(found, (a, b))] == [True, True]
    with pytest.raises(TypeError, match="Expected key to be a tensor or ScriptObject, got <class 'int'>"):
        found.add(1, "x")
    with pytest.raises(NotImplementedError, match=r"please use add\(key, value\)"):
        found[a] = ["x"]
    with pytest.raises(KeyError):
        found[torch.ones(2)]
    del found[a]
    assert len(found) == 1


@pytest.mark.parametrize("named", [False, True])
def test_lifted_constants(named):
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    x.meta["val"] = torch.ones(2)
    first, again, other = (graph.get_attr(name) for name in ("first", "first", "other"))
    other.meta["nn_module_stack"] = {0: ("", torch.nn.Module), 1: ("inner", torch.nn.Module)}
    total = graph.call_function(aten.add.Tensor, (graph.call_function(aten.add.Tensor, (x, first)), graph.call_function(aten.mul.Tensor, (again, other))))
    graph.output((total,))
    values = {"first": torch.ones(2), "other": torch.zeros(2)}
    module = torch.fx.GraphModule(values, graph)
    signature = ExportGraphSignature([InputSpec(InputKind.USER_INPUT, TensorArgument("x"), None)], [OutputSpec(OutputKind.USER_OUTPUT, TensorArgument(total.name), None)])
    paths = ConstantAttrMap()
    if named:
        paths.add(values["first"], "held.first")
        paths.add(values["first"], "held.twin")
    constants = lift_constants_pass(module, signature, paths)
    module.graph.lint()
    expected = ["held.first", "held.twin", "inner.lifted_tensor_0"] if named else ["lifted_tensor_0", "inner.lifted_tensor_1"]
    assert list(constants) == expected and constants[expected[0]] is values["first"] and constants[expected[-1]] is values["other"]
    assert [n.op for n in module.graph.nodes].count("get_attr") == 0
    names = [n.name for n in module.graph.nodes if n.op == "placeholder"]
    assert names == [s.arg.name for s in signature.input_specs] and names[-1] == "x" and [s.kind.name for s in signature.input_specs][:2] == ["CONSTANT_TENSOR"] * 2
    assert module(values["first"], values["other"], torch.ones(2) * 3)[0].tolist() == [4.0, 4.0]


def test_report_exportability():
    class Values(torch.nn.Module):
        def forward(self, x):
            return x if x.sum().item() > 0 else -x

    class Both(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.values, self.plain, self.unused = Values(), torch.nn.ReLU(), Values()

        def forward(self, x):
            return self.values(self.plain(x))

    report = report_exportability(Both(), (torch.ones(2),))
    assert list(report) == ["", "values", "plain"] and report["plain"] is None
    assert type(report[""]) is type(report["values"]) and "data-dependent" in str(report[""])
    assert report_exportability(torch.nn.ReLU(), (torch.ones(2),)) == {"": None}
