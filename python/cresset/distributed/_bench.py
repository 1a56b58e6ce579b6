"""`cresset bench comm`: how long collectives take by size, a model fitted to that, and what it says of more ranks; how a store grows with clients.

The model is alpha-beta: a collective of n bytes takes `steps * alpha + factor * n / bandwidth`, with the steps and the factor of the algorithm for
so many ranks (ring; binomial tree for broadcast and barrier). Alpha and bandwidth come from the ranks that were there. What it says of other numbers of
ranks is a model: it knows no other network, no congestion and no slow rank.
"""

import argparse
import json
import math
import multiprocessing
import os
import sys
import tempfile
import threading
import time

import cresset
import cresset.distributed as dist

__all__ = ["fit", "main", "measure", "project", "store_growth"]

SIZES = (64, 1024, 16_384, 262_144, 4_194_304)


def _log(p):
    return math.ceil(math.log2(p)) if p > 1 else 0


# name: (steps for p ranks, bytes that pass through a rank for each byte of the tensor, the call)
COLLECTIVES = {
    "all_reduce": (lambda p: 2 * (p - 1), lambda p: 2 * (p - 1) / p, lambda x, parts: dist.all_reduce(x)),
    "all_gather_into_tensor": (lambda p: p - 1, lambda p: (p - 1) / p, lambda x, parts: dist.all_gather_into_tensor(x, parts[0])),
    "reduce_scatter_tensor": (lambda p: p - 1, lambda p: (p - 1) / p, lambda x, parts: dist.reduce_scatter_tensor(parts[0], x)),
    "all_to_all_single": (lambda p: p - 1, lambda p: (p - 1) / p, lambda x, parts: dist.all_to_all_single(x, x.clone())),
    "broadcast": (_log, _log, lambda x, parts: dist.broadcast(x, 0)),
    "barrier": (_log, lambda p: 0, lambda x, parts: dist.barrier()),
}


def measure(name, size, seconds=0.3):
    """Seconds of one call with a tensor of `size` bytes: the least of three averages. All ranks of the default group call it."""
    _, _, call = COLLECTIVES[name]
    world = dist.get_world_size()
    count = max(world, size // 4 // world * world)
    x = cresset.ones(count)
    parts = x.view(world, -1)
    parts = [parts[0].clone()]

    def average(times):
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(times):
            call(x, parts)
            x.fill_(1.0)
        return (time.perf_counter() - begin) / times

    once = cresset.tensor([average(3)])
    dist.all_reduce(once, op=dist.ReduceOp.MAX)  # all make as many calls
    times = int(min(200, max(3, seconds / 3 / max(once.item(), 1e-6))))
    return min(average(times) for _ in range(3))


def fit(points):
    """(seconds for no bytes, seconds a byte) of [(bytes, seconds), …], both from 0 up: least squares of relative errors."""
    weights = [1 / t**2 for _, t in points]
    sw, sn, snn, st, snt = (sum(w * v for w, v in zip(weights, values)) for values in (
        [1] * len(points), [n for n, _ in points], [n * n for n, _ in points], [t for _, t in points], [n * t for n, t in points],
    ))  # fmt: skip
    determinant = sw * snn - sn * sn
    if determinant <= 1e-12 * sw * snn:
        return st / sw, 0.0
    slope = (sw * snt - sn * st) / determinant
    start = (st - slope * sn) / sw
    if slope < 0:
        return st / sw, 0.0
    return (start, slope) if start >= 0 else (0.0, snt / snn)


def project(name, start, slope, world, size, ranks):
    """Seconds of a collective of `size` bytes on `ranks` ranks, by the model, from what `world` ranks took."""
    steps, factor, _ = COLLECTIVES[name]
    alpha = start / steps(world) if steps(world) else 0.0
    per_byte = slope / factor(world) if factor(world) else 0.0
    return alpha * steps(ranks) + per_byte * factor(ranks) * size


def store_growth(clients):
    """Seconds that `clients` connections to one TCPStore need to come, to tell a value each and to read those of all."""
    server = dist.TCPStore("localhost", 0, None, True, wait_for_workers=False)
    keys, problems = [f"rank{i}" for i in range(clients)], []

    def client(i):
        try:
            store = dist.TCPStore("localhost", server.port, None, False, wait_for_workers=False)
            store.set(keys[i], str(i))
            if store.multi_get(keys)[-1] != str(clients - 1).encode():
                problems.append(f"client {i} read another value")
        except Exception as error:
            problems.append(f"client {i}: {error}")

    threads = [threading.Thread(target=client, args=(i,)) for i in range(clients)]
    begin = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - begin
    if problems:
        raise RuntimeError(f"{len(problems)} of {clients} clients failed; {problems[0]}")
    return took


def _measured(sizes):
    found = {}
    for name in COLLECTIVES:
        points = [(n, measure(name, n)) for n in (sizes if name != "barrier" else sizes[:1])]
        found[name] = {"points": points, "fit": fit(points)}
    return found


def _rank(rank, world, path, sizes, results):
    cresset.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=world)
    found = _measured(sizes)
    if rank == 0:
        results.put(found)
    dist.destroy_process_group()


