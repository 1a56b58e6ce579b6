"""Times collectives and steps of training over Gloo: `cases.py MODULE RANKS`; prints one JSON object: per case, seconds a call (median, as
rank 0 sees it).

The processes are on this host. Calls follow each other at once, as in training, so that a rank waits for the other, too.
"""

import copy
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


def measure(T, call):
    """As many calls as fit into SECONDS on rank 0; it tells the others how many."""

    def once():
        at = time.perf_counter()
        call()
        return time.perf_counter() - at

    calls = T.tensor(min(MOST, max(FEWEST, int(SECONDS / median(once() for _ in range(WARM))))))
    T.distributed.broadcast(calls, 0)
    return median(once() for _ in range(int(calls)))


def collectives(T, ranks):
    """Name -> call."""
    dist, found = T.distributed, {}
    for name, size in SIZES.items():
        x = T.zeros(size // 4)
        found[f"all_reduce {name}"] = lambda x=x: dist.all_reduce(x)
        found[f"all_reduce {name}, async"] = lambda x=x: dist.all_reduce(x, async_op=True).wait()
    part, whole = T.zeros(2**16), T.zeros(2**16 * ranks)
    found["all_gather_into_tensor 256 kB"] = lambda: dist.all_gather_into_tensor(whole, part)
    found["reduce_scatter_tensor 256 kB"] = lambda: dist.reduce_scatter_tensor(part, whole)
    found["broadcast 256 kB"] = lambda: dist.broadcast(part, 0)
    found["all_to_all_single 256 kB"] = lambda: dist.all_to_all_single(whole, whole.clone())
    found["barrier"] = dist.barrier
    found["all_gather_object"] = lambda: dist.all_gather_object([None] * ranks, {"rank": 0})
    return found


def networks(T):
    """Name -> (a module, a batch)."""
    nn = T.nn
    convolutions = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(64 * 49, 128), nn.ReLU(), nn.Linear(128, 10),
    )  # fmt: skip
    layer = nn.TransformerEncoderLayer(128, 4, 512, batch_first=True, dropout=0.0)
    return {
        "small CNN": (convolutions, T.randn(32, 1, 28, 28)),
        "transformer 4x128": (nn.TransformerEncoder(layer, 4, enable_nested_tensor=False), T.randn(8, 64, 128)),
    }


def sharded(T, module):
    """The module with its parameters divided among the ranks, each layer on its own (FSDP2)."""
    importlib.import_module(T.__name__ + ".distributed.fsdp")
    mesh = T.distributed.device_mesh.init_device_mesh("cpu", (T.distributed.get_world_size(),))
    for layer in [*getattr(module, "layers", []), module]:
        T.distributed.fsdp.fully_shard(layer, mesh=mesh)
    return module


def steps(T):
    """Name -> a step of training; "alone" is the step without other ranks, which share the machine."""
    kinds = {"alone": lambda module: module, "DDP": T.nn.parallel.DistributedDataParallel, "fully_shard": lambda module: sharded(T, module)}
    found = {}
    for name, (module, batch) in networks(T).items():
        for kind, wrap in kinds.items():
            wrapped = wrap(copy.deepcopy(module))
            optimizer = T.optim.SGD(wrapped.parameters(), 0.01)

            def step(wrapped=wrapped, batch=batch, optimizer=optimizer):
                optimizer.zero_grad()
                wrapped(batch).pow(2).mean().backward()
                optimizer.step()

            found[f"step of {name}, {kind}"] = step
    return found


def rank_main(module, rank, ranks, path, pipe):
    begin = time.perf_counter()
    T = importlib.import_module(module)
    importlib.import_module(module + ".distributed")
    T.set_num_threads(1)
    T.distributed.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=ranks)
    T.distributed.barrier()
    figures = {"from import to a group": time.perf_counter() - begin}
    figures |= {name: measure(T, call) for name, call in (collectives(T, ranks) | steps(T)).items()}
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
