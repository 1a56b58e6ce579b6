"""Activations that write and those that do not, functional graphs, decompositions, and what goes with them. PyTorch 2.13 makes the same of these
functions."""

import pytest

import cresset
from cresset import _C, jit
from cresset.nn import functional as F

ACTIVATIONS = [F.celu, F.elu, F.hardsigmoid, F.hardswish, F.hardtanh, F.leaky_relu, F.relu, F.relu6, F.rrelu, F.selu, F.silu]


def kinds(graph):
    return [n.kind() for n in graph.nodes()]


def scripted(function):
    function = jit.script(function)
    _C._jit_pass_inline(function.graph)
    _C._jit_pass_constant_propagation(function.graph)
    return function


@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda f: f.__name__)
def test_activations_both_ways(activation):
    def function(x):
        y = x + 1
        return activation(y)

    name = f"aten::{activation.__name__}"
    f = scripted(function)
    assert name in kinds(f.graph)
    assert _C._jit_pass_functional_to_inplace_activation(f.graph)
    assert f"{name}_" in kinds(f.graph) and name not in kinds(f.graph)
    x = cresset.tensor([[-3.0, -0.5], [0.25, 4.0]])
    assert cresset.allclose(f(x), function(x))
    assert _C._jit_pass_inplace_to_functional_activation(f.graph)
    assert name in kinds(f.graph) and f"{name}_" not in kinds(f.graph)
    assert cresset.allclose(f(x), function(x))


def test_what_others_see_is_not_written():
    def view(x):
        return cresset.relu(x[0])

    def used_again(x):
        y = x + 1
        return cresset.relu(y) + y

    def argument(x):
        return cresset.relu(x)

    def any_dtype(x):
        return cresset.sigmoid(x + 1)

    for function in (view, used_again, argument, any_dtype):
        assert not _C._jit_pass_functional_to_inplace_activation(scripted(function).graph), function.__name__


def test_what_runs_more_often_than_its_operand_is_made_does_not_write_it():
    def function(x, n: int):
        y = x + 1
        z = x
        for _ in range(n):
            z = F.silu(y)
        return z

    f = scripted(function)
    assert not _C._jit_pass_functional_to_inplace_activation(f.graph)


def test_functional_graphs():
    def function(x, y, z):
        x = x + 1
        y = y + 1
        z = z + 1
        z.add_(2)
        z = z * z
        y = y * z
        if y < 2:
            y = y + 5
        return x + y + z

    f = jit.script(function)
    expected = f(*map(cresset.tensor, (1.0, 2.0, 3.0)))
    assert _C._jit_pass_create_functional_graphs(f.graph)
    assert [k for k in kinds(f.graph) if k != "prim::Constant"] == ["aten::add", "aten::add_", "prim::FunctionalGraph", "aten::add"]
    inner = f.graph.findNode("prim::FunctionalGraph").g("Subgraph")
    assert sorted(k for k in kinds(inner) if k != "prim::Constant") == [
        "aten::Bool", "aten::add", "aten::add", "aten::add", "aten::lt", "aten::mul", "aten::mul", "prim::If",
    ]  # fmt: skip
    assert f(*map(cresset.tensor, (1.0, 2.0, 3.0))) == expected
    assert _C._jit_pass_inline_functional_graphs(f.graph)
    assert "prim::FunctionalGraph" not in kinds(f.graph)
    assert f(*map(cresset.tensor, (1.0, 2.0, 3.0))) == expected


@pytest.mark.parametrize(("count", "grouped"), [(5, False), (6, True)])
def test_small_groups_stay(count, grouped):
    lines = "".join(f"  %a{i + 1} : Tensor = aten::relu(%a{i})\n" for i in range(count))
    graph = _C.parse_ir(f"graph(%a0 : Tensor):\n{lines}  %r : Tensor = aten::neg(%a{count})\n  return (%r)\n")
    assert _C._jit_pass_create_functional_graphs(graph) == grouped
    assert kinds(graph) == (["prim::FunctionalGraph", "aten::neg"] if grouped else ["aten::relu"] * count + ["aten::neg"])


@pytest.mark.parametrize("side", [0, 1])
def test_products_with_one_matrix_become_one(side):
    def left(a, b):
        return [cresset.mm(a, b[0]), cresset.mm(a, b[1]), cresset.mm(a, b[2]), cresset.mm(a, b[3]),
                cresset.mm(a, b[4]), cresset.mm(a, b[5]), cresset.mm(a, b[6]), cresset.mm(a, b[7])]  # fmt: skip

    def right(a, b):
        return [cresset.mm(b[0], a), cresset.mm(b[1], a), cresset.mm(b[2], a), cresset.mm(b[3], a),
                cresset.mm(b[4], a), cresset.mm(b[5], a), cresset.mm(b[6], a), cresset.mm(b[7], a)]  # fmt: skip

    function = right if side else left
    f = jit.script(function)
    assert _C._jit_pass_batch_mm(f.graph)
    assert "aten::mm" not in kinds(f.graph)
    assert f.graph.findNode("prim::MMBatchSide").i("side") == side
    a, b = cresset.randn(3, 3), cresset.randn(8, 3, 3)
    for got, expected in zip(f(a, b), function(a, b), strict=True):
        assert cresset.allclose(got, expected, atol=1e-6)


