"""unflatten: the modules of a program. Graphs and names are those that PyTorch 2.13 gives for the same modules."""

import pytest

import cresset
from cresset import nn
from cresset.export import Dim, FlatArgsAdapter, export, unflatten


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.w, self.k = nn.Parameter(cresset.ones(1) * 3), cresset.ones(1) * 5
        self.register_buffer("c", cresset.ones(1) * 2, persistent=False)

    def forward(self, x, plus):
        return x + self.w if plus else x * self.c * self.k


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.n, self.unused = Scale(), nn.Linear(1, 1)

    def forward(self, x):
        return self.n(self.n(x, True) + 1, False) + self.n.w


class Count(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("n", cresset.zeros(1))

    def forward(self, x):
        self.n.add_(1)
        return x + self.n, {"x": x}


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = Count()

    def forward(self, x):
        y, more = self.c(x)
        return y * more["x"] + self.c.n


def paths(module):
    return [path for path, _ in module.named_modules()]


def lines(module):
    return [line.strip() for line in str(module.graph).strip().splitlines()[1:]]


def test_modules_and_graphs():
    mod, x = Twice(), cresset.rand(1)
    flat = unflatten(export(mod, (x,)))
    assert paths(flat) == ["", "n", "unused", "n@1"]
    assert lines(flat) == [
        "%x : [num_users=1] = placeholder[target=x]",
        "%n_w : [num_users=1] = get_attr[target=n.w]",
        "%n : [num_users=1] = call_module[target=n](args = (%x,), kwargs = {})",
        "%add_1 : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%n, 1), kwargs = {})",
        "%n_1 : [num_users=1] = call_module[target=n@1](args = (%add_1,), kwargs = {})",
        "%add_2 : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%n_1, %n_w), kwargs = {})",
        "return (add_2,)",
    ]
    assert lines(flat.n) == [
        "%x : [num_users=1] = placeholder[target=x]",
        "%w : [num_users=1] = get_attr[target=w]",
        "%add : [num_users=1] = call_function[target=torch.ops.aten.add.Tensor](args = (%x, %w), kwargs = {})",
        "return add",
    ]
    assert cresset.equal(flat(x), mod(x))
    assert flat.n.w is getattr(flat, "n@1").w and flat.n.w is not mod.n.w


def test_a_call_with_the_same_graph_is_the_same_module():
    class Same(nn.Module):
        def __init__(self):
            super().__init__()
            self.n = Scale()

        def forward(self, x):
            return self.n(self.n(self.n(x, True), False), True)

    x = cresset.rand(1)
    flat = unflatten(export(Same(), (x,)))
    assert paths(flat) == ["", "n", "n@1"]
    assert [n.target for n in flat.graph.nodes if n.op == "call_module"] == ["n", "n@1", "n"]
    assert cresset.equal(flat(x), Same()(x))


def test_one_module_at_two_paths():
    class Aliased(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(2, 2)
            self.b = self.a

        def forward(self, x):
            return self.b(self.a(x).relu())

    mod, x = Aliased(), cresset.rand(3, 2)
    program = export(mod, (x,))
    assert [list(dict(n.meta["nn_module_stack"]).values())[-1][0] for n in program.graph.nodes if n.op == "call_function"] == ["a", "", "b"]
    flat = unflatten(program)
    assert flat.a is not flat.b and flat.a.weight is flat.b.weight
    assert cresset.equal(flat(x), mod(x)) and mod.a is mod.b


def test_tensors_that_are_written_are_copies():
    mod, x = Counts(), cresset.rand(1)
    program = export(mod, (x,))
    flat = unflatten(program)
    assert [flat(x).item(), flat(x).item()] == [mod(x).item(), mod(x).item()]
    assert flat.c.n.item() == 2 and program.state_dict["c.n"].item() == 2  # the program's is the module's
    assert unflatten(export(Counts(), (x,)).run_decompositions())(x).item() == Counts()(x).item()


def test_gradients_reach_the_parameters():
    mod, x = Twice(), cresset.rand(1)
    flat = unflatten(export(mod, (x,)))
    flat(x).sum().backward()
    mod(x).sum().backward()
    assert cresset.equal(flat.n.w.grad, mod.n.w.grad) and mod.n.w.grad.item() == 11


def test_preserved_signatures():
    mod, x = Counts(), cresset.rand(1)
    program = export(mod, (x,), preserve_module_call_signature=("c",))
    signature = program.module_call_graph[1].signature
    assert program.module_call_graph[1].fqn == "c" and [a.name for a in signature.inputs] == ["x"] and [a.name for a in signature.outputs] == ["add", "x"]
    flat = unflatten(program)
    assert flat(x).item() == Counts()(x).item()

    class Other(nn.Module):
        n = cresset.zeros(1)

        def forward(self, x):
            return x * 7, {"x": x + 1}

    flat.set_submodule("c", Other())
    assert cresset.allclose(flat(x), x * 7 * (x + 1))


@pytest.mark.parametrize("decompose", [False, True])
def test_preserved_signature_of_several_calls(decompose):
    mod, x = Twice(), cresset.rand(1)
    program = export(mod, (x,), preserve_module_call_signature=("n",))
    flat = unflatten(program.run_decompositions() if decompose else program)
    assert paths(flat) == ["", "n", "unused"] and [n.target for n in flat.graph.nodes if n.op == "call_module"] == ["n", "n"]
    assert cresset.equal(flat(x), mod(x)) and cresset.equal(flat(x), mod(x))
    flat.n = Scale()
    flat.n.w = nn.Parameter(cresset.zeros(1))
    assert cresset.equal(flat(x), (x + 1) * 10)


def test_a_path_without_a_module():
    with pytest.raises(AttributeError, match="has no attribute `m`"):
        export(Twice(), (cresset.rand(1),), preserve_module_call_signature=("m",))
    assert not cresset.nn.modules.module._global_forward_pre_hooks and not cresset.nn.modules.module._global_forward_hooks


def test_sizes_that_inputs_have_only_multiples_of():
    class Half(nn.Module):
        def forward(self, x):
            return x[x.size(0) // 2 :]

    n = Dim("n", min=2, max=40)
    program = export(Half(), (cresset.rand(10),), dynamic_shapes=((2 * n,),))
    x = cresset.rand(14)
    assert cresset.equal(program.module()(x), x[7:]) and cresset.equal(unflatten(program)(x), x[7:])
    with pytest.raises(RuntimeError, match=r"Expected input at \*args\[0\].shape\[0\] to be of the form 2\*s0, but got 13"):
        program.module()(cresset.rand(13))
    with pytest.raises(RuntimeError, match=r"to be of the form 2\*s0 with s0 in \[2, 40\], but got 90"):
        program.module()(cresset.rand(90))


def test_other_structures_of_inputs():
    class Add(nn.Module):
        def forward(self, x, y):
            return x + y

    x = cresset.rand(2)
    program = export(Add(), (x, x))
    with pytest.raises(TypeError, match="There is no flat args adapter specified"):
        unflatten(program)(x, x, x)

    class First(FlatArgsAdapter):
        def adapt(self, target_spec, input_spec, input_args, metadata=None, obj=None):
            return input_args[: target_spec.num_leaves]

    assert cresset.equal(unflatten(program, First())(x, x, x), x + x)
    with pytest.raises(RuntimeError, match=r"Expected input at \*args\[0\].shape\[0\] to be equal to 2, but got 5"):
        unflatten(program)(cresset.rand(5), cresset.rand(5))


def test_signatures_that_cannot_be_cut_out():
    class Leaks(nn.Module):
        def forward(self, x):
            self.seen = x.sin()
            return x + 1

    class Reads(nn.Module):
        def __init__(self):
            super().__init__()
            self.m = Leaks()

        def forward(self, x):
            y = self.m(x)
            return y + self.m.seen

    with pytest.warns(UserWarning, match="was assigned during export"):
        program = export(Reads(), (cresset.rand(2),), preserve_module_call_signature=("m",))
    with pytest.raises(NotImplementedError, match="unflatten: sin of the module m is used outside of it and is no output of its call"):
        unflatten(program)


def test_keys_of_dicts_come_in_any_order():
    class Difference(nn.Module):
        def forward(self, x, *, k):
            return x["p"] - x["q"] * k[0]["r"]

    p, q, r = cresset.ones(1) * 5, cresset.ones(1), cresset.ones(1) * 3
    program = export(Difference(), ({"p": p, "q": q},), {"k": [{"r": r, "s": q}]})
    for module in (program.module(), unflatten(program)):
        assert module({"q": q, "p": p}, k=[{"s": q, "r": r}]).item() == 2.0
    with pytest.raises(ValueError, match="Trying to flatten user inputs with exported input tree spec"):
        program.module()({"q": q}, k=[{"s": q, "r": r}])


def test_names_of_ranges():
    shown = [str(Dim("a", min=low, max=high)) for low, high in ((None, None), (2, None), (2, 9), (3, 9))]
    assert shown == ["Dim('a', min=0)", "Dim('a')", "Dim('a', max=9)", "Dim('a', min=3, max=9)"]
