"""Numbers that follow from sizes: rules that export finds, and errors where Dims do not fit the program."""

import io
import math

import pytest

import cresset as torch
from cresset._dynamo.exc import UserError
from cresset._subclasses.fake_tensor import FakeTensorMode
from cresset.export import Dim, default_decompositions, export, load, save
from cresset.export._sizes import fit, fit_float
from cresset.export._swap import _swap_modules
from cresset.export.dynamic_shapes import refine_dynamic_shapes_from_suggested_fixes


class Scales(torch.nn.Module):
    def forward(self, x):
        n = x.shape[0]
        return x / torch.sym_sqrt(n), x * (1 / math.sqrt(n + 2)), x * (n / 4.0), x + 1.5 / n


def test_floats_that_follow_from_sizes():
    program = export(Scales(), (torch.ones(16, 4),), dynamic_shapes={"x": {0: Dim("n")}})
    buffer, y = io.BytesIO(), torch.arange(20.0).reshape(5, 4)
    save(program, buffer)
    buffer.seek(0)
    for module in (program.module(), program.run_decompositions().module(), load(buffer).module()):
        found = module(y)
        for a, b in zip(found, (y / 5**0.5, y / 7**0.5, y * 1.25, y + 0.3)):
            torch.testing.assert_close(a, b)


def test_rules():
    samples = [{"a": a, "b": b} for a, b in ((6, 4), (7, 4), (15, 4), (6, 5), (6, 11), (9, 3))]
    assert str(fit(samples, [2 * s["a"] * s["b"] + s["a"] - 3 for s in samples])) == "2*a*b + a - 3"
    assert fit(samples, [s["a"] ** 2 + s["b"] ** 2 for s in samples]) is None
    assert str(fit_float(samples, [math.sqrt(s["a"] / 2) for s in samples])) == "OpaqueUnaryFn_sqrt(FloatTrueDiv(a, 2))"
    assert str(fit_float(samples, [3 / s["b"] for s in samples])) == "1/(FloatTrueDiv(b, 3))"
    assert fit_float(samples, [math.log(s["a"]) for s in samples]) is None


class Parity(torch.nn.Module):
    def forward(self, x):
        return x * 2 if x.size(0) % 2 == 0 else x * 0


class Logarithm(torch.nn.Module):
    def forward(self, x):
        return x * math.log(x.shape[0])


def test_numbers_without_a_rule():
    program = export(Parity(), (torch.ones(4),), dynamic_shapes={"x": {0: Dim.DYNAMIC}})
    assert program.module()(torch.ones(6)).tolist() == [2.0] * 6
    with pytest.raises(RuntimeError, match=r"of the form 2\*s0, but got 5"):
        program.module()(torch.ones(5))
    with pytest.raises(UserError, match="does not follow from the sizes by a rule"):
        export(Logarithm(), (torch.ones(4),), dynamic_shapes={"x": {0: Dim.DYNAMIC}})
    assert export(Logarithm(), (torch.ones(4),), dynamic_shapes={"x": {0: Dim.AUTO}}).range_constraints == {}


def test_sizes_that_others_follow_from_and_that_are_one_number():
    class Both(torch.nn.Module):
        def forward(self, x, y):
            return x.reshape([-1]) + y

    n = Dim("n", min=6)
    with pytest.raises(UserError) as caught:
        export(Both(), (torch.ones(6, 2), torch.ones(12)), dynamic_shapes={"x": (n - 6, 2), "y": (n,)})
    text = str(caught.value)
    assert text.startswith("Specializations unexpectedly required (n)!") and "for n - 6 " in text and "value of 6" in text and text.endswith("n = 12")


def test_fakes_whose_device_was_set():
    with FakeTensorMode(), torch.device("meta"):
        x, linear = torch.rand(5, 2, 2), torch.nn.Linear(2, 2)
    for tensor in (x, *linear.parameters()):
        tensor.requires_grad = False
        tensor.fake_device = torch.device("cuda:0")
    program = export(linear, (x,))
    assert {n.meta["val"].device for n in program.graph.nodes if "val" in n.meta} == {torch.device("cuda:0")} == {x.device}


