"""Loops in exported programs. The numbers are those of torch 2.13's own export of the same modules, which also reads the files of these programs."""

import pytest
import cresset
from cresset import nn
from cresset._dynamo.exc import UserError
from cresset.export import Dim, export, load, save
from cresset.testing import assert_close


class Loop(nn.Module):
    """A loop that uses a parameter and a tensor from around it."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(cresset.tensor([1.0, 2.0]))

    def forward(self, i, x):
        y = x + 1
        i, x = cresset.while_loop(lambda i, x: (i < 5) & (x.sum() < 100), lambda i, x: (i + 1, x * self.w + y), (i, x))
        return i, x * 2


class Nested(nn.Module):
    """A loop and a condition in a loop."""

    def forward(self, i, x):
        def body(i, x):
            _, x = cresset.while_loop(lambda j, x: j < i, lambda j, x: (j + 1, x + i), (cresset.zeros_like(i), x))
            return i + 1, cresset.cond(x.sum() > 10, lambda x: x * 0.5, lambda x: x * 2, (x,))

        return cresset.while_loop(lambda i, x: i < 5, body, (i, x))


class InBranches(nn.Module):
    """A loop in one branch, a condition in the other."""

    def forward(self, x):
        def one(x):
            return cresset.while_loop(lambda x: x.sum() < 9, lambda x: (x * 2,), (x,))[0]

        def other(x):
            return cresset.cond(x.sum() < -5, lambda x: x + 1, lambda x: x - 1, (x,))

        return cresset.cond(x.sum() > 0, one, other, (x,))


def _t(*values):
    return cresset.tensor(values[0] if len(values) == 1 else list(values))


CALLS = {
    Loop: [((_t(0), _t(1.0, 1.0)), (5, [22.0, 188.0])), ((_t(3), _t(1.0, -1.0)), (5, [10.0, -8.0])), ((_t(9), _t(1.0, 1.0)), (9, [2.0, 2.0]))],
    Nested: [((_t(0), _t(1.0, 1.0)), (5, [11.5, 11.5])), ((_t(2), _t(3.0, 4.0)), (5, [11.125, 11.25]))],
    InBranches: [((_t(1.0, 1.0),), ([8.0, 8.0],)), ((_t(-1.0, -1.0),), ([-2.0, -2.0],)), ((_t(-9.0, -9.0),), ([-8.0, -8.0],))],
}


@pytest.mark.parametrize("kind", CALLS)
def test_loops_are_recorded_and_come_back_from_files(kind, tmp_path):
    program = export(kind(), CALLS[kind][0][0])
    save(program, tmp_path / "loop.pt2")
    for call in (program.module(), load(tmp_path / "loop.pt2").module()):
        for args, expected in CALLS[kind]:
            found = call(*args)
            for value, wanted in zip(found if isinstance(found, tuple) else (found,), expected):
                assert value.tolist() == wanted


def test_graphs_of_a_loop():
    program = export(Loop(), CALLS[Loop][0][0])
    call = next(n for n in program.graph.nodes if n.name == "while_loop")
    assert call.target is cresset.ops.higher_order.while_loop
    assert [[a.name for a in part] for part in call.args[2:]] == [["i", "x"], ["p_w", "add"]]
    test, body = program.graph_module.while_loop_cond_graph_0, program.graph_module.while_loop_body_graph_0
    assert [str(n.target) for n in test.graph.nodes if n.op == "call_function"] == ["aten.lt.Scalar", "aten.sum.default", "aten.lt.Scalar", "aten.__and__.Tensor"]
    assert [str(n.target) for n in body.graph.nodes if n.op == "call_function"] == ["aten.add.Tensor", "aten.mul.Tensor", "aten.add.Tensor"]


def test_sizes_vary_around_a_loop():
    class Sums(nn.Module):
        def forward(self, i, x):
            return cresset.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2 + i), (i, x))[1].sum(0)

    program = export(Sums(), (_t(0), cresset.ones(4, 2)), dynamic_shapes=(None, {0: Dim("n")}))
    assert program.module()(_t(0), cresset.ones(6, 2)).tolist() == [72.0, 72.0]


def test_loops_over_numbers_are_unrolled():
    class Powers(nn.Module):
        def forward(self, x):
            return cresset.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, x))[1]

    program = export(Powers(), (_t(1.0, 3.0),))
    assert [str(n.target) for n in program.graph.nodes if n.op == "call_function"] == ["aten.mul.Tensor"] * 3
    assert_close(program.module()(_t(1.0, 3.0)), _t(8.0, 24.0))


@pytest.mark.parametrize(
    "test, body, words",
    [
        (lambda x: x.sum() < 9, lambda x: x.sum(), r"to have same metadata but found: \(cresset.float32\[\]\) and \(cresset.float32\[2\]\)"),
        (lambda x: x.sum() < 9, lambda x: (x, x), r"to have same metadata but found: \(cresset.float32\[2\], cresset.float32\[2\]\) and"),
        (lambda x: x.sum() < 9, lambda x: 1, r"to have same metadata but found: \(int\) and"),
        (lambda x: x.sum() < 9, lambda x: x.add_(1), r"one of the functions writes to a tensor from outside \(aten.add_.Tensor\)"),
        (lambda x: x < 9, lambda x: x + 1, r"cond_fn must give a tensor of one element, but gave cresset.bool\[2\]"),
        (lambda x: True, lambda x: x + 1, "cond_fn must give a tensor of one element, but gave bool"),
    ],
)
def test_loops_that_are_refused(test, body, words):
    class Bad(nn.Module):
        def forward(self, x):
            return cresset.while_loop(test, body, (x,))

    with pytest.raises(UserError, match=words):
        export(Bad(), (cresset.ones(2),))
    assert cresset.while_loop(lambda i: i < 3, lambda i: (i + 1,), (_t(0),))[0].item() == 3
