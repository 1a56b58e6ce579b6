"""map, scan and associative_scan as one node for all steps: make_fx, export, passes and files. Numbers are PyTorch 2.13's, which also reads the files."""

import io
import zipfile

import pytest

import cresset
from cresset import nn
from cresset._export.pass_base import _ExportPassBaseDeprecatedDoNotUse
from cresset._higher_order_ops import associative_scan, map, scan
from cresset._higher_order_ops.utils import UnsupportedAliasMutationException
from cresset.export import Dim, export, load, save
from cresset.fx.experimental.proxy_tensor import make_fx
from cresset.testing import assert_close
from cresset.utils import _pytree as pytree

MODES = ("real", "fake", "symbolic")
W = cresset.tensor([2.0, -1.0], requires_grad=True)


def count(module, *names):
    """How many nodes of these operators, in all graphs."""
    return sum(str(n.target) in names for m in module.modules() if hasattr(m, "graph") for n in m.graph.nodes)


def table(rows, columns=2):
    """Numbers from -2 on."""
    return cresset.arange(float(rows * columns)).reshape(rows, columns) - 2


def gradients(function):
    """The gradients of all results by the arguments and W, as a function."""

    def run(*args):
        results = [x for x in pytree.tree_leaves(function(*args)) if x.requires_grad]
        return cresset.autograd.grad(results, [*(x for x in args if x.requires_grad), W], [cresset.ones_like(x) for x in results])

    return run


@pytest.mark.parametrize("mode", MODES)
def test_a_graph_holds_for_all_sizes(mode):
    ones = cresset.ones(3, 2)
    mapped = make_fx(lambda xs: map(lambda x: x + 1, xs), tracing_mode=mode)(ones)
    assert mapped(cresset.ones(4, 2)).tolist() == [[2.0, 2.0]] * 4
    assert "map_impl = torch.ops.higher_order.map_impl(body_graph_0, [xs_1], [])" in mapped.code
    assert "def forward(self, arg0_1):\n    add = torch.ops.aten.add.Tensor(arg0_1, 1);" in mapped.body_graph_0.code
    scanned = make_fx(lambda c, xs: scan(lambda c, x: (c + x, c * x), c, xs, dim=1, reverse=True), tracing_mode=mode)(cresset.ones(2), cresset.ones(2, 3))
    assert scanned(cresset.ones(2), table(2, 4))[1].tolist() == [[-2.0, -2.0, 0.0, 1.0], [26.0, 30.0, 24.0, 5.0]]
    assert "scan = torch.ops.higher_order.scan(scan_combine_graph_0, [c_1], [flip], ())" in scanned.code
    running = make_fx(lambda xs: associative_scan(cresset.mul, xs, 0), tracing_mode=mode)(ones)
    assert running(table(5)).tolist() == [[-2.0, -1.0], [0.0, -1.0], [0.0, -3.0], [0.0, -15.0], [0.0, -105.0]]
    assert count(running, "associative_scan") == 1


@pytest.mark.parametrize("mode", MODES)
def test_gradients_are_maps_and_scans(mode):
    x, y = table(3).requires_grad_(), cresset.tensor([1.0, 3.0], requires_grad=True)
    of_map = make_fx(gradients(lambda x, y: map(lambda a, b: (a * b).square() * W, x, y)), tracing_mode=mode, _allow_non_fake_inputs=True)(x, y)
    assert [v.tolist() for v in of_map(x, y)] == [[[-8.0, 18.0], [0.0, -18.0], [8.0, -54.0]], [32.0, -66.0], [8.0, 99.0]]
    expected = [[[-8.0, 18.0], [0.0, -18.0], [8.0, -54.0], [16.0, -90.0]], [96.0, -216.0], [24.0, 324.0]]
    assert [v.tolist() for v in of_map(table(4).requires_grad_(), y)] == expected and count(of_map, "map_impl") == 2
    of_scan = make_fx(gradients(lambda c, x: scan(lambda c, v: (c * v + W, c - v), c, x, reverse=True)), tracing_mode=mode, _allow_non_fake_inputs=True)(y, x)
    assert [v.tolist() for v in of_scan(y, x)] == [[3.0, 4.0], [[1.0, 6.0], [-5.0, -1.0], [0.0, 2.0]], [1.0, 2.0]]
    expected = [[13.0, 21.0], [[1.0, 39.0], [-15.0, -1.0], [5.0, 13.0], [2.0, 11.0]], [4.0, 6.0]]
    assert [v.tolist() for v in of_scan(y, table(4).requires_grad_())] == expected and count(of_scan, "scan") == 2
    for function in (lambda x: scan(lambda c, v: ((c[0] * v, c[1] + 1), c[0] + v), (W, cresset.tensor(0)), x)[1], lambda x: associative_scan(lambda a, b: a * b, x * W, 0)):
        recorded = make_fx(gradients(function), tracing_mode=mode, _allow_non_fake_inputs=True)(x)
        assert_close(recorded(table(6).requires_grad_()), gradients(function)(table(6).requires_grad_()))


