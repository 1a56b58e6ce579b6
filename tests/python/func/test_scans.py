"""Functions along a dimension (scan, associative_scan, map) and loops over structures. Values and words are PyTorch 2.13's where not said otherwise."""

import pytest

import cresset as torch
from cresset._higher_order_ops import associative_scan, cond, map, scan, while_loop

XS = torch.arange(6.0).reshape(3, 2)


def _add(carry, x):
    return carry + x, carry + x


def test_scan_gives_the_last_carry_and_all_outputs():
    last, outputs = scan(_add, torch.zeros(2), XS)
    assert last.tolist() == [6.0, 9.0] and outputs.tolist() == [[0.0, 1.0], [2.0, 4.0], [6.0, 9.0]]
    last, outputs = scan(_add, torch.zeros(2), XS, reverse=True)
    assert last.tolist() == [6.0, 9.0] and outputs.tolist() == [[6.0, 9.0], [6.0, 8.0], [4.0, 5.0]]
    last, outputs = scan(_add, torch.zeros(3), XS, dim=-1, reverse=True)
    assert last.tolist() == [1.0, 5.0, 9.0] and outputs.tolist() == [[1.0, 1.0], [5.0, 3.0], [9.0, 5.0]]
    last, outputs = scan(lambda c, x: ({"a": c["a"] + x["k"]}, {"o": [x["k"] * c["a"]]}), {"a": torch.ones(2)}, {"k": XS})
    assert last["a"].tolist() == [7.0, 10.0] and outputs["o"][0].tolist() == [[0.0, 1.0], [2.0, 6.0], [12.0, 25.0]]
    x = XS.clone().requires_grad_()
    assert torch.autograd.grad(scan(_add, torch.zeros(2), x)[1].sum(), x)[0].tolist() == [[3.0, 3.0], [2.0, 2.0], [1.0, 1.0]]
    assert scan(_add, torch.zeros(2), [])[0].tolist() == [0.0, 0.0]


def test_outputs_of_scan_are_stacked_along_the_dimension():
    xs = torch.arange(24.0).reshape(2, 3, 4)

    def step(carry, x):
        return carry + x, (carry * x, x.sum(), x[None] * 2)

    shapes = {0: [(2, 3, 4), (2,), (2, 1, 3, 4)], 1: [(2, 3, 4), (3,), (1, 3, 2, 4)], -1: [(2, 3, 4), (4,), (1, 2, 4, 3)]}
    for dim, expected in shapes.items():
        init = torch.zeros_like(xs.select(dim, 0))
        assert [tuple(o.shape) for o in scan(step, init, xs, dim=dim)[1]] == expected
    assert scan(step, torch.zeros(2, 4), xs, dim=1)[1][0].stride() == (4, 8, 1)
    assert scan(step, torch.zeros(2, 4), xs, dim=1)[1][0].sum() == 3940


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: scan(3, torch.zeros(2), XS), RuntimeError, "Combine_fn must be a callable, but got 3"),
        (lambda: scan(_add, torch.zeros(2), XS, reverse=1), RuntimeError, "Reverse must be a bool, but got <class 'int'>"),
        (lambda: scan(_add, [], XS), RuntimeError, r"scan\(\) operator requires init leaves\."),
        (lambda: scan(_add, 1.0, XS), RuntimeError, "All init leaves must be a Tensor but got 1.0"),
        (
            lambda: scan(_add, torch.zeros(2), torch.zeros(0, 2)),
            RuntimeError,
            "All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0",
        ),
        (lambda: scan(_add, torch.zeros(1), XS), RuntimeError, "Expected init and carry to have same metadata but found"),
        (lambda: scan(lambda c, x: ((c + x).double(), x), torch.zeros(2), XS), RuntimeError, "Expected init and carry to have same metadata but found"),
        (
            lambda: scan(lambda c, x: (c[0], x), (torch.zeros(2), torch.zeros(2)), XS),
            RuntimeError,
            "The number of leaves of the pytree of the new carry",
        ),  # release 2.6
        (lambda: scan(lambda c, x: (c + x, 3), torch.zeros(2), XS), RuntimeError, "the outputs of combine_fn must be tensors"),  # ours
        (lambda: scan(lambda c, x: c + x, torch.zeros(2), XS), RuntimeError, "combine_fn must give the next carry and an output; got Tensor"),  # ours
        (lambda: associative_scan(3, XS, 0), ValueError, "Combine_fn must be a callable, but got 3"),
        (lambda: associative_scan(torch.mul, XS, 0, combine_mode="foo"), ValueError, "Combine_mode must either 'pointwise' or 'generic', but got foo"),
        (lambda: associative_scan(torch.mul, XS.to_sparse(), 0), ValueError, r"xs leaves must dense Tensors, consider using `to_dense\(\)`"),
        (lambda: associative_scan(torch.mul, torch.zeros(0, 2), 0), ValueError, "All xs leaves must at least have 'dim' number of dimensions"),
        (lambda: associative_scan(lambda a, b: a, (XS, XS[:2]), 0), ValueError, r"must have the same size along dim 0; got \[3, 2\]"),  # ours
        (lambda: map(lambda x, y: x.sum().item(), XS, XS), RuntimeError, r"Expect outputs of map only contains tensors or None\."),  # release 2.6
        (lambda: map(lambda x: x, (3, torch.ones(2))), RuntimeError, r"Mapped xs can only consist of tensors. Got xs \[3, tensor\(\[1\., 1\.\]\)\]\."),
    ],
)
def test_what_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_associative_scan():
    xs = XS + 1
    for mode in ("generic", "pointwise"):
        assert associative_scan(torch.mul, xs, 0, combine_mode=mode).tolist() == [[1.0, 2.0], [3.0, 8.0], [15.0, 48.0]]
    assert associative_scan(torch.mul, xs, -1, combine_mode="generic").tolist() == [[1.0, 2.0], [3.0, 12.0], [5.0, 30.0]]
    assert associative_scan(torch.mul, xs, 0, reverse=True, combine_mode="generic").tolist() == [[15.0, 48.0], [15.0, 24.0], [5.0, 6.0]]

    def linear(first, second):  # composition of x -> a x + b
        return first[0] * second[0], second[0] * first[1] + second[1]

    a, b = associative_scan(linear, (xs, XS), 0, combine_mode="generic")
    assert a.tolist() == [[1.0, 2.0], [3.0, 8.0], [15.0, 48.0]] and b.tolist() == [[0.0, 1.0], [2.0, 7.0], [14.0, 47.0]]
    x = xs.clone().requires_grad_()
    gradient = torch.autograd.grad(associative_scan(torch.mul, x, 0, combine_mode="generic").sum(), x)[0]
    assert gradient.tolist() == [[19.0, 29.0], [6.0, 14.0], [3.0, 8.0]]


