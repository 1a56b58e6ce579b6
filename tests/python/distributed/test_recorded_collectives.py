"""Collectives in graphs: what make_fx, torch.export and traces record of `all_reduce` and the others, and that the graphs communicate when they run."""

import io

import collective_programs as programs
import pytest

import cresset
import cresset.distributed as dist
from cresset.fx.experimental.proxy_tensor import make_fx


def _all_reduce(x):
    dist.all_reduce(x)
    return x + 1


def _all_reduce_async(x):
    y = x * 2
    dist.all_reduce(y, async_op=True).wait()
    return y + 1


def _reduce(x):
    dist.reduce(x, 0)
    return x + 1


def _broadcast(x):
    dist.broadcast(x, 1)
    return x + 1


def _gather(x):
    parts = [cresset.zeros(4), cresset.zeros(4)] if dist.get_rank() == 0 else None
    dist.gather(x, parts)
    return parts[0] + parts[1] if parts else x


def _scatter(x):
    out = cresset.zeros(4)
    dist.scatter(out, [x, x + 1] if dist.get_rank() == 0 else None)
    return out + 1


def _reduce_scatter(x):
    out = cresset.zeros(4)
    dist.reduce_scatter(out, [x, x + 1])
    return out + 1


def _all_to_all_single(x):
    out = cresset.zeros(4)
    dist.all_to_all_single(out, x)
    return out + 1


def _all_to_all(x):
    parts = [cresset.zeros(2), cresset.zeros(2)]
    dist.all_to_all(parts, list(x.split(2)))
    return parts[0] + parts[1]


def _barrier(x):
    y = x + 1
    dist.barrier()
    return y


def _send(x):
    y = x * 2
    if dist.get_rank() == 0:
        dist.send(y, 1)
    else:
        dist.recv(y, 0)
    return y + 1


def _all_reduce_coalesced(x):
    y = x * 2
    dist.all_reduce_coalesced([x, y])
    return y + x


# What PyTorch 2.13 gives on ranks 0 and 1 of two for x = [0, 1, 2, 3] + rank, without a graph; the operator that make_fx records there, and whether
# torch.export's programs have a functional one.
CASES = {
    "all_reduce": (_all_reduce, [[2.0, 4.0, 6.0, 8.0]] * 2, "c10d.allreduce_", "all_reduce"),
    "all_reduce_async": (_all_reduce_async, [[3.0, 7.0, 11.0, 15.0]] * 2, "c10d.allreduce_", "all_reduce"),
    "reduce": (_reduce, [[2.0, 4.0, 6.0, 8.0], [2.0, 3.0, 4.0, 5.0]], "c10d.reduce_", "all_reduce"),
    "broadcast": (_broadcast, [[2.0, 3.0, 4.0, 5.0]] * 2, "c10d.broadcast_", "broadcast"),
    "gather": (_gather, [[1.0, 3.0, 5.0, 7.0], [1.0, 2.0, 3.0, 4.0]], "c10d.gather_", "all_gather_into_tensor"),
    "scatter": (_scatter, [[1.0, 2.0, 3.0, 4.0], [2.0, 3.0, 4.0, 5.0]], "c10d.scatter_", "broadcast"),
    "all_gather": (programs.all_gather, [[4.0, 10.0, 16.0, 22.0]] * 2, "c10d.allgather_", "all_gather_into_tensor"),
    "all_gather_into_tensor": (
        programs.all_gather_into_tensor, [[1.0, 3.0, 5.0, 7.0, 3.0, 5.0, 7.0, 9.0]] * 2, "c10d._allgather_base_", "all_gather_into_tensor"
    ),
    "reduce_scatter": (_reduce_scatter, [[2.0, 4.0, 6.0, 8.0], [4.0, 6.0, 8.0, 10.0]], "c10d.reduce_scatter_", "reduce_scatter_tensor"),
    "reduce_scatter_tensor": (programs.reduce_scatter_tensor, [[3.0, 7.0], [11.0, 15.0]], "c10d._reduce_scatter_base_", "reduce_scatter_tensor"),
    "all_to_all_single": (_all_to_all_single, [[1.0, 2.0, 2.0, 3.0], [3.0, 4.0, 4.0, 5.0]], "c10d.alltoall_base_", "all_to_all_single"),
    "all_to_all": (_all_to_all, [[1.0, 3.0], [5.0, 7.0]], "c10d.alltoall_", "all_to_all_single"),
    "barrier": (_barrier, [[1.0, 2.0, 3.0, 4.0], [2.0, 3.0, 4.0, 5.0]], "c10d.barrier", "all_reduce"),
    "send": (_send, [[1.0, 3.0, 5.0, 7.0]] * 2, ("c10d.send", "c10d.recv_"), ("isend", "irecv")),
    "all_reduce_coalesced": (_all_reduce_coalesced, [[3.0, 9.0, 15.0, 21.0]] * 2, "c10d.allreduce_coalesced_", "all_reduce_coalesced"),
}  # fmt: skip


