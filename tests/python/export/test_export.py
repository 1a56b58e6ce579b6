"""export: programs beside those that PyTorch 2.13 makes of the same modules (torch_graphs.json, written by export_models.py)."""

import importlib.util
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import cresset
from cresset import nn
from cresset._dynamo.exc import UserError
from cresset.export import Dim, ExportedProgram, InputKind, OutputKind, ShapesCollection, export, load, save
from cresset.fx.experimental.symbolic_shapes import ConstraintViolationError, GuardOnDataDependentSymNode
from cresset.testing import assert_close
from cresset.utils._pytree import tree_leaves

HERE = Path(__file__).resolve().parent
_spec = importlib.util.spec_from_file_location("export_models", HERE / "export_models.py")
_models = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_models)
exported_models, filled = _models.exported_models, _models.filled
TORCH = json.loads((HERE / "torch_graphs.json").read_text())
MODELS = exported_models(cresset)
# Where the package's functions call other operators than PyTorch's: one of them is missing, or stands for others.
OTHER_OPERATORS = {
    "bert": "no _assert_tensor_metadata in front of to",
    "llama": "no _assert_tensor_metadata, and no to where nothing changes",
    "lstm": "results that nobody uses are not taken out",
    "loss": "losses broadcast without an operator of their own",
}


def program(name):
    cls, args, kwargs, training = MODELS[name]
    return export(filled(cresset, cls()).train(training), args, kwargs), args, kwargs


@pytest.mark.parametrize("name", sorted(MODELS))
def test_programs_are_those_of_torch(name):
    found, _, _ = program(name)
    found.validate()
    expected = TORCH[name]
    if name != "index":
        assert [n.name for n in found.graph.nodes if n.op == "placeholder"] == expected["placeholders"]
        assert str(found.graph_signature).strip().splitlines() == expected["signature"]
    operators = [f"{n.name}={n.target}" for n in found.graph.nodes if n.op == "call_function"]
    assert (operators == expected["operators"]) == (name not in OTHER_OPERATORS)
    if name not in OTHER_OPERATORS:
        assert [list(n.meta["val"].shape) for n in found.graph.nodes if n.op == "call_function" and isinstance(n.meta.get("val"), cresset.Tensor)] == expected["shapes"]


def assert_same(found, expected):
    for a, b in zip(tree_leaves(found), tree_leaves(expected), strict=True):
        if isinstance(b, cresset.Tensor):
            assert_close(a.detach(), b.detach(), rtol=1e-5, atol=1e-5)
        else:
            assert a == b


@pytest.mark.parametrize("name", sorted(MODELS))
def test_programs_compute_what_the_module_computes(name):
    cls, args, kwargs, training = MODELS[name]
    model = filled(cresset, cls()).train(training)
    calls = [export(model, args, kwargs).module(), export(filled(cresset, cls()).train(training), args, kwargs).run_decompositions().module()]
    file = io.BytesIO()
    fresh, _, _ = program(name)
    save(fresh, file)
    file.seek(0)
    if name != "dataclass":  # the IR has no such containers
        calls.append(load(file).module())
    other = filled(cresset, cls()).train(training)
    for _ in range(2):  # the second call sees the buffers that the first one wrote
        expected = other(*args, **kwargs)
        for call in calls:
            assert_same(call(*args, **kwargs), expected)


def test_a_module_stays_as_it_is_and_shares_its_tensors():
    model = nn.BatchNorm1d(3)
    before = model.running_mean.clone()
    found = export(model, (cresset.rand(4, 3),))
    assert cresset.equal(model.running_mean, before) and model.num_batches_tracked == 0
    assert found.state_dict["weight"] is model.weight
    found.module()(cresset.rand(4, 3))
    assert model.num_batches_tracked == 1


