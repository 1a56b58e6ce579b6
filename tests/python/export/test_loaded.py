"""Programs of files are programs: what is saved is read back as it was."""

import copy
import dataclasses
import io
import json
import zipfile

import pytest

import cresset as torch
from cresset import nn
from cresset.export import Dim, export, load, register_dataclass, save, unflatten
from cresset.export._load import ir_module
from cresset.export._read_sizes import size_of_text
from cresset.testing import assert_close


def loaded(program):
    buffer = io.BytesIO()
    save(program, buffer)
    return load(io.BytesIO(buffer.getvalue()))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(4, 5), nn.BatchNorm1d(5)

    def forward(self, x):
        a, b = torch.split(self.norm(self.linear(x)), [2, 3], 1)
        values, _ = torch.max(b, 1)
        return a.reshape(x.shape[0] * 2), values + x.shape[0]


class Branch(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))


class Values(nn.Module):
    def forward(self, x, y):
        n = x.item()
        torch._check(n >= 2)
        torch._check(n < 10)
        return torch.ones(n), y.nonzero(), n + 1, torch.zeros(3, dtype=torch.int16, device="cpu"), y.to(memory_format=torch.contiguous_format)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 4)

    def forward(self, x):
        return self.lstm(x)


CASES = {
    "net": (Net, (torch.arange(24.0).reshape(6, 4),), {"x": {0: Dim("b", min=3)}}),
    "branch": (Branch, (torch.ones(6, 4),), {"x": {0: Dim("b", min=3)}}),
    "values": (Values, (torch.tensor(4), torch.ones(3)), None),
    "recurrent": (Recurrent, (torch.ones(2, 6, 3),), None),
}


@pytest.mark.parametrize("name", CASES)
def test_the_same_text_and_results(name):
    kind, args, sizes = CASES[name]
    program = export(kind(), args, dynamic_shapes=sizes)
    again = loaded(program)
    assert str(again) == str(program)
    assert [n.meta.get("torch_fn") for n in again.graph.nodes] == [n.meta.get("torch_fn") for n in program.graph.nodes]
    stacks = [[n.meta.get("nn_module_stack") or {} for n in p.graph.nodes] for p in (again, program)]
    assert stacks[0] == stacks[1]
    fresh, expected = [loaded(again), loaded(again.run_decompositions()), copy.deepcopy(loaded(again))], program.module()(*args)
    for one in fresh:
        assert_close(one.module()(*args), expected)
    assert_close(again.example_inputs[0], args)


def test_parameters_and_the_graph_of_the_ir_share_memory():
    program = loaded(export(Net().eval(), (torch.ones(6, 4),)))
    weight = program.state_dict["linear.weight"]
    assert isinstance(weight, nn.Parameter) and weight.requires_grad and dict(program.named_parameters())["linear.weight"] is weight
    assert ir_module(program).linear.weight is weight
    before = program.module()(torch.ones(6, 4))[1]
    linear = next(n for n in program.graph.nodes if n.target is torch.ops.aten.linear.default)
    linear.update_arg(2, None)
    program.graph_module.recompile()
    assert ir_module(program).linear.weight is not weight  # a changed graph is written anew
    assert not torch.equal(ir_module(program)(torch.ones(6, 4))[1], before)


@dataclasses.dataclass
class Pair:
    a: torch.Tensor
    b: torch.Tensor