def test_gradients_of_gradients_and_of_nested_functions():
    x, y = table(3).requires_grad_(), cresset.tensor([1.0, 3.0], requires_grad=True)

    def twice(x, y):
        result = map(lambda a, b: (a * b).sin() * W, x, y)
        found = cresset.autograd.grad(result, (x, y), cresset.ones_like(result), create_graph=True)
        return cresset.autograd.grad(found, (x, y, W), [cresset.ones_like(v) for v in found])

    assert_close(make_fx(twice)(x, y)(x.detach() + 1, y), twice((x.detach() + 1).requires_grad_(), y))

    def of_scan(x):
        found = cresset.autograd.grad(scan(lambda c, v: (c * v, c + v), x[0], x)[0], x, cresset.ones(2), create_graph=True)
        return cresset.autograd.grad(found, x, [cresset.ones(3, 2)])

    with pytest.raises(NotImplementedError, match="make_fx: gradients of gradients through scan are not recorded"):
        make_fx(of_scan)(x)

    def inner(c, b):
        return cresset.cond(c.sum() > 0, lambda c: c * W, lambda c: c.sin() + b, (c,))

    nested = gradients(lambda x, y: map(lambda a, b: map(lambda c: inner(c, b), a), x, y))
    recorded = make_fx(nested)(cresset.ones(3, 4, 2, requires_grad=True), y)
    other = (cresset.arange(40.0).reshape(5, 4, 2) % 3 - 1).requires_grad_()
    assert_close(recorded(other, y), nested(other, y))
    assert count(recorded, "map_impl") == 4


def test_gradients_through_cond():
    def function(p, x):
        return cresset.cond(p, lambda x: (x * W).sin(), lambda x: x.cos(), (x,))

    x = cresset.tensor([1.0, 3.0], requires_grad=True)
    recorded = make_fx(gradients(function))(cresset.tensor(True), x)
    assert count(recorded, "cond") == 2
    assert_close(recorded(cresset.tensor(True), x), gradients(function)(cresset.tensor(True), x))
    assert_close(recorded(cresset.tensor(False), x), (-x.sin().detach(), cresset.zeros(2)))


def test_functional_functions():
    def step(x, y):
        z = x + y
        z.add_(4)
        return z

    recorded = make_fx(cresset.func.functionalize(lambda xs, y: map(step, xs, y)))(cresset.ones(3, 2), cresset.ones(2))
    assert recorded(cresset.ones(5, 2), cresset.ones(2)).tolist() == [[6.0, 6.0]] * 5
    assert "add_." not in recorded.body_graph_0.code
    with pytest.raises(UnsupportedAliasMutationException, match="torch.map is mutating the input!"):
        make_fx(cresset.func.functionalize(lambda xs: map(lambda x: x.add_(1) + 1, xs)))(cresset.ones(3, 2))


class Steps(nn.Module):
    """Parameters in the functions."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(cresset.tensor([3.0, -1.0]))

    def forward(self, x):
        y = map(lambda v: (v * self.w, v.sum()), x)
        c, o = scan(lambda c, v: (c + v * self.w, c * v), cresset.zeros(2), x, reverse=True)
        return *y, c, o


class Nested(nn.Module):
    """A scan and a condition in each part; a result that is None."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(cresset.ones(2) * 3)

    def forward(self, x):
        def part(v):
            (c,), o = scan(lambda c, e: ((c[0] * e + self.w.sum(),), c[0] - e), (cresset.zeros(()),), v)
            return cresset.cond(v.sum() > 0, lambda v: v * self.w, lambda v: v - 1, (v,)), c, o, None

        return map(part, x)