def test_decomposed_programs_write_nothing():
    found = export(nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)), (cresset.rand(4, 3),)).run_decompositions()
    assert not any(n.target._schema.is_mutable for n in found.graph.nodes if isinstance(n.target, cresset._C.OpOverload))
    kinds = [(s.kind, s.target) for s in found.graph_signature.output_specs]
    assert set(kinds) == {
        (OutputKind.BUFFER_MUTATION, "1.running_mean"), (OutputKind.BUFFER_MUTATION, "1.running_var"), (OutputKind.BUFFER_MUTATION, "1.num_batches_tracked"),
        (OutputKind.USER_OUTPUT, None),
    }  # fmt: skip
    assert found.dialect == "ATEN"

    class Writes(nn.Module):
        def forward(self, x):
            x.mul_(2)
            return x + 1

    found = export(Writes(), (cresset.ones(2),)).run_decompositions()
    assert [str(s) for s in found.graph_signature.output_specs] == ["mul: USER_INPUT_MUTATION target='x'", "add: USER_OUTPUT"]
    x = cresset.ones(2)
    assert found.module()(x).tolist() == [3, 3] and x.tolist() == [2, 2]


class Sizes(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 3)

    def forward(self, x, d):
        y = self.lin(x) + d["k"]
        n = x.shape[0]
        return {"z": cresset.cat([y, y]).reshape(n * 2, -1), "n": n}, y.view(x.size(0), 3)[: n - 1], x.flatten(), y.sum() / n


@pytest.mark.parametrize("decompose", [False, True])
def test_sizes_that_vary(decompose):
    model = Sizes()
    found = export(model, (cresset.rand(5, 4), {"k": cresset.rand(3)}), dynamic_shapes={"x": {0: Dim("b", min=3, max=64)}, "d": {"k": None}})
    assert "sym_size_int" in str(found.graph) and "f32[2*s0, 3]" in str(found) and "f32[s0 - 1, 3]" in str(found)
    assert str(found.range_constraints) == "{s0: VR[3, 64]}"
    found = found.run_decompositions() if decompose else found
    file = io.BytesIO()
    save(found, file)
    file.seek(0)
    for call in (found.module(), load(file).module()):
        for n in (3, 5, 10, 33, 64):
            args = cresset.rand(n, 4), {"k": cresset.rand(3)}
            assert_same(call(*args), model(*args))
        for n in (2, 65):
            with pytest.raises(RuntimeError, match=r"Expected input at \*args\[0\].shape\[0\] to be [<>]= "):
                call(cresset.rand(n, 4), {"k": cresset.rand(3)})


class Add(nn.Module):
    def forward(self, x, y):
        return x + y


class Branch(nn.Module):
    def forward(self, x, y):
        return x + y if x.shape[0] > 10 else x - y


def test_sizes_that_must_be_equal():
    a, b = cresset.ones(4, 3), cresset.ones(4, 3)
    found = export(Add(), (a, b), dynamic_shapes=({0: Dim.AUTO}, {0: Dim.AUTO}))
    assert str(found.range_constraints) == "{s0: VR[2, int_oo]}"
    assert found.module()(cresset.ones(7, 3), cresset.ones(7, 3)).shape == (7, 3)
    with pytest.raises(RuntimeError, match=r"Expected input at \*args\[1\].shape\[0\] to be equal to 7, but got 6"):
        found.module()(cresset.ones(7, 3), cresset.ones(6, 3))
    n = Dim("n")
    linked = export(Linked(), (cresset.rand(3), cresset.rand(6)), dynamic_shapes=({0: n}, {0: 2 * n}))
    assert linked.module()(cresset.ones(5), cresset.ones(10)).shape == (5,)
    with pytest.raises(RuntimeError, match=r"to be equal to 2\*s0 = 10, but got 9"):
        linked.module()(cresset.ones(5), cresset.ones(9))
    assert export(Add(), (a, b), dynamic_shapes=({0: Dim.AUTO}, None)).range_constraints == {}  # AUTO gives way
    shapes = ShapesCollection()
    shapes[a] = {0: (d := Dim("d"))}
    shapes[b][0] = d
    assert len(export(Add(), (a, b), dynamic_shapes=shapes).range_constraints) == 1


class Limited(nn.Module):
    def forward(self, x):
        return x + cresset.arange(12.0)[: x.shape[0]]


def test_sizes_with_a_limit_in_the_program():
    """torch 2.13: VR[2, 12] for AUTO, the suggestion max=12 for a Dim."""
    found = export(Limited(), (cresset.ones(5),), dynamic_shapes=({0: Dim.AUTO},))
    assert str(found.range_constraints) == "{s0: VR[2, 12]}"
    assert found.module()(cresset.ones(12)).shape == (12,)
    with pytest.raises(RuntimeError, match=r"Expected input at \*args\[0\].shape\[0\] to be <= 12, but got 13"):
        found.module()(cresset.ones(13))
    with pytest.raises(UserError, match=r"Suggested fixes:\n  n = Dim\('n', max=12\)"):
        export(Limited(), (cresset.ones(5),), dynamic_shapes=({0: Dim("n")},))


