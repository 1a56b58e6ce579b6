"""What a program keeps of code around its operators: autocast, assertions, constants, and the kinds of its tensors. Expected values are those of PyTorch 2.13."""

import warnings

import pytest
import cresset
from cresset import nn
from cresset.export import Dim, export
from cresset.nn import functional as F
from cresset.utils._pytree import tree_leaves


class Calls(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def operators(program):
    return [str(n.target).removeprefix("aten.").removesuffix(".default") for n in program.graph.nodes if n.op == "call_function"]


def in_autocast(x):
    with cresset.autocast("cpu", dtype=cresset.bfloat16):
        product = x @ x
        with cresset.autocast("cpu", enabled=False):
            plain = product.float() @ x
        inside = cresset.einsum("ij,jk->ik", x, plain)  # the rule is that of an operator that it is made of
        loss = F.mse_loss(product, x)
    return product + x, product, plain, inside, loss


def test_casts_of_autocast_are_in_the_program():
    x = cresset.linspace(-1, 1, 16).reshape(4, 4)
    program = export(Calls(in_autocast), (x,))
    expected = in_autocast(x)
    assert [t.dtype for t in expected] == [cresset.float32, cresset.bfloat16, cresset.float32, cresset.bfloat16, cresset.float32]
    for each in (program, program.run_decompositions()):
        found = each.module()(x)
        assert all(a.dtype == b.dtype and cresset.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_a_product_under_autocast_has_its_casts_and_nothing_else():
    def f(x):
        with cresset.autocast("cpu", dtype=cresset.bfloat16):
            return x @ x

    assert operators(export(Calls(f), (cresset.ones(2, 2),))) == ["to.dtype", "to.dtype", "matmul"]


def test_assertions_are_no_dead_code():
    def f(x):
        cresset._assert_async((x > 0).all())
        cresset._assert_async((x < 5).all(), "too large")
        return x

    program = export(Calls(f), (cresset.ones(4),))
    assert operators(program) == ["gt.Scalar", "all", "_assert_async", "lt.Scalar", "all", "_assert_async.msg"]
    for each in (program, program.run_decompositions()):
        assert each.module()(cresset.ones(4)).tolist() == [1, 1, 1, 1]
        with pytest.raises(RuntimeError, match="too large"):
            each.module()(cresset.full((4,), 6.0))
        with pytest.raises(RuntimeError, match="Expected Tensor with single nonzero value, but got zero"):
            each.module()(-cresset.ones(4))


def test_numbers_in_front_of_tensors_have_values():
    x = cresset.tensor([[1.0, 2.0], [3.0, 4.0]])
    program = export(Calls(lambda x: F.triplet_margin_loss(x, x, x + 1)), (x,))
    assert program.constants == {}
    assert program.module()(x).item() == pytest.approx(0.0) and program.module()(x * 1).dtype == cresset.float32


class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Buffer(cresset.ones(3), persistent=False)
        self.kept = nn.Buffer(cresset.ones(3))
        self.number = cresset.ones(3)

    def forward(self, x):
        return x + self.hidden + self.kept + self.number + cresset.tensor([1.0, 2.0, 3.0])


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Inner()
        self.also = self.a.number

    def forward(self, x):
        return self.a(x) + self.also + cresset.tensor([5.0, 5.0, 5.0])


def test_tensors_of_the_programs_module_are_of_the_same_kinds():
    model = Outer()
    program = export(model, (cresset.zeros(3),))
    assert [s.target for s in program.graph_signature.input_specs] == ["a.hidden", "a.kept", "also", "a.lifted_tensor_0", "lifted_tensor_1", None]
    assert set(program.constants) == {"also", "a.number", "a.lifted_tensor_0", "lifted_tensor_1", "a.hidden"}
    for each in (program, program.run_decompositions()):
        module = each.module()
        assert list(module.state_dict()) == ["a.kept"] and sorted(n for n, _ in module.named_buffers()) == ["a.hidden", "a.kept"]
        module.load_state_dict(model.state_dict())
        assert module(cresset.zeros(3)).tolist() == [10.0, 11.0, 12.0]


class Keywords(nn.Module):
    def forward(self, a, b, one, two):
        return a.sum() + b.sum() + one.sum() - two.sum()


@pytest.mark.parametrize("shapes", [(None, {0: "b"}, {0: "one"}, None), {"a": None, "b": {0: "b"}, "one": {0: "one"}, "two": None}])
def test_dynamic_shapes_go_by_the_order_of_forward(shapes):
    named = lambda spec: None if spec is None else {d: Dim(name) for d, name in spec.items()}  # noqa: E731
    shapes = {k: named(v) for k, v in shapes.items()} if isinstance(shapes, dict) else tuple(map(named, shapes))
    square = cresset.ones(4, 4)
    module = export(Keywords(), (square, square), {"two": square, "one": square}, dynamic_shapes=shapes).module()
    assert module(square, cresset.ones(7, 4), two=square, one=cresset.ones(9, 4)).item() == 16 + 28 + 36 - 16
    with pytest.raises(RuntimeError, match=r"Expected input at \*\*kwargs\['two'\].shape\[0\] to be equal to 4, but got 5"):
        module(square, square, two=cresset.ones(5, 4), one=square)


def test_cond_warns_of_a_condition_that_is_a_number():
    f = lambda p, x: cresset.cond(p, lambda x: x.sin(), lambda x: x.cos(), (x,))  # noqa: E731
    with pytest.warns(UserWarning, match="Pred is a Python constant. When used with torch.cond, it specializes on one of the branches."):
        assert operators(export(Calls(f), (True, cresset.ones(2)))) == ["sin"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(tree_leaves(f(True, cresset.ones(2)))) == 1


def unchecked_calls():
    linalg = cresset.linalg
    matrix = cresset.tensor([[4.0, 1.0, 0.0, 0.0], [1.0, 3.0, 1.0, 0.0], [0.0, 1.0, 5.0, 1.0], [0.0, 0.0, 1.0, 2.0]])
    vector = cresset.tensor([0.1, 0.2, 0.3, 0.4])
    return {
        "inv": (lambda a, b: linalg.inv(a), matrix, vector, ["linalg_inv"]),
        "inverse": (lambda a, b: a.inverse(), matrix, vector, ["inverse"]),
        "solve": (lambda a, b: linalg.solve(a, b), matrix, vector, ["linalg_solve"]),
        "solve right": (lambda a, b: linalg.solve(a, a, left=False), matrix, vector, ["linalg_solve"]),
        "cholesky": (lambda a, b: linalg.cholesky(a, upper=True), matrix, vector, ["linalg_cholesky"]),
        "lu_factor": (lambda a, b: linalg.lu_factor(a), matrix, vector, ["linalg_lu_factor"]),
        "ldl_factor": (lambda a, b: linalg.ldl_factor(a), matrix, vector, ["linalg_ldl_factor"]),
        "matrix_power": (lambda a, b: linalg.matrix_power(a, -2), matrix, vector, ["linalg_matrix_power"]),
        "tensorinv": (lambda a, b: linalg.tensorinv(a, ind=1), matrix.reshape(4, 2, 2), vector, ["linalg_tensorinv"]),
        "tensorsolve": (lambda a, b: linalg.tensorsolve(a, b), matrix.reshape(2, 2, 4), vector.reshape(2, 2), ["linalg_tensorsolve"]),
        "quantile": (lambda a, b: a.quantile(b, dim=1), matrix, vector, ["quantile"]),
        "istft": (lambda a, b: cresset.istft(a.to(cresset.complex64), 6, window=cresset.ones(6)), matrix, vector, ["to.dtype", "ones", "istft"]),
    }


@pytest.mark.parametrize("name", unchecked_calls())
def test_operators_that_check_values_are_exported(name):
    """torch.export.export gives the same operators for all of these."""
    function, a, b, expected = unchecked_calls()[name]
    program = export(Calls(function), (a, b))
    assert [o for o in operators(program) if "getitem" not in o] == expected
    wanted = tree_leaves(function(a, b))
    for each in (program, program.run_decompositions()):
        for x, y in zip(tree_leaves(each.module()(a, b)), wanted, strict=True):
            cresset.testing.assert_close(x, y)
    values = [n.meta["val"] for n in next(n for n in program.graph.nodes if n.op == "output").args[0]]
    assert [(v.shape, v.dtype, v.stride()) for v in values] == [(t.shape, t.dtype, t.stride()) for t in wanted]


def test_values_are_still_checked_where_there_are_some():
    program = export(Calls(lambda a: cresset.linalg.inv(a)), (cresset.eye(2),))
    with pytest.raises(cresset.linalg.LinAlgError, match="linalg.inv: The diagonal element 1 is zero"):
        program.module()(cresset.zeros(2, 2))
    with pytest.raises(RuntimeError, match=r"quantile\(\) q values must be in the range \[0, 1\]"):
        export(Calls(lambda a, q: a.quantile(q)), (cresset.ones(3), cresset.tensor(0.5))).module()(cresset.ones(3), cresset.tensor(1.5))
