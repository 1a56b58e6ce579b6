"""jit.fork in traces: a fork with a graph of its own where only waiting gives what it makes."""

import pytest

import cresset
from cresset import nn


def kinds(graph):
    return [node.kind() for node in graph.nodes()]


def body(graph):
    return next(n for n in graph.nodes() if n.kind() == "prim::fork").g("Subgraph")


def test_a_fork_is_recorded_as_one():
    factor = cresset.full((3,), 2.0)

    def both(x, y):
        return x.neg() * factor, [x + y, y]

    def function(x, y):
        future = cresset.jit.fork(both, x, y=y * 2)
        scaled, parts = cresset.jit.wait(future)
        return scaled, parts[0] - parts[1], x

    traced = cresset.jit.trace(function, (cresset.rand(3), cresset.rand(3)))
    found = kinds(traced.graph)
    assert found.count("prim::fork") == 1 and found.count("aten::wait") == 1
    assert "aten::neg" not in found and kinds(body(traced.graph)).count("aten::neg") == 1
    x, y = cresset.tensor([1.0, 2, 3]), cresset.tensor([4.0, 5, 6])
    scaled, difference, same = traced(x, y)
    assert scaled.tolist() == [-2, -4, -6] and difference.tolist() == [1, 2, 3] and same.tolist() == [1, 2, 3]
    cresset._C._jit_pass_inline_fork_wait(traced.graph)
    assert "prim::fork" not in kinds(traced.graph) and "aten::neg" in kinds(traced.graph)


def test_forks_in_forks():
    def inner(x):
        return x + 1

    def outer(x):
        return cresset.jit.fork(inner, x * 2).wait() * 3

    traced = cresset.jit.trace(lambda x: cresset.jit.fork(outer, x).wait() - 1, cresset.rand(2))
    assert kinds(traced.graph).count("prim::fork") == 1 and kinds(body(traced.graph)).count("prim::fork") == 1
    assert traced(cresset.tensor([1.0, 2])).tolist() == [8, 14]


def test_what_is_seen_outside_of_a_fork_stays_outside():
    kept = []

    def leak(x):
        kept.append(x + 1)
        return x * 2

    def function(x):
        kept.clear()
        return cresset.jit.fork(leak, x).wait() + kept[0]

    def writes(x):
        y = x.clone()
        cresset.jit.fork(lambda: y.add_(1) * 3).wait()
        return y

    for traced, expected in ((cresset.jit.trace(function, cresset.rand(2)), [4, 7]), (cresset.jit.trace(writes, cresset.rand(2)), [2, 3])):
        assert "prim::fork" not in kinds(traced.graph) and "aten::wait" not in kinds(traced.graph)
        assert traced(cresset.tensor([1.0, 2])).tolist() == expected


def test_modules_that_are_forked_keep_their_methods():
    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)

        def forward(self, x):
            return cresset.jit.fork(self.linear, x).wait() + x

    pair, x = Pair(), cresset.rand(1, 2)
    traced = cresset.jit.trace(pair, x)
    assert cresset.equal(traced(x), pair(x))
    assert traced.linear.graph is not None


def test_a_fork_that_raises():
    def fails(x):
        x + 1
        raise KeyError("of the program")

    def function(x):
        try:
            cresset.jit.fork(fails, x)
        except KeyError:
            return x * 2

    assert cresset.jit.trace(function, cresset.rand(2))(cresset.tensor([1.0, 2])).tolist() == [2, 4]
    with pytest.raises(KeyError):
        cresset.jit.trace(lambda x: cresset.jit.fork(fails, x), cresset.rand(2))
    assert cresset.jit.trace(lambda x: x + 1, cresset.rand(2))(cresset.zeros(2)).tolist() == [1, 1]


def test_a_fork_that_gives_no_tensors():
    traced = cresset.jit.trace(lambda x: x * (len(cresset.jit.fork(list).wait()) + 1), cresset.rand(2))
    assert traced(cresset.tensor([1.0, 2])).tolist() == [1, 2]