def test_associative_scan_of_every_size_agrees_with_the_loop_and_keeps_the_order():
    """Products of matrices do not commute; an independent source of the values: the loop."""
    for size in range(1, 18):
        matrices = torch.randint(-1, 2, (2, size, 2, 2)).double()
        expected = [matrices[:, 0]]
        for i in range(1, size):
            expected.append(expected[-1] @ matrices[:, i])
        assert torch.equal(associative_scan(torch.matmul, matrices, 1, combine_mode="generic"), torch.stack(expected, 1)), size


def test_the_same_step_by_step():
    import importlib

    forms = {n: importlib.import_module(f"cresset._higher_order_ops.{n}") for n in ("map", "scan", "associative_scan")}
    assert forms["map"]._fake_map(lambda x, y: (x + y, None), XS, 1)[0].tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    last, outputs = forms["scan"]._fake_scan(_add, torch.zeros(3), XS, dim=1, reverse=True)
    assert last.tolist() == [1.0, 5.0, 9.0] and outputs.tolist() == [[1.0, 1.0], [5.0, 3.0], [9.0, 5.0]]
    assert forms["scan"]._fake_scan(_add, torch.zeros(2))[1] == []
    for reverse, expected in ((False, [[0.0, 1.0], [2.0, 5.0], [4.0, 9.0]]), (True, [[1.0, 1.0], [5.0, 3.0], [9.0, 5.0]])):
        assert forms["associative_scan"]._fake_associative_scan(torch.add, XS, 1, reverse=reverse).tolist() == expected


def test_functions_of_several_results():
    assert map(lambda x, y: None, XS, XS) is None
    assert map(lambda x: {"c": [x["a"] * 2]}, {"a": torch.ones(3, 2)})["c"][0].tolist() == [[2.0, 2.0]] * 3


def test_structures_are_taken_apart_and_stacked():
    from cresset.functorch.experimental.control_flow import _stack_pytree, _unstack_pytree

    parts = _unstack_pytree({"a": [XS], "b": XS * 2})
    assert len(parts) == 3 and parts[1]["a"][0].tolist() == [2.0, 3.0] and parts[2]["b"].tolist() == [8.0, 10.0]
    assert torch.equal(_stack_pytree(parts)["b"], XS * 2)


def test_loops_carry_structures():
    (result,) = while_loop(lambda d: d["i"].sum() < 3, lambda d: ({"i": d["i"] + 1, "x": d["x"] * 2},), ({"i": torch.zeros(1), "x": torch.ones(2)},))
    assert result["i"].tolist() == [3.0] and result["x"].tolist() == [8.0, 8.0]
    with pytest.raises(RuntimeError, match="same structure"):
        while_loop(lambda d: d["i"].sum() < 3, lambda d: ({"j": d["i"] + 1},), ({"i": torch.zeros(1)},))


def test_functions_stay_functions_when_their_modules_are_imported():
    import importlib

    package = importlib.import_module("cresset._higher_order_ops")
    for name in ("associative_scan", "cond", "map", "scan", "while_loop"):
        module = importlib.import_module(f"cresset._higher_order_ops.{name}")
        assert getattr(package, name) is getattr(module, name) and callable(getattr(package, name))
    assert cond is torch.cond and while_loop is torch.while_loop


class _Loop(torch.nn.Module):
    def forward(self, x):
        return while_loop(lambda d: d[0].sum() < 9, lambda d: ((d[0] + 1, {"k": d[1]["k"] * 2}),), ((x, {"k": x}),))[0][1]["k"]


def test_exported_loops_carry_structures():
    x = torch.ones(2)
    program = torch.export.export(_Loop(), (x,))
    assert any("while_loop" in str(n.target) for n in program.graph.nodes)
    for start in (x, x * 3, x * 20):
        assert torch.equal(program.module()(start), _Loop()(start))