class _Module(cresset.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


def _input(rank):
    return cresset.arange(4.0) + rank


def _operators(module):
    return [str(node.target) for node in module.graph.nodes if node.op == "call_function"]


def _of(names, rank):
    return names if isinstance(names, str) else names[rank]


def fx(rank, name):
    function, wanted, operator, _ = CASES[name]
    graph = make_fx(function)(_input(rank))
    assert f"{_of(operator, rank)}.default" in _operators(graph)
    return [function(_input(rank)).tolist(), graph(_input(rank)).tolist()], wanted[rank]


def exported(rank, name):
    function, wanted, _, functional = CASES[name]
    program = cresset.export.export(_Module(function), (_input(rank),), strict=False)
    wanted_operators = [f"_c10d_functional.{_of(functional, rank)}.default", "_c10d_functional.wait_tensor.default"]
    assert [op for op in _operators(program.graph_module) if op in wanted_operators][:2] == wanted_operators
    file = io.BytesIO()
    cresset.export.save(program, file)
    file.seek(0)
    again, core = cresset.export.load(file), program.run_decompositions()
    return [p.module()(_input(rank)).tolist() for p in (program, again, core)], wanted[rank]


def traced(rank, name):
    function, wanted, *_ = CASES[name]
    graph = cresset.jit.trace(function, _input(rank), check_trace=False)
    results = [graph(_input(rank)).tolist() for _ in range(3)]  # the later ones through passes
    return results, wanted[rank]


@pytest.mark.parametrize("way", [fx, exported, traced])
@pytest.mark.parametrize("name", CASES)
def test_graphs_communicate(pair, way, name):
    for results, wanted in pair.run(way, name):
        assert results == [wanted] * len(results)


def without_values(rank):
    from cresset._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return {name: list(function(cresset.empty(4)).shape) for name, (function, *_) in CASES.items()}


def test_tensors_without_values_are_not_sent(pair):
    shapes = pair.run(without_values)
    assert shapes == [{name: [len(wanted[rank])] for name, (_, wanted, *_) in CASES.items()} for rank in range(2)]


def functional_export(rank):
    import cresset.distributed._functional_collectives as funcol

    def function(x):
        return funcol.all_gather_tensor(funcol.all_reduce(x, "sum", dist.group.WORLD) * 2, 0, dist.group.WORLD)

    program = cresset.export.export(_Module(function), (_input(rank),), strict=False)
    assert _operators(program.graph_module) == [  # PyTorch 2.13's
        "_c10d_functional.all_reduce.default", "_c10d_functional.wait_tensor.default", "aten.mul.Tensor",
        "_c10d_functional.all_gather_into_tensor.default", "_c10d_functional.wait_tensor.default",
    ]  # fmt: skip
    return program.module()(_input(rank)).tolist()


def test_functional_collectives_are_exported(pair):
    assert pair.run(functional_export) == [[2.0, 6.0, 10.0, 14.0] * 2] * 2


def unused_on_one_rank(rank):
    import cresset.distributed._functional_collectives as funcol

    def function(x):
        total = funcol.all_reduce(x, "sum", dist.group.WORLD)
        return total if rank == 0 else x

    trace = cresset.jit.trace(function, _input(rank), check_trace=False)
    graph = make_fx(function)(_input(rank))
    program = cresset.export.export(_Module(function), (_input(rank),), strict=False).run_decompositions().module()
    return [g(_input(rank)).tolist() for g in (trace, trace, graph, program)]


def test_what_one_rank_does_not_use_is_kept(pair):
    assert pair.run(unused_on_one_rank) == [[[1.0, 3.0, 5.0, 7.0]] * 4, [[1.0, 2.0, 3.0, 4.0]] * 4]


def seen_by_mode(rank):
    from cresset.utils._python_dispatch import TorchDispatchMode

    class Names(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.names = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.names.append(str(func))
            return func(*args, **(kwargs or {}))

    x = _input(rank).requires_grad_()
    with Names() as mode, cresset.no_grad():
        work = dist.all_reduce(x, async_op=True)
        assert work.wait()
        dist.all_reduce(x, op=dist.ReduceOp.MAX)
    assert mode.names == ["c10d.allreduce_.default"] * 2
    return x.tolist()


def test_modes_see_operators(pair):
    assert pair.run(seen_by_mode) == [[1.0, 3.0, 5.0, 7.0]] * 2


def late_results(rank):
    import cresset.distributed._functional_collectives as funcol

    late = funcol.all_reduce(_input(rank), "sum", dist.group.WORLD)
    dist.all_reduce(late)  # of a result that is under way
    return late.tolist()


def test_results_under_way_are_sent(pair):
    assert pair.run(late_results) == [[2.0, 6.0, 10.0, 14.0]] * 2


def coalesced(rank):
    def function(x):
        y = x * 2
        with dist._coalescing_manager(async_ops=True) as manager:
            dist.all_reduce(x)
            dist.all_reduce(y)
        manager.wait()
        return x + y

    program = cresset.export.export(_Module(function), (_input(rank),), strict=False)
    assert "_c10d_functional.all_reduce_coalesced.default" in _operators(program.graph_module)
    return program.module()(_input(rank)).tolist(), make_fx(function)(_input(rank))(_input(rank)).tolist()


def test_coalesced_collectives_are_recorded(pair):
    assert pair.run(coalesced) == [([3.0, 9.0, 15.0, 21.0],) * 2] * 2


def from_anyone(rank):
    with pytest.raises(RuntimeError, match="jit.trace: a trace cannot hold recv_any_source as it is called here"):
        cresset.jit.trace(lambda x: dist.recv(x), cresset.ones(2), check_trace=False)


def test_a_message_from_anyone_is_no_trace(pair):
    pair.run(from_anyone)


def counted(rank):
    from cresset.distributed.tensor.debug import CommDebugMode

    x = cresset.ones(4)
    with CommDebugMode() as mode:
        dist.all_reduce(x)
        dist.all_gather_into_tensor(cresset.empty(8), x)
        dist.barrier()
    return {str(op): count for op, count in mode.get_comm_counts().items()}


def test_comm_debug_mode_counts_c10d(pair):
    assert pair.run(counted) == [{"c10d.allreduce_": 1, "c10d._allgather_base_": 1}] * 2  # PyTorch 2.13's; no barrier
