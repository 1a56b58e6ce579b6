"""Times all_reduce over Gloo: `cases.py MODULE RANKS`; prints one JSON object: per case, seconds a call (median, as rank 0 sees it).

The processes are on this host. Calls follow each other at once, as in training, so that a rank waits for the other, too.
"""

import importlib
import json
import multiprocessing
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

SIZES = {"4 B": 4, "1 kB": 2**10, "64 kB": 2**16, "1 MB": 2**20, "16 MB": 2**24}
WARM, SECONDS, FEWEST, MOST = 5, 0.3, 5, 200


def measure(T, size, asynchronous):
    """As many calls as fit into SECONDS on rank 0; it tells the others how many."""
    x = T.zeros(size // 4)

    def once():
        at = time.perf_counter()
        if asynchronous:
            T.distributed.all_reduce(x, async_op=True).wait()
        else:
            T.distributed.all_reduce(x)
        return time.perf_counter() - at

    calls = T.tensor(min(MOST, max(FEWEST, int(SECONDS / median(once() for _ in range(WARM))))))
    T.distributed.broadcast(calls, 0)
    return median(once() for _ in range(int(calls)))


def rank_main(module, rank, ranks, path, pipe):
    T = importlib.import_module(module)
    importlib.import_module(module + ".distributed")
    T.set_num_threads(1)
    T.distributed.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=ranks)
    figures = {}
    for kind in ("sync", "async"):
        for name, size in SIZES.items():
            figures[f"all_reduce {name}, {kind}"] = measure(T, size, kind == "async")
    if rank == 0:
        pipe.send(figures)
    T.distributed.destroy_process_group()


def main():
    module, ranks = sys.argv[1], int(sys.argv[2])
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store"
        processes = [context.Process(target=rank_main, args=(module, r, ranks, path, there), daemon=True) for r in range(ranks)]
        for process in processes:
            process.start()
        there.close()  # so that ranks that end early end the wait
        figures = here.recv()
        for process in processes:
            process.join()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