class Running(nn.Module):
    """Running results of a function that uses a parameter."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(cresset.ones(2) * 2)

    def forward(self, x):
        return associative_scan(lambda a, b: a * b * self.w, x, 0), associative_scan(lambda a, b: (a[0] * b[0], a[1] + b[1]), (x, x * 2), 0)


class Numbers(nn.Module):
    """Numbers in the function that follow from sizes."""

    def forward(self, x):
        return map(lambda v: v.sum() * v.shape[0] + v.new_ones(v.shape[0] + 1).sum(), x)


def test_a_damaged_file_is_refused():
    file, damaged = io.BytesIO(), io.BytesIO()
    save(export(Steps(), (cresset.ones(3, 2),)), file)
    with zipfile.ZipFile(file) as archive, zipfile.ZipFile(damaged, "w") as other:
        for name in archive.namelist():
            other.writestr(name, archive.read(name).replace(b'"as_graph"', b'"as_grapes"'))
    damaged.seek(0)
    with pytest.raises(RuntimeError, match="an argument of the kind 'as_grapes' is not supported"):
        load(damaged)


def test_values_are_those_of_pytorch():
    program = export(Steps(), (cresset.ones(3, 2),), dynamic_shapes=({0: Dim("n", min=2)},))
    found = program.module()(cresset.arange(10.0).reshape(5, 2) - 3)
    assert found[0].tolist() == [[-9.0, 2.0], [-3.0, -0.0], [3.0, -2.0], [9.0, -4.0], [15.0, -6.0]]
    assert found[1].tolist() == [-5.0, -1.0, 3.0, 7.0, 11.0] and found[2].tolist() == [15.0, -10.0]
    assert found[3].tolist() == [[-72.0, 24.0], [-27.0, -0.0], [24.0, -20.0], [45.0, -24.0], [0.0, 0.0]]
    program = export(Numbers(), (cresset.ones(3, 4),), dynamic_shapes=({0: Dim("n", min=2), 1: Dim("m", min=2)},))
    assert program.module()(cresset.arange(10.0).reshape(2, 5)).tolist() == [56.0, 181.0]


@pytest.mark.parametrize(("kind", "dynamic"), [(Steps, True), (Nested, True), (Running, False), (Numbers, True)])
def test_programs_run_come_apart_are_recorded_again_and_come_back_from_files(kind, dynamic):
    module, example, sizes = kind(), cresset.ones(3, 2), {"x": {0: Dim("n", min=2)}} if dynamic else None
    program = export(module, (example,), dynamic_shapes=sizes)
    file = io.BytesIO()
    save(program, file)
    file.seek(0)
    again = export(program.module(), (example,), dynamic_shapes=sizes)
    names = ("map_impl", "scan", "associative_scan")
    assert count(again.graph_module, *names) == count(program.graph_module, *names) > 0
    for form in (program, program.run_decompositions(), again, load(file)):
        x = table(5 if dynamic else 3).requires_grad_()
        found, expected = (pytree.tree_leaves(f(x)) for f in (form.module(), module))
        assert_close([v for v in found if v is not None], [v for v in expected if v is not None])
        backward = [cresset.autograd.grad(sum(v.square().sum() for v in values if v is not None), x)[0] for values in (found, expected)]
        assert_close(*backward)


@pytest.mark.parametrize("kind", [Steps, Nested, Running])
def test_passes_go_through_the_functions(kind):
    class Sub(_ExportPassBaseDeprecatedDoNotUse):
        def call_operator(self, op, args, kwargs, meta):
            return super().call_operator(cresset.ops.aten.sub.Tensor if op is cresset.ops.aten.add.Tensor else op, args, kwargs, meta)

    module = export(kind(), (cresset.ones(3, 2),)).graph_module
    new = Sub()(module).graph_module
    assert count(new, "aten.add.Tensor") == 0 and count(new, "aten.sub.Tensor") == count(module, "aten.add.Tensor", "aten.sub.Tensor")
    assert [str(n.target) for n in new.graph.nodes if n.op == "call_function"] == [str(n.target) for n in module.graph.nodes if n.op == "call_function"]


class Branches(nn.Module):
    """Numbers in branches and loops that follow from sizes."""

    def forward(self, x):
        y = x.transpose(0, 1)
        y = cresset.cond(x.sum() > 0, lambda y: y.reshape(y.shape[0] * y.shape[1]) * 2, lambda y: (y * y.shape[1]).flatten(), (y,))
        return cresset.while_loop(lambda y: y.sum() < 99, lambda y: (y + cresset.arange(y.shape[0]) + 1,), (y,))


def test_numbers_in_branches_and_loops_follow_from_sizes():
    program = export(Branches(), (cresset.ones(3, 4),), dynamic_shapes=({0: Dim("n", min=2), 1: Dim("m", min=2)},))
    for form in (program, program.run_decompositions()):
        for x in (cresset.ones(2, 3), -cresset.ones(5, 2)):
            assert_close(form.module()(x), Branches()(x))

    class Outside(nn.Module):
        def forward(self, x, y):
            return cresset.cond(y.sum() > 0, lambda y: y * x.shape[0], lambda y: y + 1, (y,))

    with pytest.raises(cresset._dynamo.exc.UserError, match="a number that follows from s0, which is no size of a tensor that it gets"):
        export(Outside(), (cresset.ones(3), cresset.ones(2)), dynamic_shapes=({0: Dim("n", min=2)}, None))