def test_numbers_that_follow_from_sizes():
    """Products, sums of several sizes, and quotients, for sizes at which nothing was tried."""

    class Numbers(nn.Module):
        def forward(self, x, y):
            n, m = x.shape
            return x[: (n + 1) // 2], x[: n // 3 + 1], x.reshape(n * m), cresset.zeros(n + 2 * m + y.shape[0]), x.new_full((2,), n), y[: (y.shape[0] + 4) // 5 * 2]

    model = Numbers()
    found = export(model, (cresset.rand(6, 4), cresset.rand(9)), dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO}, {0: Dim.AUTO}))
    assert len(found.range_constraints) == 3
    for n, m, k in [(2, 3, 5), (17, 8, 31), (100, 2, 64), (23, 29, 1000), (12, 12, 12)]:
        args = cresset.rand(n, m), cresset.rand(k)
        assert_same(found.module()(*args), model(*args))

    class Other(nn.Module):
        def forward(self, x):
            return x[: int(x.shape[0] ** 0.5)]

    with pytest.raises(UserError, match="has a number at the operator aten.slice.Tensor (.|\n)*that does not follow from the sizes by a rule that export finds"):
        export(Other(), (cresset.rand(6),), dynamic_shapes=({0: Dim("n")},))


class Linked(nn.Module):
    def forward(self, a, b):
        return a + b[::2]


@pytest.mark.parametrize(
    "model, shapes, kind, words",
    [
        (Add(), ({0: Dim("b")}, None), UserError, r"You marked b as dynamic but your code specialized it to be a constant \(4\)(.|\n)*Suggested fixes:\n  b = 4"),
        (Add(), ({0: Dim("b")}, {0: Dim("c")}), UserError, r"The values of c = L\['y'\].size\(\)\[0\] and b = L\['x'\].size\(\)\[0\] must always be equal(.|\n)*c = b"),
        (Add(), ({0: Dim.DYNAMIC}, None), UserError, r"You marked L\['x'\].size\(\)\[0\] as dynamic"),
        (Branch(), ({0: (d := Dim("d"))}, {0: d}), UserError, r"Not all values of d = L\['y'\].size\(\)\[0\] in the specified range satisfy the generated guard: at 11 it runs"),
        (Add(), {"x": {0: Dim("b")}}, UserError, r"its top-level keys must be the arg names \['x', 'y'\] of `inputs`, but here they are \['x'\]"),
        (Add(), ({0: Dim("b")},), UserError, "`inputs` has 2 elements, but `dynamic_shapes` has 1 elements"),
        (Add(), ({0: (e := Dim("e", max=3))}, {0: e}), ConstraintViolationError, r"4 not in range \[0, 3\]"),
        (Add(), ({5: Dim("b")}, None), IndexError, r"dynamic_shapes\[0\] names the dimension 5 of a tensor of 2 dimensions"),
    ],
)  # fmt: skip
def test_sizes_that_cannot_vary(model, shapes, kind, words):
    with pytest.raises(kind, match=words):
        export(model, (cresset.ones(4, 3), cresset.ones(4, 3)), dynamic_shapes=shapes)


def test_inputs_are_checked():
    found, _, _ = program("dict")
    with pytest.raises(ValueError, match="Trying to flatten user inputs with exported input tree spec"):
        found.module()({"a": cresset.ones(2)})
    found, args, kwargs = program("kwargs")
    with pytest.raises(RuntimeError, match=r"Expected input at \*\*kwargs\['flag'\] to be equal to False, but got True"):
        found.module()(*args, **{**kwargs, "flag": True})
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly"):
        found()
    for mode in ("train", "eval"):
        with pytest.raises(NotImplementedError, match=rf"Calling {mode}\(\) is not supported yet"):
            getattr(found.module(), mode)()


class Value(nn.Module):
    def forward(self, x):
        return x + 1 if x.sum() > 0 else x - 1


