"""Programs that ask tensors for values: item(), and results whose size depends on values."""

import io
import operator

import pytest

import cresset as torch
from cresset.export import Dim, export, load, save
from cresset.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode


class Ones(torch.nn.Module):
    def forward(self, x, y):
        n = x.item()
        torch._check_is_size(n)
        torch._check(n <= 6)
        return y.sum() + torch.ones(n, 5).sum(), n, 2 * n + 1, y * n


class Chosen(torch.nn.Module):
    def forward(self, x):
        return x.nonzero() * 2, torch.masked_select(x, x > 0), x[x > 1].sum()


class Scaled(torch.nn.Module):
    def forward(self, x):
        v = x[0].item()
        return x * v, v


def same(found, wanted):
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted):
        assert torch.equal(a, b) if isinstance(b, torch.Tensor) else a == b


@pytest.mark.parametrize("decompose", [False, True])
def test_whole_numbers(decompose):
    program = export(Ones(), (torch.tensor(3), torch.ones(4)))
    program = program.run_decompositions() if decompose else program
    (u0,) = program.range_constraints
    assert str(u0) == "u0" and program.range_constraints[u0].lower == 0 and program.range_constraints[u0].upper == 6
    asked = next(n for n in program.graph.nodes if "val" in n.meta and n.op == "call_function")
    assert str(asked.target) == ("aten._local_scalar_dense.default" if decompose else "aten.item.default")
    for n in (0, 1, 2, 5, 6):
        same(program.module()(torch.tensor(n), torch.ones(4)), Ones()(torch.tensor(n), torch.ones(4)))
    with pytest.raises(RuntimeError, match="Runtime assertion failed for expression u0 <= 6 on node 'le'"):
        program.module()(torch.tensor(7), torch.ones(4))
    with pytest.raises(RuntimeError, match="expression u0 >= 0 on node 'ge'"):
        program.module()(torch.tensor(-1), torch.ones(4))


@pytest.mark.parametrize("decompose", [False, True])
def test_sizes_that_depend_on_values(decompose):
    program = export(Chosen(), (torch.tensor([1.0, 0.0, 2.0]),), dynamic_shapes={"x": {0: Dim("n", max=9)}})
    program = program.run_decompositions({}) if decompose else program
    assert {str(s): r.upper for s, r in program.range_constraints.items()} == {"s0": 9, "u0": 9, "u1": 9, "u2": 9}
    for x in (torch.zeros(4), torch.tensor([1.0, -1.0, 3.0, 0.0, 2.5]), torch.ones(1) * 3):
        same(program.module()(x), Chosen()(x))


@pytest.mark.parametrize("decompose", [False, True])
def test_floats(decompose):
    program = export(Scaled(), (torch.ones(3),))
    program = program.run_decompositions() if decompose else program
    x = torch.tensor([0.25, 2.0, -1.0])
    same(program.module()(x), Scaled()(x))


def test_files():
    for model, inputs in ((Ones(), (torch.tensor(3), torch.ones(4))), (Chosen(), (torch.tensor([2.0, 0.0]),)), (Scaled(), (torch.tensor([0.5, 3.0]),))):
        file = io.BytesIO()
        save(export(model, inputs), file)
        file.seek(0)
        same(load(file).module()(*inputs), model(*inputs))


def test_values_and_sizes_together():
    class Model(torch.nn.Module):
        def forward(self, x, y):
            n = x.item()
            torch._check_is_size(n)
            torch._check(n < y.size(0))
            return y[:n], y.new_zeros(n * y.size(0)), y[: x.item()]

    program = export(Model(), (torch.tensor(3), torch.randn(10)), dynamic_shapes={"x": None, "y": (Dim("m"),)})
    assert sum(str(n.target) == "aten.item.default" for n in program.graph.nodes) <= 2
    for n, size in ((3, 10), (7, 8), (0, 5)):
        y = torch.randn(size)
        same(program.module()(torch.tensor(n), y), Model()(torch.tensor(n), y))
    with pytest.raises(RuntimeError, match="Runtime assertion failed"):
        program.module()(torch.tensor(5), torch.randn(5))


def test_checks_name_the_numbers_to_try():
    class Model(torch.nn.Module):
        def forward(self, x):
            n = x.item()
            torch._check(n >= 200)
            torch._check(n - 1 <= 1000)
            torch._check(n != 300)
            if n > 100:  # follows from the checks
                return torch.zeros(n)
            return torch.ones(n)

    program = export(Model(), (torch.tensor(256),))
    (limits,) = program.range_constraints.values()
    assert limits.lower == 200 and program.module()(torch.tensor(299)).shape == (299,)
    for bad in (199, 300, 1002):
        with pytest.raises(RuntimeError, match="Runtime assertion failed"):
            program.module()(torch.tensor(bad))


