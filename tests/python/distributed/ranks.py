"""Processes that run functions of a test file together: a pool of ranks for each file, forked once, with a default group.

    pool = Ranks(2, globals())
    pool.run(function, *arguments)   # in every rank, as function(rank, *arguments); their results in order

An error in a rank is raised here with the rank's traceback. Ranks that do not answer in time are killed.
"""

import multiprocessing
import tempfile
import time
import traceback
from datetime import timedelta

import cresset.distributed as dist

_LIMIT = 60  # seconds for one function


def _serve(rank, size, path, pipe, namespace, timeout):
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=rank, world_size=size, timeout=timeout)
    while True:
        message = pipe.recv()
        if message is None:
            break
        name, arguments = message
        try:
            pipe.send((True, namespace[name](rank, *arguments)))
        except BaseException as error:
            pipe.send((False, (f"{type(error).__name__}: {error}", traceback.format_exc())))
    dist.destroy_process_group()


class RankError(Exception):
    """What ranks raised, by rank: "Kind: words"."""

    def __init__(self, errors):
        super().__init__("\n".join(f"rank {rank}: {text}\n{trace}" for rank, (text, trace) in errors.items()))
        self.errors = {rank: text for rank, (text, trace) in errors.items()}


class Ranks:
    """A pool of `size` processes; `namespace` is the test file's globals()."""

    def __init__(self, size, namespace, timeout=timedelta(seconds=30)):
        context = multiprocessing.get_context("fork")
        self.folder = tempfile.TemporaryDirectory()
        self.pipes, self.processes = [], []
        for rank in range(size):
            here, there = context.Pipe()
            process = context.Process(target=_serve, args=(rank, size, self.folder.name + "/store", there, namespace, timeout), daemon=True)
            process.start()
            self.pipes.append(here)
            self.processes.append(process)

    def run(self, function, *arguments, ranks=None):
        """The results of function(rank, *arguments) in these ranks (all, without `ranks`)."""
        ranks = range(len(self.pipes)) if ranks is None else ranks
        for rank in ranks:
            self.pipes[rank].send((function.__name__, arguments))
        results, errors, deadline = [], {}, time.monotonic() + _LIMIT
        for rank in ranks:
            if not self.pipes[rank].poll(max(0.1, deadline - time.monotonic())):
                errors[rank] = (f"TimeoutError: no answer in {_LIMIT} s", "")
                continue
            good, value = self.pipes[rank].recv()
            results.append(value)
            if not good:
                errors[rank] = value
        if errors:
            raise RankError(errors)
        return results

    def close(self):
        for pipe, process in zip(self.pipes, self.processes):
            if process.is_alive():
                try:
                    pipe.send(None)
                except OSError:
                    pass
        for process in self.processes:
            process.join(5)
            if process.is_alive():
                process.kill()
        self.folder.cleanup()
