"""Functional collectives on two ranks: values, gradients, graphs, sizes on meta devices, words of errors."""

import re

import pytest

import cresset
import cresset.distributed as dist
import cresset.distributed._functional_collectives as funcol
from cresset.distributed.device_mesh import init_device_mesh


# What PyTorch 2.13 gives on rank 0 of two for x = [0, 1, 2, 3] + rank, and the gradient of (y * [1, 2, …] * (rank + 1)).sum(); broadcast's is the sum of
# all ranks' at its source, where PyTorch leaves each rank its own.
CASES = {
    "all_reduce": (lambda x, g: funcol.all_reduce(x, "sum", g), [1, 3, 5, 7], [3, 6, 9, 12]),
    "all_gather_tensor": (lambda x, g: funcol.all_gather_tensor(x, 0, g), [0, 1, 2, 3, 1, 2, 3, 4], [3, 6, 9, 12]),
    "reduce_scatter_tensor": (lambda x, g: funcol.reduce_scatter_tensor(x, "sum", 0, g), [1, 3], [1, 2, 2, 4]),
    "all_to_all_single": (lambda x, g: funcol.all_to_all_single(x, [2, 2], [2, 2], g), [0, 1, 1, 2], [1, 2, 2, 4]),
    "permute_tensor": (lambda x, g: funcol.permute_tensor(x, [1, 0], g), [1, 2, 3, 4], [2, 4, 6, 8]),
    "broadcast": (lambda x, g: funcol.broadcast(x, 1, g), [1, 2, 3, 4], [0, 0, 0, 0]),
}


def values(rank, name):
    function, *_ = CASES[name]
    x = (cresset.arange(4.0) + rank).requires_grad_()
    y = function(x, dist.group.WORLD)
    assert isinstance(y, funcol.AsyncCollectiveTensor)
    (y * cresset.arange(1.0, y.numel() + 1) * (rank + 1)).sum().backward()
    return y.tolist(), x.grad.tolist()


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(pair, name):
    result, gradient = pair.run(values, name)[0]
    assert (result, gradient) == (CASES[name][1], CASES[name][2])


def forms(rank):
    mesh, world = init_device_mesh("cpu", (2,)), dist.group.WORLD
    x = cresset.ones(2, 3) * (rank + 1)
    for group in (world, world.group_name, mesh, (mesh, 0), [0, 1]):
        assert funcol.all_reduce(x, "sum", group).tolist() == [[3.0] * 3] * 2
    assert funcol.all_reduce(x, "avg", mesh).tolist() == [[1.5] * 3] * 2 and funcol.all_reduce(x, "max", mesh).max().item() == 2
    assert funcol.all_gather_tensor(x, 1, mesh).tolist() == [[1.0] * 3 + [2.0] * 3] * 2
    assert funcol.reduce_scatter_tensor(cresset.ones(3, 4), "sum", 1, mesh).tolist() == [[2.0, 2.0]] * 3
    a, b = funcol.all_reduce_coalesced([x, x[0]], "sum", mesh)
    assert a.sum().item() == 18 and b.tolist() == [3.0] * 3
    assert [t.shape[0] for t in funcol.all_gather_into_tensor_coalesced([x, x[0]], mesh)] == [4, 6]
    lazy = funcol.all_reduce(x, "sum", mesh)
    assert isinstance(lazy.view(-1), funcol.AsyncCollectiveTensor) and not isinstance(lazy + 0, funcol.AsyncCollectiveTensor)
    assert type(lazy.wait()) is cresset.Tensor
    with cresset.inference_mode():
        assert (funcol.all_reduce(x, "sum", mesh) + 0).tolist() == [[3.0] * 3] * 2
    many = [funcol.all_reduce(x, "sum", mesh) for _ in range(200)]  # results that nobody waits for
    assert many[-1].tolist() == [[3.0] * 3] * 2
    old = cresset.ops.c10d_functional
    assert old.wait_tensor(old.all_reduce(x, "sum", "", [0, 1], 2)).tolist() == [[3.0] * 3] * 2
    meta = cresset.ones(2, 3, device="meta")
    assert funcol.all_gather_tensor(meta, 0, mesh).shape == (4, 3) and funcol.reduce_scatter_tensor(meta, "sum", 0, mesh).shape == (1, 3)


def graphs(rank):
    from cresset.fx.experimental.proxy_tensor import make_fx

    world = dist.group.WORLD
    graph = make_fx(lambda x: funcol.all_reduce(x, "sum", world) + 1)(cresset.ones(2))
    names = [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]
    assert names[:2] == ["_c10d_functional.all_reduce.default", "_c10d_functional.wait_tensor.default"]
    assert graph(cresset.ones(2) * (rank + 1)).tolist() == [4.0, 4.0]


def messages(rank):
    x = cresset.full((3,), float(rank))
    if rank == 0:
        sent, received = funcol.isend_inplace(x, 1, tag=3), cresset.zeros(3)
        got = funcol.irecv_inplace(received, 1)
    else:
        received = cresset.zeros(3)
        got = funcol.irecv_inplace(received, 0, tag=3)
        sent = funcol.isend_inplace(x, 0)
    assert funcol.wait_tensor(got).tolist() == [1.0 - rank] * 3 and funcol.wait_tensor(sent).tolist() == [float(rank)] * 3
    assert received.tolist() == [1.0 - rank] * 3
    outs = [x, cresset.zeros(3)]
    each = funcol.batch_p2p_ops_inplace(["isend", "irecv"], [1 - rank] * 2, [0, 0], outs, dist.group.WORLD)
    assert [t.tolist() for t in each] == [[float(rank)] * 3, [1.0 - rank] * 3]
    assert funcol.REDUCE_OP_TO_STR[dist.ReduceOp.MAX] == "max"
    with pytest.raises(RuntimeError, match="batch_p2p_ops: the operations are isend and irecv, not send"):
        funcol.batch_p2p_ops_inplace(["send"], [1 - rank], [0], [x], dist.group.WORLD)


ERRORS = [
    (lambda x, g: funcol.all_reduce(x, "nope", g), RuntimeError, "Unrecognized reduce_op: nope"),
    (lambda x, g: funcol.all_reduce(x, "sum", "nope"), RuntimeError, "Could not resolve the process group registered under the name nope"),
    (lambda x, g: funcol.all_reduce(x, "sum", 5), ValueError, "Unsupported group type: <class 'int'>, 5"),
    (lambda x, g: funcol.reduce_scatter_tensor(x[:3], "sum", 0, g), AssertionError, "input dimension 0 (3 must be a multiple of group_size 2)"),
    (lambda x, g: funcol.all_reduce(x.requires_grad_(), "max", g).sum().backward(), RuntimeError, "all_reduce backward only supports 'sum' reduction, got 'max'"),
]  # fmt: skip


def errors(rank):
    for call, kind, words in ERRORS:
        with pytest.raises(kind, match=re.escape(words)):
            call(cresset.ones(4), dist.group.WORLD)


@pytest.mark.parametrize("program", [forms, graphs, messages, errors])
def test_functional(pair, program):
    pair.run(program)
