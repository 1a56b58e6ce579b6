"""Operators that become writes: the graph gives what it gave, inputs and constants stay, and memory is saved where it may be."""

import cresset as torch
import pytest
from cresset import fx
from cresset.func import functionalize
from cresset.fx.experimental.proxy_tensor import make_fx
from cresset.fx.passes.reinplace import reinplace


def simple(x):
    return x.clone().add(1).mul(2).relu()


def input_is_kept(x):
    return x.add(1) + x.view(-1)[:1].sum()


def old_value_is_read(x):
    a = x.clone()
    view = a.view(-1)
    return a.add(1) * 3, view.add(1)


def dtype_changes(x):
    return torch.ge(x.clone() + 1, x)


def one_place_many_elements(x):
    return x.sum().clone().expand(4, 4).add(1)


def twice(x):
    b = x.clone()
    return b.mul(b)


def constant(x):
    return x + torch.tensor([1.0, 2.0]).add(1).sum()


def out_of_a_part(x):
    a = x.clone()
    part = a.select(0, 1).add(1)
    return torch.select_scatter(a, part, 0, 1)


def into_another_part(x):
    a = x.clone()
    part = a.select(0, 1).add(1)
    return torch.select_scatter(a, part, 0, 0)


def base_is_read_later(x):
    a = x.clone()
    part = a.select(0, 1).add(1)
    return torch.select_scatter(a, part, 0, 1), a.sum()


def mutated_views(x):
    a = x.clone()
    row = a[:, 1]
    row[1].add_(5)
    a[2:].mul_(2)
    first = a.view(-1)[:3]
    first.copy_(torch.ones(3) * row[0])
    return a, first + 1


def diagonal(x):
    z = torch.zeros(4, 4)
    z.diagonal().copy_(x[0]).add_(1)
    return z


def mutated_input(x):
    x.view(-1)[0].add_(1)
    return x * 2


def parts_of_a_split(x):
    a = x.clone()
    p, q = a.split(2)
    p.add_(q)
    return a, q


def another_name_of_the_place(x):
    a = x.clone()
    return a.add(a.view(4, 4))


def another_order_of_the_places(x):
    a = x.clone()
    return a.add(a.t())


def products_of_the_place(x):
    a = x.clone()
    return a.addmm(a.view(4, 4), a.view(4, 4))


def a_tensor_is_resized(x):
    a = x + 1
    a.resize_(5, 5)
    a.fill_(2)
    return a.view(25) + 1


def the_smaller_one_is_read_later(x):
    a = x + 1
    b = torch.ops.aten.resize(a, [2, 2])
    return a * 3, b.mul(2)


# Function, operators of the result that write (in the order of the graph).
CASES = [
    (simple, ["add_", "mul_", "relu_"]), (input_is_kept, None), (old_value_is_read, None), (dtype_changes, ["add_"]), (one_place_many_elements, []),
    (twice, []), (constant, None), (out_of_a_part, ["add_"]), (into_another_part, ["copy_"]), (base_is_read_later, None), (mutated_views, None), (diagonal, None),
    (mutated_input, None), (parts_of_a_split, None), (another_name_of_the_place, ["add_"]), (another_order_of_the_places, []), (products_of_the_place, []),
    (a_tensor_is_resized, ["resize_", "fill_", "add_"]), (the_smaller_one_is_read_later, ["mul_", "mul_"]),
]  # fmt: skip


def writes(gm):
    return [n.target._schema.name.split("::")[1] for n in gm.graph.nodes if n.op == "call_function" and getattr(n.target, "_schema", None) and n.target._schema.name.endswith("_")]


@pytest.mark.parametrize(("function", "expected"), CASES, ids=lambda v: v.__name__ if callable(v) else "")
def test_results_stay(function, expected):
    torch.manual_seed(0)
    x = torch.randn(4, 4)
    inputs = [x.clone() for _ in range(4)]
    wanted = function(inputs[0])
    gm = make_fx(functionalize(function))(inputs[1].clone())
    before = gm(inputs[1])
    reinplace(gm, x.clone())
    gm.graph.lint()
    for _ in range(2):  # constants of the module are as they were
        after = gm(inputs[2].copy_(x))
        for a, b, c in zip(*(v if isinstance(v, tuple) else (v,) for v in (wanted, before, after))):
            assert torch.equal(a, b) and torch.equal(a, c) and a.dtype == c.dtype
        assert torch.equal(inputs[0], inputs[2])
    if expected is not None:
        assert writes(gm) == expected


def test_the_texts_of_graphs():
    gm = reinplace(make_fx(functionalize(lambda: torch.diagonal_scatter(x := torch.zeros(2, 2), x.diagonal().add(1))))())
    assert [str(n.target) for n in gm.graph.nodes if n.op == "call_function"] == ["aten.zeros.default", "aten.diagonal.default", "aten.add_.Tensor"]
    assert gm.code.rstrip().endswith("return zeros") and "add = torch.ops.aten.add_.Tensor(diagonal, 1);  diagonal = add = None" in gm.code


def test_random_graphs():
    """Chains of views and operators on what earlier nodes gave: the results are those of the graph before."""
    import random

    for seed in range(60):
        rng = random.Random(seed)
        graph = fx.Graph()
        nodes = [graph.call_function(torch.ops.aten.clone.default, (graph.placeholder("x"),)), graph.call_function(torch.ops.aten.ones.default, ([4, 4],))]
        for _ in range(14):
            a, b = rng.choice(nodes), rng.choice(nodes)
            square = [graph.call_function(torch.ops.aten.reshape.default, (n, [4, 4])) for n in (a, b)]
            kind = rng.randrange(6)
            if kind < 2:
                nodes.append(graph.call_function(torch.ops.aten.view.default, (a, [4, 4])) if kind else square[0])
            elif kind == 2:
                nodes.append(graph.call_function(torch.ops.aten.add.Tensor, (square[0], square[1])))
            elif kind == 3:
                nodes.append(graph.call_function(torch.ops.aten.mul.Tensor, (a, 2)))
            else:
                row = graph.call_function(torch.ops.aten.select.int, (square[0], 0, rng.randrange(4)))
                changed = graph.call_function(torch.ops.aten.add.Tensor, (row, 1))
                nodes.append(graph.call_function(torch.ops.aten.select_scatter.default, (square[1] if kind == 4 else square[0], changed, 0, rng.randrange(4))))
        graph.output(tuple(rng.sample(nodes, 3)))
        gm = fx.GraphModule(torch.nn.Module(), graph)
        x = torch.randn(4, 4)
        expected = [t.clone() for t in gm(x)]
        reinplace(gm, x)
        for a, b in zip(expected, gm(x)):
            assert torch.equal(a, b), (seed, gm.code)


def test_one_place_by_two_names():
    # Each element is read before it is written where the operator is pointwise; a product reads others.
    def pointwise(x):
        a = x.clone()
        return a.add(a.view(-1))

    def product(x):
        a = x.clone()
        return torch.addmv(a, x.view(1, -1).expand(4, 4), a.view(-1))

    for f, name in ((pointwise, "aten.add_.Tensor"), (product, "aten.addmv.default")):
        x = torch.arange(4.0)
        graph = reinplace(make_fx(f)(x), x)
        assert name in [str(n.target) for n in graph.graph.nodes]
        assert torch.equal(graph(x), f(x))
