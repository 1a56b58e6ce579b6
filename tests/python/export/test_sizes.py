"""Numbers that follow from sizes: rules that export finds, and errors where Dims do not fit the program."""

import io
import math

import pytest

import cresset as torch
from cresset._dynamo.exc import UserError
from cresset.export import Dim, default_decompositions, export, load, save
from cresset.export._sizes import fit, fit_float


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
