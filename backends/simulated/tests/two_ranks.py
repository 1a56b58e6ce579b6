"""Two processes that are ranks of one job, for tests: what each function raised on which rank."""

import functools
import multiprocessing
import tempfile
import traceback
from datetime import timedelta


SCC = "cpu:gloo,simulated:scc"


def _rank(functions, rank, path, backend, timeout, answers):
    import cresset.distributed as dist
    import cresset_simulated  # noqa: F401  (registers scc)

    dist.init_process_group(backend, init_method=f"file://{path}", rank=rank, world_size=2, timeout=timedelta(seconds=timeout))
    for function in functions:
        try:
            answers.put((function.__name__, rank, "", function(rank)))
        except BaseException:
            answers.put((function.__name__, rank, traceback.format_exc(), None))
            break
    if dist.is_initialized():
        dist.destroy_process_group()


def run(*functions, backend=SCC, timeout=20.0, limit=60.0):
    """{name of a function: [result of rank 0, of rank 1]}: functions(rank) one after the other on both ranks.

    AssertionError with the traceback of the first that raised. A function that ends its process has no result.
    """
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        queues = [context.SimpleQueue() for _ in range(2)]
        processes = [context.Process(target=_rank, args=(functions, r, f"{folder}/store", backend, timeout, queues[r])) for r in range(2)]
        for process in processes:
            process.start()
        for process in processes:
            process.join(limit)
        late = [r for r, process in enumerate(processes) if process.is_alive()]
        for r in late:
            processes[r].kill()
        results = {function.__name__: [None, None] for function in functions}
        for queue in queues:
            while not queue.empty():
                name, rank, error, result = queue.get()
                assert not error, f"{name} on rank {rank}:\n{error}"
                results[name][rank] = result
    assert not late, f"ranks {late} did not end within {limit} s"
    return results


@functools.cache
def _together(functions, backend):
    return run(*functions, backend=backend)


def together(functions, function, backend=SCC):
    """The results of one of several functions, which share two processes."""
    return _together(functions, backend)[function.__name__]
