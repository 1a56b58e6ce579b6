"""Work spread over processes that have loaded the same backends."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import cresset
from cresset.testing.devices import load_backend

__all__ = ["ordered"]


def _begin(loads, threads):
    cresset.set_num_threads(threads)
    for path in loads:
        load_backend(path)


def ordered(function, work, jobs, loads):
    """Yields function(item) for each item, in their order. Processes take the next item when they are done with one; they are new ones, not
    copies of this one, since a device does not survive a fork. With one job everything runs here."""
    if jobs == 1:
        yield from map(function, work)
        return
    threads = max(1, cresset.get_num_threads() // jobs)
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _begin, (tuple(loads), threads))
    try:
        yield from pool.map(function, work)
    except BrokenProcessPool as error:
        raise ChildProcessError("a process of the card ended before its work was done.\nNext: run with --jobs 1 --verbose, which names the operator") from error
    finally:
        pool.shutdown(cancel_futures=True)