def test_what_is_refused():
    x = cresset.ones(2, 3)
    with pytest.raises(GuardOnDataDependentSymNode, match="asks for a value of a tensor(.|\n)*Use torch.cond"):
        export(Value(), (x,))
    with pytest.raises(ValueError, match="Expected `mod` to be an instance of `torch.nn.Module`"):
        export(lambda x: x, (x,))
    with pytest.raises(UserError, match="Expecting `args` to be a tuple"):
        export(Value(), [x])
    with pytest.raises(TypeError, match="missing a required argument: 'y'"):
        export(Add(), (x,))
    with pytest.raises(ValueError, match="Unsupported input type"):
        export(Add(), (x, object()))
    with pytest.raises(TypeError, match="The 'ep' parameter must be an instance of 'ExportedProgram', got 'Add' instead"):
        save(Add(), io.BytesIO())
    assert not cresset.compiler.is_exporting()


class Condition(nn.Module):
    """Its branches use a parameter and a tensor from around them."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        y = x * 2
        return cresset.cond(x.sum() > 0, lambda x: self.lin(x) + y, lambda x: x - 1, (x,))


def test_conditions(tmp_path):
    model, x = filled(cresset, Condition()), cresset.ones(2, 3)
    found = export(model, (x,))
    calls = [n for n in found.graph.nodes if n.op in ("call_function", "get_attr")]
    # torch 2.13 has the same nodes; the operands that it adds to x are sorted.
    assert [n.name for n in calls] == ["mul", "sum_1", "gt", "true_graph_0", "false_graph_0", "cond", "getitem"]
    assert "torch.ops.higher_order.cond(gt, true_graph_0, false_graph_0, (x, p_lin_weight, p_lin_bias, mul))" in str(found)
    assert [n.name for n in found.graph_module.true_graph_0.graph.nodes] == ["x", "p_lin_weight", "p_lin_bias", "mul", "linear", "add", "output"]
    assert [n.name for n in found.graph_module.false_graph_0.graph.nodes] == ["x", "p_lin_weight", "p_lin_bias", "mul", "sub", "output"]
    save(found, tmp_path / "condition.pt2")
    save(found.run_decompositions(), tmp_path / "core.pt2")
    for call in (found.module(), *(load(tmp_path / name).module() for name in ("condition.pt2", "core.pt2"))):
        for value in (x, -x):
            assert_same(call(value), model(value))


@pytest.mark.parametrize(
    "one, other, words",
    [
        (lambda x: x + 1, lambda x: x.sum(), r"the branches give different results: \(cresset.float32\[2\]\) and \(cresset.float32\[\]\)"),
        (lambda x: x.add_(1), lambda x: x - 1, r"a branch writes to a tensor from outside \(aten.add_.Tensor\)"),
        (lambda x: 1, lambda x: 2, "a branch must give tensors"),
    ],
)
def test_conditions_that_are_refused(one, other, words):
    class Bad(nn.Module):
        def forward(self, x):
            return cresset.cond(x.sum() > 0, one, other, (x,))

    with pytest.raises(UserError, match=words):
        export(Bad(), (cresset.ones(2),))
    assert cresset.cond(cresset.tensor(True), lambda: 1, lambda: 2) == 1


def test_attributes_that_forward_assigns_do_not_stay():
    class Keeps(nn.Module):
        def forward(self, x):
            self.last = x + int(cresset.compiler.is_exporting())
            return self.last

    model = Keeps()
    with pytest.warns(UserWarning, match="The tensor attribute self.last was assigned during export"):
        found = export(model, (cresset.ones(2),))
    assert not hasattr(model, "last") and found.module()(cresset.ones(2)).tolist() == [2, 2]


def test_parts():
    found, args, kwargs = program("convbn_train")
    assert found.graph_signature.parameters == ("c.weight", "n.weight", "n.bias", "f.weight", "f.bias")
    assert found.graph_signature.inputs_to_buffers["b_n_running_mean"] == "n.running_mean"
    assert found.graph_signature.user_inputs == ("x",)
    assert [s.kind for s in found.graph_signature.input_specs].count(InputKind.PARAMETER) == 5
    assert [n for n, _ in found.named_buffers()] == ["n.running_mean", "n.running_var", "n.num_batches_tracked"]
    assert found.dialect == "TRAINING" and found.example_inputs == (args, kwargs)
    assert [e.fqn for e in found.module_call_graph] == ["", "c", "n", "f"]
    relu = next(n for n in found.graph.nodes if n.name == "batch_norm")
    assert list(relu.meta["nn_module_stack"].values())[1] == ("n", "cresset.nn.modules.batchnorm.BatchNorm2d")
    assert "in forward, code: " in str(found)


def test_engines_and_lowering_take_programs():
    found, args, _ = program("convbn_eval")
    compiled = cresset.engine.compile(found, inputs=list(args))
    assert_close(compiled(*args).detach(), found.module()(*args).detach(), rtol=1e-4, atol=1e-5)
    kinds = {n.kind() for n in cresset.lowering.lower(found).graph.nodes()}
    assert "aten::_convolution" in kinds or "aten::conv2d" in kinds


CHECK = """
import json, sys, torch
sys.path.insert(0, sys.argv[1])
from export_models import exported_models
models, folder = exported_models(torch), sys.argv[2]
from torch.utils._pytree import tree_leaves
found = {}
for name, (cls, args, kwargs, training) in models.items():
    program = torch.export.load(f"{folder}/{name}.pt2")
    found[name] = [x.detach().tolist() if isinstance(x, torch.Tensor) else x for x in tree_leaves(program.module()(*args, **kwargs))]
    if name in ("resnet", "gpt"):
        program.run_decompositions()