def _on_forks(world, sizes):
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        ranks = [context.Process(target=_rank, args=(r, world, folder + "/store", sizes, results)) for r in range(world)]
        for process in ranks:
            process.start()
        found = results.get()
        for process in ranks:
            process.join()
    return found


def _print(found, world, ranks):
    print(f"{world} ranks measured; the column of {ranks} ranks is a model (alpha-beta), not a measurement.\n")
    print(f"{'':24}{'bytes':>10}{'measured':>12}{'fitted':>12}{f'{ranks} ranks':>14}")
    for name, told in found.items():
        start, slope = told["fit"]
        for n, seconds in told["points"]:
            projected = project(name, start, slope, world, n, ranks)
            print(f"{name:24}{n:10}{seconds * 1e6:10.0f} us{(start + slope * n) * 1e6:9.0f} us{projected * 1e6:11.0f} us")
        steps, factor, _ = COLLECTIVES[name]
        alpha = start / steps(world) * 1e6 if steps(world) else 0
        speed = f", {factor(world) / slope / 1e9:.2f} GB/s" if slope and factor(world) else ""
        print(f"{'':24}alpha {alpha:.0f} us a step{speed}\n")


def main(args=None):
    """The command; its exit status."""
    parser = argparse.ArgumentParser(prog="cresset bench comm", description="Times of collectives, a model of them, and how a store grows.")
    parser.add_argument("--ranks", type=int, default=2, help="ranks on this machine (default 2); under a launcher those that are there")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="bytes of the tensors")
    parser.add_argument("--project", type=int, default=1024, help="ranks for the model (default 1024)")
    parser.add_argument("--store", default="", help="clients of one store in place of collectives: 16,64,256")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(args)
    if options.store:
        grown = {int(n): store_growth(int(n)) for n in options.store.split(",")}
        print(json.dumps(grown) if options.json else "\n".join(f"{n:6} clients: {seconds * 1e3:8.1f} ms, {seconds / n * 1e6:6.0f} us each" for n, seconds in grown.items()))
        return 0
    sizes = [int(n) for n in options.sizes.split(",")]
    if options.ranks < 2 or options.project < 2:
        parser.error("at least 2 ranks were required")
    world = options.ranks
    if "WORLD_SIZE" in os.environ and "RANK" in os.environ:
        dist.init_process_group("gloo")
        world, found, rank = dist.get_world_size(), _measured(sizes), dist.get_rank()
        dist.destroy_process_group()
        if rank:
            return 0
    else:
        found = _on_forks(world, sizes)
    if options.json:
        for name, told in found.items():
            told["projected"] = [(n, project(name, *told["fit"], world, n, options.project)) for n, _ in told["points"]]
        print(json.dumps({"ranks": world, "projected_ranks": options.project, "model": "alpha-beta", "collectives": found}))
    else:
        _print(found, world, options.project)
    return 0


if __name__ == "__main__":
    sys.exit(main())