def test_classes_that_the_ir_does_not_have():
    register_dataclass(Pair, serialized_type_name="test_loaded.Pair")

    class Sum(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("part", torch.arange(8).reshape(2, 4).t()[1:])
            self.scale, self.weight = torch.full((3,), 2.0).half(), nn.Parameter(torch.ones(2))

        def forward(self, x):
            return x.a + x.b.sum() * self.scale.sum() + self.part.sum() * self.weight.sum()

    program = loaded(export(Sum(), (Pair(torch.ones(2), torch.ones(3)),)))
    assert program.state_dict["part"].stride() == (1, 4) and isinstance(program.state_dict["weight"], nn.Parameter)
    assert program.module()(Pair(torch.ones(2), torch.ones(3))).tolist() == [67.0, 67.0]  # 1 + 3 * 6 + 24 * 2


def test_signatures_of_modules():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 2)

        def forward(self, x):
            return self.second(self.first(x).relu())

    two, x = Two(), torch.ones(3, 4)
    parts = unflatten(loaded(export(two, (x,), preserve_module_call_signature=("first",))))
    assert torch.equal(parts(x), two(x))
    parts.first = nn.Identity()
    assert torch.equal(parts(x), two.second(x.relu()))


def test_nothing_is_imported_for_a_file():
    buffer = io.BytesIO()
    save(export(Branch(), (torch.ones(2),)), buffer)
    with zipfile.ZipFile(buffer) as archive:
        entries = {n: archive.read(n) for n in archive.namelist()}
    name = next(n for n in entries if n.endswith("model.json"))
    document = json.loads(entries[name])
    leaf = {"type": None, "context": None, "children_spec": []}
    context = json.dumps({"default_factory_module": "this", "default_factory_name": "d", "dict_context": ["a"]})
    document["graph_module"]["module_call_graph"][0]["signature"]["out_spec"] = json.dumps([1, {"type": "collections.defaultdict", "context": context, "children_spec": [leaf]}])
    entries[name] = json.dumps(document).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for path, data in entries.items():
            archive.writestr(path, data)
    with pytest.raises(RuntimeError, match="'this' is not supported unless it is imported before|not supported"):
        load(io.BytesIO(out.getvalue())).graph  # noqa: B018


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Symbol('s0', integer=True)", "s0"),
        ("Add(Mul(Integer(2), Symbol('s0'), Symbol('s1')), Integer(-3))", "2*s0*s1 - 3"),
        ("Add(Mul(Integer(2), FloorDiv(Add(Symbol('s0'), Integer(1)), Integer(3))), Integer(1))", "2*((s0 + 1)//3) + 1"),
        ("Pow(Symbol('s0'), Integer(2))", "s0*s0"),
        ("Mul(Add(Symbol('s0'), Integer(1)), Add(Symbol('s0'), Integer(-1)))", "s0*s0 - 1"),
        ("Integer(7)", "7"),
        ("2*u0 - 3", "2*u0 - 3"),
        ("(u0 + 1)//2", "(u0 + 1)//2"),
        ("u0 / 2", "None"),
        ("Max(Symbol('s0'), Integer(2))", "None"),
        ("__import__('os')", "None"),
    ],
)
def test_expressions(text, shown):
    assert str(size_of_text(text)) == shown


def test_what_users_note_at_nodes():
    program, x = export(nn.Linear(2, 4), (torch.zeros(1, 2),)), torch.zeros(1, 2)
    graph = copy.deepcopy(program.graph_module)
    graph.meta["custom"] = {"f": "bar"}
    for node in graph.graph.nodes:
        if node.op == "call_function":
            node.meta["custom"] = {"tag": "foo"}
    program = program._update(graph, program.graph_signature)
    for one in (loaded(program), export(program.module(), (x,)), loaded(export(loaded(program).module(), (x,)))):
        assert one.graph_module.meta["custom"] == {"f": "bar"}
        assert [n.meta.get("custom") for n in one.graph.nodes] == [None, None, None, {"tag": "foo"}, None]


def test_further_names_of_constants():
    class Inner(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = torch.ones(3)

        def forward(self, x):
            return x + self.part

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()
            self.part = self.inner.part

        def forward(self, x):
            return self.inner(x) * self.part

    program = loaded(export(Outer(), (torch.ones(3),)))
    assert sorted(program.constants) == ["inner.part", "part"] and len(program.graph_signature.lifted_tensor_constants) == 1
    assert unflatten(program)(torch.ones(3)).tolist() == [2.0, 2.0, 2.0]