def test_constants_require_no_gradients():
    class Constant(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.ones(2, requires_grad=True)

        def forward(self, x):
            return x * self.scale

    scale = export(Constant(), (torch.ones(2),)).module().scale
    assert type(scale) is torch.Tensor and not scale.requires_grad


class Constants(torch.nn.Module):
    def forward(self, x):
        n = x.shape[0]
        return torch.tensor(n) + torch.tensor([[n * 2, 3], [n // 2, 0]]), torch.tensor(n / 3.0)


def test_constant_tensors_that_follow_from_sizes():
    program = export(Constants(), (torch.ones(4),), dynamic_shapes={"x": {0: Dim("n")}})
    assert not program.constants
    buffer = io.BytesIO()
    save(program, buffer)
    buffer.seek(0)
    for module in (program.module(), program.run_decompositions().module(), load(buffer).module()):
        for n in (5, 8):
            whole, third = module(torch.ones(n))
            assert whole.tolist() == [[3 * n, n + 3], [n + n // 2, n]]
            torch.testing.assert_close(third, torch.tensor(n / 3.0))

    class Value(torch.nn.Module):
        def forward(self, x):
            return torch.tensor([x.item(), 2])

    assert export(Value(), (torch.tensor(4),)).module()(torch.tensor(9)).tolist() == [9, 2]


class Half(torch.nn.Module):
    def forward(self, x):
        return x[: round(x.shape[0] / 2.0)]


@pytest.mark.parametrize(("least", "most"), [(5, 10), (None, None), (5, 30)])
def test_rounded_quotients(least, most):
    program = export(Half(), (torch.ones(8),), dynamic_shapes={"x": {0: Dim("n", min=least, max=most)}})
    assert [n.target for n in program.graph.nodes if n.target is round] == [round]
    for module in (program.module(), program.run_decompositions().module()):
        assert [len(module(torch.ones(n))) for n in range(5, 11)] == [2, 3, 4, 4, 4, 5]


def test_sums_of_products():
    class Repeated(torch.nn.Module):
        def forward(self, x, y):
            return torch.cat([x, x]).repeat(y.shape[0]).shape[0] + x.shape[0]

    program = export(Repeated(), (torch.ones(6), torch.ones(4)), dynamic_shapes={"x": (Dim("a"),), "y": (Dim("b"),)})
    assert program.module()(torch.ones(5), torch.ones(3)) == 35


def test_all_violations_are_said_at_once():
    class Flat(torch.nn.Module):
        def forward(self, w, x, y, z):
            return w.reshape([-1]) + x, y + z

    names = {"w": [Dim("w0"), Dim("w1")], "x": [Dim("x0")], "y": [Dim("y0")], "z": [Dim("z0")]}
    with pytest.raises(UserError) as caught:
        export(Flat(), (torch.ones(3, 4), torch.ones(12), torch.ones(4), torch.ones(4)), dynamic_shapes=names)
    assert [line.strip() for line in str(caught.value).partition("Suggested fixes:\n")[2].splitlines()[:4]] == ["w0 = 3", "w1 = 4", "x0 = 12", "z0 = y0"]


def test_equal_names_are_one_size():
    class Product(torch.nn.Module):
        def forward(self, x, y):
            return x @ y

    inputs = torch.ones(10, 10), torch.ones(10, 10)
    with pytest.raises(UserError, match=r"Found different definitions Dim\(.*min=3\) and Dim\(.*max=12\) for the same symbolic dimension"):
        export(Product(), inputs, dynamic_shapes={"x": (None, Dim("C", min=3)), "y": (Dim("C", max=12), None)})
    program = export(Product(), inputs, dynamic_shapes={"x": (None, Dim("C", min=3)), "y": (Dim("C", min=3), None)})
    assert program.module()(torch.ones(10, 4), torch.ones(4, 10)).sum() == 400


def test_a_spec_that_lacks_the_list_of_arguments():
    class First(torch.nn.Module):
        def forward(self, x):
            return x["k"][0]

    with pytest.raises(UserError, match="maybe you just forgot to enclose `dynamic_shapes` in a list/tuple"):
        export(First(), ({"k": [torch.ones(4)]},), dynamic_shapes={"k": [Dim("n")]})


def test_values_that_checks_say_to_be_equal():
    class Equal(torch.nn.Module):
        def forward(self, a, b, c, y):
            whole, one, two = a.item(), b.item(), c.item()
            torch._check(whole == (one + two))
            return y * 2 if two + one == whole else y + 3

    program = export(Equal(), (torch.tensor(6), torch.tensor(3), torch.tensor(3), torch.ones(1)))
    assert program.module()(torch.tensor(7), torch.tensor(5), torch.tensor(2), torch.ones(1)).item() == 2
    with pytest.raises(RuntimeError, match="u0 == u1 \\+ u2"):
        program.module()(torch.tensor(7), torch.tensor(5), torch.tensor(3), torch.ones(1))


def test_composite_operators_of_libraries_are_in_the_table():
    class Own(torch.nn.Module):
        def forward(self, x):
            return torch.ops.table_test.both(x) + 1

    with torch.library._scoped_library("table_test", "FRAGMENT") as library:
        before = len(default_decompositions())
        library.define("both(Tensor x) -> Tensor")
        library.impl("both", lambda x: x.sin().cos(), "CompositeImplicitAutograd")
        program, table = export(Own(), (torch.ones(3),)), default_decompositions()
        assert len(table) == before + 1
        names = [str(n.target) for n in program.run_decompositions().graph.nodes if n.op == "call_function"]
        assert names == ["aten.sin.default", "aten.cos.default", "aten.add.Tensor"]
        del table[torch.ops.table_test.both.default]
        names = [str(n.target) for n in program.run_decompositions(table).graph.nodes if n.op == "call_function"]
        assert names == ["table_test.both.default", "aten.add.Tensor"]


def test_example_inputs_in_another_order():
    class Sum(torch.nn.Module):
        def forward(self, *, x, y):
            return x + 2 * y

    program = export(Sum(), (), {"y": torch.ones(3), "x": torch.ones(3)})
    program.example_inputs = (), {"x": torch.zeros(3), "y": torch.ones(3)}
    assert list(program.example_inputs[1]) == ["y", "x"]


class Narrow(torch.nn.Module):
    def forward(self, x, y):
        if x.shape[0] >= 6 and y.shape[0] <= 16:
            return x * 2.0, y + 1
        return x, y


class Linked(torch.nn.Module):
    def forward(self, x, y):
        return x + y[4:]


class Three(torch.nn.Module):
    def forward(self, x, y, z):
        return x + y + z[2:]


class Threes(torch.nn.Module):
    def forward(self, x):
        return x.reshape([-1, 3]) if x.shape[0] >= 9 else x


class Constant(torch.nn.Module):
    def forward(self, x, y, z):
        return x + y[1:] + z[2:], x @ torch.ones(4, 4)


@pytest.mark.parametrize(
    ("module", "sizes", "shapes", "fixes", "sized"),
    [
        (Narrow, (16, 12), {"x": (Dim("a"),), "y": (Dim("b"),)}, ["a = Dim('a', min=6)", "b = Dim('b', max=16)"], "{s0: VR[6, int_oo], s1: VR[0, 16]}"),
        (Linked, (6, 10), {"x": (Dim("a"),), "y": (Dim("b"),)}, ["b = a + 4"], "{s0: VR[0, int_oo]}"),
        (Threes, (15,), ((Dim("a"),),), ["_a = Dim('_a', min=3)", "a = 3*_a"], "{s0: VR[3, int_oo]}"),
        (Three, (4, 4, 6), {"x": (Dim("a"),), "y": (Dim("b"),), "z": (Dim("c"),)}, ["b = a", "c = a + 2"], "{s0: VR[0, int_oo]}"),
        (Constant, (4, 5, 6), (lambda d: {"x": (d,), "y": (d + 1,), "z": (d + 2,)})(Dim("a", max=16)), ["a = 4"], "{}"),
    ],
)
def test_suggested_fixes(module, sizes, shapes, fixes, sized):
    inputs = tuple(torch.ones(n) for n in sizes)
    with pytest.raises(UserError) as caught:
        export(module(), inputs, dynamic_shapes=shapes)
    assert [line.strip() for line in str(caught.value).partition("Suggested fixes:\n")[2].splitlines()[: len(fixes)]] == fixes
    refined = refine_dynamic_shapes_from_suggested_fixes(str(caught.value), shapes)
    assert str(export(module(), inputs, dynamic_shapes=refined).range_constraints) == sized


def test_sizes_that_are_linked_vary_together():
    program = export(Linked(), (torch.ones(6, 4), torch.ones(10, 4)), dynamic_shapes={"x": (Dim.AUTO, Dim.AUTO), "y": (Dim.AUTO, Dim.DYNAMIC)})
    assert program.module()(torch.ones(2, 3), torch.ones(6, 3)).shape == (2, 3)
    with pytest.raises(RuntimeError, match=r"to be equal to s0 \+ 4 = 6, but got 7"):
        program.module()(torch.ones(2, 3), torch.ones(7, 3))


def test_structures_of_dynamic_shapes():
    class Nested(torch.nn.Module):
        def forward(self, x):
            return x["k"][0] + x["k"][1]

    inputs, n = ({"k": [torch.ones(4), torch.ones(4)]},), Dim("n")
    for shapes, words in [
        (({"k": [n, n]},), r"Unexpected input tensor shape .* specified at `dynamic_shapes\[0\]\['k'\]\[0\]` \(expected either a list/tuple"),
        (({"k": ((n,), (n,))},), r"`inputs\[0\]\['k'\]` is a <class 'list'>, but `dynamic_shapes\[0\]\['k'\]` is a <class 'tuple'>"),
        (({"k": n},), r"`inputs\[0\]\['k'\]` is a <class 'list'>, but `dynamic_shapes\[0\]\['k'\]` is not"),
    ]:
        with pytest.raises(UserError, match=words):
            export(Nested(), inputs, dynamic_shapes=shapes)
    export(Nested(), inputs, dynamic_shapes=({"k": [(n,), (n,)]},))


def test_operators_inside_of_a_users_decomposition_stay_whole():
    class Affine(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 5)

        def forward(self, x):
            return self.linear(x)

    def doubled(x, weight, bias):
        return torch.matmul(x, weight.T) + 2 * bias

    program, name = export(Affine(), (torch.ones(2, 3, 4),)), torch.ops.aten.linear.default
    targets = lambda table: [str(n.target) for n in program.run_decompositions(table).graph.nodes if n.op == "call_function"]  # noqa: E731
    assert targets({name: doubled}) == ["aten.permute.default", "aten.matmul.default", "aten.mul.Tensor", "aten.add.Tensor"]
    table = default_decompositions()
    table[name] = doubled
    assert "aten.matmul.default" not in targets(table)


def test_programs_of_graph_modules_say_where_the_code_was():
    class Affine(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 5)

        def forward(self, x, *, k):
            return {"a": self.linear(x).cos() + k["z"]}

    inputs = (torch.ones(2, 3, 4),), {"k": {"z": torch.ones(5)}}
    program = export(Affine(), *inputs)
    again = export(program.module(), *inputs)
    for key in ("stack_trace", "nn_module_stack", "torch_fn"):
        assert [n.meta.get(key) for n in again.graph.nodes] == [n.meta.get(key) for n in program.graph.nodes]
    assert torch.equal(again.module()(*inputs[0], **inputs[1])["a"], program.module()(*inputs[0], **inputs[1])["a"])


def test_modules_are_exchanged():
    class Half(torch.nn.Module):
        def forward(self, x, *, y):
            return {"sum": x + y}

    class Whole(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.part = Half()

        def forward(self, x):
            return self.part(x, y=x * 2)["sum"] + 1

    class Other(Half):
        def forward(self, x, *, y):
            return {"sum": x - y}

    x = torch.ones(3)
    program = export(Whole(), (x,), preserve_module_call_signature=("part",))
    swapped = _swap_modules(program, {"part": Other()})
    assert swapped(x).tolist() == torch.fx.Interpreter(swapped).run(x).tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="does not keep the signature of 'other'"):
        _swap_modules(program, {"other": Other()})
