"""Collectives in what compile() captures: PyTorch's operators, the answers of calls that are not compiled, and ranks that compile at different times."""

import collective_programs as programs
import pytest

import cresset
import cresset.distributed as dist
import cresset.distributed._functional_collectives as funcol


def _all_reduce(x):
    y = x * 2
    dist.all_reduce(y, op=dist.ReduceOp.MAX)
    return y + 1


def _all_to_all_single(x):
    out = cresset.empty(4)
    dist.all_to_all_single(out, x * 2)
    return out + 1


def _functional(x):
    return funcol.all_reduce(x * 2, "sum", dist.group.WORLD) + 1


def _functional_gather(x):
    return funcol.all_gather_tensor(x * 2, 0, dist.group.WORLD) + 1


def _rank(x):
    return x * (dist.get_rank() + 1) + dist.get_world_size()


# Results of PyTorch 2.13 on ranks 0 and 1 of two for x = [0, 1, 2, 3] + rank, and the collective in its compiler's graph.
CASES = {
    "all_reduce": (_all_reduce, [[3.0, 5.0, 7.0, 9.0]] * 2, "all_reduce"),
    "all_gather": (programs.all_gather, [[4.0, 10.0, 16.0, 22.0]] * 2, "all_gather_into_tensor"),
    "all_gather_into_tensor": (programs.all_gather_into_tensor, [[1.0, 3.0, 5.0, 7.0, 3.0, 5.0, 7.0, 9.0]] * 2, "all_gather_into_tensor"),
    "reduce_scatter_tensor": (programs.reduce_scatter_tensor, [[3.0, 7.0], [11.0, 15.0]], "reduce_scatter_tensor"),
    "all_to_all_single": (_all_to_all_single, [[1.0, 3.0, 3.0, 5.0], [5.0, 7.0, 7.0, 9.0]], "all_to_all_single"),
    "functional": (_functional, [[3.0, 7.0, 11.0, 15.0]] * 2, "all_reduce"),
    "functional_gather": (_functional_gather, [[1.0, 3.0, 5.0, 7.0, 3.0, 5.0, 7.0, 9.0]] * 2, "all_gather_into_tensor"),
    "rank": (_rank, [[2.0, 3.0, 4.0, 5.0], [4.0, 6.0, 8.0, 10.0]], None),
}  # fmt: skip


def _input(rank):
    return cresset.arange(4.0) + rank


def compiled(rank, name, backend):
    function, wanted, collective = CASES[name]
    graphs = []

    def recording(module, examples):
        graphs.append([str(node.target) for node in module.graph.nodes if node.op == "call_function"])
        return module.forward

    program = cresset.compile(function, backend=recording if backend == "recording" else backend, fullgraph=True)
    results = [program(_input(rank)).tolist() for _ in range(3)]
    assert results == [wanted[rank]] * 3, results
    if graphs and collective:
        at = graphs[0].index(f"_c10d_functional.{collective}")
        assert graphs[0][at + 1] == "_c10d_functional.wait_tensor" and len(graphs) == 1


@pytest.mark.parametrize("backend", ["recording", "eager", "inductor"])
@pytest.mark.parametrize("name", CASES)
def test_graphs_and_answers(pair, name, backend):
    pair.run(compiled, name, backend)


def compiled_by_one(rank):
    """Rank 1 captures at its second and third call, rank 0 at its first alone: there are as many collectives on both."""
    results = []
    for backend in ("inductor", "eager"):
        program = cresset.compile(_all_reduce, backend=backend, dynamic=False)
        for scale in (1, 2):
            plain = rank == 1 and scale == 1
            x = _input(rank) * scale
            results.append((_all_reduce if plain else program)(x).tolist())
        x = _input(rank)
        y = (x if rank == 0 else x.double().float()) * 3
        results.append(program(y.clone()).tolist())
    return results


def test_ranks_compile_at_different_times(pair):
    wanted = [[(2 * (i + 1)) * scale + 1.0 for i in range(4)] for scale in (1, 2, 3)] * 2
    assert pair.run(compiled_by_one) == [wanted] * 2


def refused(rank):
    """One rank's capture fails behind a collective, and the call runs as it is."""

    def function(x):
        y = x * 2
        dist.all_reduce(y)
        if rank == 0:
            print("", end="")
        return y + 1

    program = cresset.compile(function)
    results = [program(_input(rank)).tolist() for _ in range(2)]
    direct = cresset.compile(lambda x: cresset.ops._c10d_functional.wait_tensor(cresset.ops._c10d_functional.all_reduce(x, "sum", "0")) if rank else _sum(x))
    return [*results, direct(_input(rank)).tolist()]


def _sum(x):
    total = cresset.ops._c10d_functional.wait_tensor(cresset.ops._c10d_functional.all_reduce(x, "sum", "0"))
    print("", end="")
    return total


def test_a_capture_that_fails_has_not_communicated(pair):
    assert pair.run(refused) == [[[3.0, 7.0, 11.0, 15.0]] * 2 + [[1.0, 3.0, 5.0, 7.0]]] * 2


def gradients(rank):
    results = []
    for backend in ("eager", "inductor"):
        x = _input(rank).requires_grad_()
        y = cresset.compile(_functional, backend=backend)(x)
        (y * y).sum().backward()
        results.append((y.tolist(), x.grad.tolist()))

        def written(x):
            z = x * 2
            dist.all_reduce(z)
            return z

        for f in (written, cresset.compile(written, backend=backend)):  # no gradient flows through it
            x = _input(rank).requires_grad_()
            (f(x) * (rank + 1)).sum().backward()
            results.append(x.grad.tolist())
    return results


def test_gradients(pair):
    functional = ([3.0, 7.0, 11.0, 15.0], [24.0, 56.0, 88.0, 120.0])  # PyTorch 2.13's
    for rank, got in enumerate(pair.run(gradients)):
        plain = [2.0 * (rank + 1)] * 4
        assert got == [functional, plain, plain] * 2


WORDS = {
    "async": (lambda x: dist.all_reduce(x * 2, async_op=True), r"compile: fullgraph: async_op=True of a collective"),
    "broadcast": (lambda x: dist.broadcast(x * 2, 0), r"compile: fullgraph: calls broadcast, which no graph of a capture has"),
    "barrier": (lambda x: (x, dist.barrier()), r"compile: fullgraph: calls barrier, which no graph of a capture has"),
}


def words(rank):
    for function, text in WORDS.values():
        with pytest.raises(Exception, match=text):
            cresset.compile(function, fullgraph=True)(_input(rank))


def test_words(pair):
    pair.run(words)


def other_group(rank):
    """A function that is captured with one group and called with another."""
    mine = dist.new_group([rank], use_local_synchronization=True)

    def function(x, group):
        return funcol.all_reduce(x, "sum", group) * dist.get_world_size(group)

    program = cresset.compile(function)
    return [program(_input(rank), group).tolist() for group in (dist.group.WORLD, mine, dist.group.WORLD)]


def test_groups_are_guarded(pair):
    both = [2.0, 6.0, 10.0, 14.0]
    assert pair.run(other_group) == [[both, [0.0, 1.0, 2.0, 3.0], both], [both, [1.0, 2.0, 3.0, 4.0], both]]