def test_places_as_a_tuple():
    class Model(torch.nn.Module):
        def forward(self, x):
            rows, columns = torch.nonzero(x, as_tuple=True)
            return rows * 10 + columns, torch.zeros(rows.shape[0] + 1)

    program = export(Model(), (torch.ones(2, 3),), dynamic_shapes={"x": {0: Dim("n")}})
    x = torch.tensor([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
    same(program.module()(x), Model()(x))
    same(program.run_decompositions({}).module()(x), Model()(x))


def test_lists():
    class Model(torch.nn.Module):
        def forward(self, x):
            a, b = x.tolist()
            torch._check_is_size(a)
            torch._check_is_size(b)
            return torch.ones(a, b), b

    program = export(Model(), (torch.tensor([2, 4]),))
    same(program.module()(torch.tensor([3, 2])), (torch.ones(3, 2), 2))
    with pytest.raises(RuntimeError, match="Runtime assertion failed"):
        program.module()(torch.tensor([3, -2]))


def test_what_is_refused():
    class Branch(torch.nn.Module):
        def forward(self, x):
            return x + 1 if x.item() > 3 else x

    class Truth(torch.nn.Module):
        def forward(self, x):
            return x + 1 if x.item() else x

    class Tensors(torch.nn.Module):
        def forward(self, x):
            return x + 1 if x > 3 else x

    class One(torch.nn.Module):
        def forward(self, x):
            return torch.ones(4).view(x.item(), 2)

    for model in (Branch(), Truth(), Tensors(), One()):
        with pytest.raises(GuardOnDataDependentSymNode, match="Could not guard on data-dependent expression"):
            export(model, (torch.tensor(2),))

    class Impossible(torch.nn.Module):
        def forward(self, x):
            n = x.item()
            torch._check(n > 3)
            torch._check(n < 2)
            return torch.ones(n)

    with pytest.raises(RuntimeError):
        export(Impossible(), (torch.tensor(2),))


def test_assertions_are_operators():
    program = export(Ones(), (torch.tensor(3), torch.ones(4)))
    assert [n.target for n in program.graph.nodes if n.target in (operator.ge, operator.le)] == [operator.ge, operator.le]


class Branches(torch.nn.Module):
    def forward(self, pred, x, y):
        def first(x, y):
            b = x.item()
            torch._check(b >= 2)
            torch._check(b <= 5)
            return x - y

        return torch.cond(pred, first, lambda x, y: x + y, [x, y])


@pytest.mark.parametrize("decompose", [False, True])
def test_branches_ask_for_values(decompose):
    yes, no, y = torch.tensor(True), torch.tensor(False), torch.tensor([4])
    program = export(Branches(), (yes, torch.tensor([2]), y))
    program = program.run_decompositions() if decompose else program
    assert program.module()(yes, torch.tensor([3]), y).tolist() == [-1] and program.module()(no, torch.tensor([9]), y).tolist() == [13]
    with pytest.raises(RuntimeError, match="Runtime assertion failed for expression u0 <= 5"):
        program.module()(yes, torch.tensor([9]), y)


def test_passes_over_programs_with_values():
    from cresset._export.pass_base import _ExportPassBaseDeprecatedDoNotUse

    inputs = (torch.tensor(True), torch.tensor([2]), torch.tensor([4]))
    for model, given in ((Branches(), inputs), (Ones(), (torch.tensor(3), torch.ones(4))), (Chosen(), (torch.tensor([2.0, 0.0]),))):
        program = export(model, given)._transform_do_not_use(_ExportPassBaseDeprecatedDoNotUse())
        wanted = model(*given)
        found = program.module()(*given)
        same(*((x,) if isinstance(x, torch.Tensor) else x for x in (found, wanted)))


def test_values_that_only_checks_need():
    class Model(torch.nn.Module):
        def forward(self, x):
            torch._check(x.item() <= 5)
            return x + 1

    for program in (export(Model(), (torch.tensor(2),)), export(Model(), (torch.tensor(2),)).run_decompositions()):
        assert program.module()(torch.tensor(3)).item() == 4
        with pytest.raises(RuntimeError, match="Runtime assertion failed"):
            program.module()(torch.tensor(6))


def test_quotients():
    class Model(torch.nn.Module):
        def forward(self, x):
            return torch.ones(x.nonzero().shape[0] // 2)

    program = export(Model(), (torch.tensor([1.0, 1.0, 0.0]),))
    assert [program.module()(torch.tensor(x)).shape[0] for x in ([1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [1.0, 1.0, 1.0])] == [1, 0, 1]


def test_loaded_programs_check_too():
    file = io.BytesIO()
    save(export(Ones(), (torch.tensor(3), torch.ones(4))), file)
    file.seek(0)
    program = load(file)
    same(program.module()(torch.tensor(5), torch.ones(4)), Ones()(torch.tensor(5), torch.ones(4)))
    for n in (7, -1):
        with pytest.raises(RuntimeError, match="Runtime assertion failed for expression u0 [<>]= [06] on node"):
            program.module()(torch.tensor(n), torch.ones(4))