sizes = torch.export.load(f"{folder}/sizes.pt2").module()
found["sizes"] = [list(x.shape) if isinstance(x, torch.Tensor) else x for x in tree_leaves(sizes(torch.ones(9, 4), {"k": torch.ones(3)}))]
condition = torch.export.load(f"{folder}/condition.pt2").module()
found["condition"] = [condition(torch.ones(2, 3)).tolist(), condition(-torch.ones(2, 3)).tolist()]
json.dump(found, open(f"{folder}/found.json", "w"))
"""


def test_torch_runs_the_files(tmp_path):
    python = os.environ.get("CRESSET_ORACLE_PYTHON", sys.executable)
    has_torch = subprocess.run([python, "-c", "import torch.export; print(torch.__version__)"], capture_output=True, text=True)
    if has_torch.returncode or tuple(int(v) for v in has_torch.stdout.split(".")[:2]) < (2, 9):
        pytest.skip("needs torch 2.9 or newer (CRESSET_ORACLE_PYTHON names a Python that has it)")
    for name in MODELS:
        save(program(name)[0], tmp_path / f"{name}.pt2")
    save(export(Sizes(), (cresset.rand(5, 4), {"k": cresset.rand(3)}), dynamic_shapes=({0: Dim("b", min=3)}, None)), tmp_path / "sizes.pt2")
    condition, x = filled(cresset, Condition()), cresset.ones(2, 3)
    save(export(condition, (x,)), tmp_path / "condition.pt2")
    subprocess.run([python, "-W", "ignore", "-c", CHECK, HERE, tmp_path], check=True, capture_output=True)
    found = json.loads((tmp_path / "found.json").read_text())
    assert found.pop("sizes") == [[18, 3], 9, [8, 3], [36], []]
    assert_close(cresset.tensor(found.pop("condition")), cresset.stack([condition(x), condition(-x)]).detach())
    for name, values in found.items():
        fresh, args, kwargs = program(name)
        for value, expected in zip(values, tree_leaves(fresh.module()(*args, **kwargs)), strict=True):
            if isinstance(expected, cresset.Tensor):
                assert_close(cresset.tensor(value, dtype=expected.dtype), expected.detach(), rtol=1e-4, atol=1e-5, equal_nan=True)


def test_loaded_programs_are_exported_programs(tmp_path):
    found, _, _ = program("mlp")
    save(found, tmp_path / "net.pt2")
    loaded = load(tmp_path / "net.pt2")
    assert isinstance(loaded, ExportedProgram)
    assert str(loaded.graph_signature) == str(found.graph_signature)
    assert_same(loaded.state_dict, found.state_dict)
    sizes = export(Sizes(), (cresset.rand(5, 4), {"k": cresset.rand(3)}), dynamic_shapes=({0: Dim("b", min=3)}, None))
    save(sizes, tmp_path / "sizes.pt2")
    assert str(load(tmp_path / "sizes.pt2").range_constraints) == str(sizes.range_constraints) == "{s0: VR[3, int_oo]}"
