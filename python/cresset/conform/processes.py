"""Work spread over processes that have loaded the same backends. A process that ends, or hangs, costs the item it was at."""

import multiprocessing
import signal
import time
from multiprocessing import connection

import cresset
from cresset.testing.devices import load_backend

__all__ = ["ordered"]


def _serve(function, loads, threads, pipe):
    """What a process does: an item comes, its result goes back, with notes of where it is in between."""
    try:
        cresset.set_num_threads(threads)
        for path in loads:
            load_backend(path)
        pipe.send(("ready", None))
        while True:
            item = pipe.recv()
            try:
                pipe.send(("done", function(item, lambda place: pipe.send(("at", place)))))
            except Exception as error:
                pipe.send(("raised", error))
    except (EOFError, BrokenPipeError, KeyboardInterrupt):
        pass  # the card is done


class _Worker:
    """A process, the item it is at, and the last place that it told."""

    def __init__(self, context, function, loads, threads):
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(function, loads, threads, other), daemon=True)
        self.process.start()
        other.close()
        self.number = self.place = None
        self.since, self.ready = time.monotonic(), False

    def begin(self, number, item):
        self.number, self.place, self.since = number, None, time.monotonic()
        try:
            self.pipe.send(item)
        except BrokenPipeError:
            pass  # its end is read from the pipe

    def end(self):
        self.pipe.close()
        self.process.join(5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()

    def how_it_ended(self):
        self.process.join()
        code = self.process.exitcode
        return f"the process ended by {signal.Signals(-code).name}" if code < 0 else f"the process ended with status {code}"


def ordered(function, work, jobs, loads, lost=None, timeout=None):
    """Yields function(item, note) for each item, in their order, where note(place) says what it is at.

    Processes take the next item when they are done with one; they are new ones, not copies of this one, since a device does not survive a
    fork. When one ends, or is at one item for longer than `timeout` seconds, lost(item, place, how) is that item's result and another
    process goes on. Without `lost` everything runs here, in one process.
    """
    if lost is None:
        for item in work:
            yield function(item, lambda place: None)
        return
    context = multiprocessing.get_context("spawn")
    threads = max(1, cresset.get_num_threads() // jobs)
    workers, results, following, shown = [], {}, 0, 0

    def new_worker():
        return _Worker(context, function, tuple(loads), threads)

    try:
        workers = [new_worker() for _ in range(min(jobs, len(work)))]
        while shown < len(work):
            readable = connection.wait([w.pipe for w in workers], 1.0)
            for worker in list(workers):
                if worker.pipe not in readable:
                    if timeout is not None and worker.number is not None and time.monotonic() - worker.since > timeout:
                        worker.process.kill()
                        results[worker.number] = lost(work[worker.number], worker.place, f"it did not end within {timeout:g} s")
                        worker.end()
                        workers[workers.index(worker)] = new_worker()
                    continue
                try:
                    kind, value = worker.pipe.recv()
                except (EOFError, ConnectionResetError):
                    how = worker.how_it_ended()
                    if not worker.ready:
                        raise ChildProcessError(f"{how} while it loaded the backends.\nNext: run one of its operators in Python, outside of the card") from None
                    if worker.number is not None:
                        results[worker.number] = lost(work[worker.number], worker.place, how)
                    workers.remove(worker)
                    if following < len(work):
                        workers.append(new_worker())
                    continue
                if kind == "raised":
                    raise value
                if kind == "at":
                    worker.place = value
                    continue
                worker.ready = True
                if kind == "done":
                    results[worker.number] = value
                worker.number = None
                if following < len(work):
                    worker.begin(following, work[following])
                    following += 1
            while shown in results:
                yield results.pop(shown)
                shown += 1
    finally:
        for worker in workers:
            worker.end()
