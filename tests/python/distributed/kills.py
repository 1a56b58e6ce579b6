"""Ranks of small trainings are killed (SIGKILL) or stopped (SIGSTOP) at random times: every other rank has to end with one error that names the
victim, in time.

    python tests/python/distributed/kills.py 200        # so many kills, and the counts
"""

import json
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from datetime import timedelta

import cresset
import cresset.distributed as dist

TIMEOUT = 1.5  # seconds of the group
PATIENCE = 12  # seconds after the kill, in which all errors have to be there: the group's timeout twice, and a busy machine


def train(rank, size, path, pipe, seed):
    """Steps of a small module until an error comes: its words go into the pipe."""
    cresset.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=size, timeout=timedelta(seconds=TIMEOUT))
    module = cresset.nn.parallel.DistributedDataParallel(cresset.nn.Linear(8, 8))
    chance = random.Random(seed)  # the same on all ranks
    pipe.send("ready")
    try:
        while True:
            module(cresset.ones(2, 8)).sum().backward()
            kind = chance.choice(["few", "many", "barrier", "gather"])
            if kind == "barrier":
                dist.barrier()
            elif kind == "gather":
                dist.all_gather([cresset.empty(3) for _ in range(size)], cresset.ones(3))
            else:
                dist.all_reduce(cresset.ones(4 if kind == "few" else 100_000), async_op=chance.random() < 0.5)
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}")
    os._exit(0)


def one_kill(seed, size=3):
    """{"kind", "seconds", "wrong": what the others said that is not as it should be}."""
    chance = random.Random(seed)
    victim, number = chance.randrange(size), chance.choice([signal.SIGKILL, signal.SIGSTOP])
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        pipes, processes = [], []
        for rank in range(size):
            here, there = context.Pipe()
            process = context.Process(target=train, args=(rank, size, folder + "/store", there, seed), daemon=True)
            process.start()
            there.close()
            pipes.append(here)
            processes.append(process)
        wrong = []
        try:
            for rank, pipe in enumerate(pipes):
                if not pipe.poll(60) or pipe.recv() != "ready":
                    return {"kind": number.name, "seconds": 0, "wrong": [f"rank {rank} did not begin"]}
            time.sleep(chance.uniform(0, 0.2))
            os.kill(processes[victim].pid, number)
            begin = time.monotonic()
            for rank in set(range(size)) - {victim}:
                said = pipes[rank].recv() if pipes[rank].poll(max(0.1, begin + PATIENCE - time.monotonic())) else "nothing: it hangs"
                named = f"rank {victim} is gone" in said or f"rank {victim} did not take part" in said
                if not named or not said.startswith("DistBackendError: "):
                    wrong.append(f"rank {rank}, of which {victim} is the victim: {said}")
            return {"kind": number.name, "seconds": time.monotonic() - begin, "wrong": wrong}
        finally:
            for process in processes:
                process.kill()
            for process in processes:
                process.join()


def kills(count, seed=0):
    """(counts by kind and outcome, what was wrong, the longest wait)."""
    counts, wrong, longest = {}, [], 0.0
    for i in range(count):
        told = one_kill(seed + i)
        key = f"{told['kind']} {'named' if not told['wrong'] else 'wrong'}"
        counts[key] = counts.get(key, 0) + 1
        wrong += [f"seed {seed + i}: {text}" for text in told["wrong"]]
        longest = max(longest, told["seconds"])
    return counts, wrong, longest


if __name__ == "__main__":
    found, problems, seconds = kills(int(sys.argv[1]) if len(sys.argv) > 1 else 20, int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    print(json.dumps(found), f"longest {seconds:.1f} s", *problems, sep="\n")
    sys.exit(1 if problems else 0)