def test_products_of_other_sizes_are_made_one_by_one():
    graph = _C.parse_ir("graph(%a : Tensor, %b : Tensor, %c : Tensor):\n  %x : Tensor, %y : Tensor = prim::MMBatchSide[side=0](%a, %b, %c)\n  return (%x, %y)\n")
    f = _C._create_function_from_graph("f", graph)
    a, b, c = cresset.randn(2, 3), cresset.randn(3, 4), cresset.randn(3, 1)
    x, y = f(a, b, c)
    assert cresset.equal(x, a @ b) and cresset.equal(y, a @ c)


def var_all(x):
    return cresset.var(x, unbiased=True)


def var_biased(x):
    return cresset.var(x, unbiased=False)


def var_dim(x):
    return cresset.var(x, [0], unbiased=True, keepdim=True)


def var_correction(x):
    return cresset.var(x, [0, 1], correction=0)


def var_of_all_dims(x):
    return cresset.var(x, None, correction=3, keepdim=True)


@pytest.mark.parametrize("dtype", [cresset.float64, cresset.complex128])
@pytest.mark.parametrize("function", [var_all, var_biased, var_dim, var_correction, var_of_all_dims])
def test_decompositions_of_var(function, dtype):
    f = jit.script(function)
    graph = f.graph.copy()
    assert _C._jit_pass_run_decompositions(graph)
    assert graph.findNode("aten::var") is None
    x = cresset.randn(3, 4, dtype=dtype)
    got = _C._create_function_from_graph("f", graph)(x)
    assert got.dtype == cresset.float64 and cresset.allclose(got, function(x))


def test_registered_decompositions():
    @jit.script
    def square(x):
        return cresset.square(x)

    @jit.script
    def by_pow(x):
        return cresset.pow(x, 2)

    jit._register_decomposition(cresset.ops.aten.square.default, by_pow.graph)
    assert _C._jit_pass_run_decompositions(square.graph)
    assert [k for k in kinds(square.graph) if k != "prim::Constant"] == ["aten::pow"]
    assert square(cresset.tensor([3.0])).tolist() == [9.0]
    with pytest.raises(RuntimeError, match="a graph with 2 inputs and 1 outputs was required, as aten::pow.Tensor_Scalar has; this one has 1 and 1"):
        jit._register_decomposition(cresset.ops.aten.pow.Tensor_Scalar, by_pow.graph)
    with pytest.raises(RuntimeError, match="an operator that writes nothing was required"):
        jit._register_decomposition(cresset.ops.aten.square_.default, by_pow.graph)
    with pytest.raises(TypeError, match="an overload of an operator was required"):
        jit._register_decomposition(cresset.ops.aten.square, by_pow.graph)


def test_normal_forms():
    def rsub(x, y):
        return cresset.rsub(y, x), cresset.rsub(x, 3)

    def same(x: bool, y: bool):
        return x is True, False is x, x is y, x is not y

    assert kinds(jit.script(rsub).graph).count("aten::sub") == 1
    assert [k for k in kinds(jit.script(same).graph) if k.startswith("aten")] == ["aten::eq", "aten::eq", "aten::eq", "aten::ne"]
    x, y = cresset.tensor([1, 2]), cresset.tensor([5, 7])
    assert [t.tolist() for t in jit.script(rsub)(x, y)] == [[-4, -5], [2, 1]]
    assert jit.script(same)(True, False) == (True, False, False, True)


def test_shapes_without_dtypes():
    def function(x, y, weight, bias):
        c = cresset.cat([x, x])
        n = cresset.embedding(c, y)
        return n.mul_(bias), cresset.conv2d(weight, weight, bias), x[y]

    graph = jit.script(function).graph
    for value, sizes in zip(graph.inputs(), ([5, 8], [3, 2], [2, 2, 1, 1])):
        value.setType(value.type().with_sizes(sizes))
    _C._jit_pass_propagate_shapes_on_graph(graph)

    def sizes(kind):
        found = graph.findNode(kind).output().type()
        return found.sizes(), found.dtype()

    assert sizes("aten::cat") == ([10, 8], None)
    assert sizes("aten::embedding") == ([3, 2, 8], None)
    assert sizes("aten::conv2d") == ([2, 2, 1, 1], None)
    assert sizes("aten::mul_") == ([3, 2, 8], None)  # whatever the other operand is
    assert sizes("aten::index")[0] is None  # of a mask it would be another


def test_refined_ints_become_results():
    @jit.script
    def function(x: int):
        y = 1
        if x == 1:
            return y
        else:
            return x

    assert _C._jit_pass_refine_integer_values(function.graph)
    _C._jit_pass_dce(function.graph)
    assert kinds(function.graph) == []
    assert function(2) == 2 and function(1) == 1
