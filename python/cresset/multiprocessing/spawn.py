"""A function in several new processes: `spawn`, `start_processes`, and what joins them."""

import concurrent.futures
import multiprocessing
import multiprocessing.connection
import os
import signal
import sys
import time
import traceback
import warnings

from cresset._logging import logger_of

__all__ = [
    "ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException", "SpawnContext", "spawn", "start_processes",
]  # fmt: skip


ENV_VAR_PARALLEL_START = "TORCH_MP_PARALLEL_START"  # "1": start_processes with "forkserver" starts all at once
_SECONDS_TO_TERMINATE = 30
_log = logger_of(__name__)


class ProcessException(Exception):
    """A process failed: its number among those started together, and its pid."""

    def __init__(self, msg, error_index, pid):
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """The function raised in a process; the message has the traceback from there."""

    def __init__(self, msg, error_index, error_pid):
        super().__init__(msg, error_index, error_pid)


class ProcessExitedException(ProcessException):
    """A process ended by a signal, or with an exit code of its own."""

    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _run(fn, index, args, errors):
    try:
        fn(index, *args)
    except KeyboardInterrupt:
        pass  # the parent was interrupted as well
    except Exception:
        errors.send(traceback.format_exc()[-15000:])  # nobody reads before the end, so it must fit into the pipe
        sys.exit(1)


class ProcessContext:
    """Processes that were started together."""

    def __init__(self, processes, errors):
        self.processes = processes
        self._errors = errors
        self.sentinels = {p.sentinel: i for i, p in enumerate(processes)}

    def pids(self):
        """The pids, by number."""
        return [p.pid for p in self.processes]

    def _stop_others(self, grace_period):
        end = time.monotonic() + (grace_period or 0)
        for p in self.processes:
            p.join(max(0.0, end - time.monotonic()))
        for p in self.processes:
            if p.is_alive():
                _log.warning("Terminating process %s via signal %s", p.pid, "SIGTERM")
                p.terminate()
        end = time.monotonic() + _SECONDS_TO_TERMINATE
        for p in self.processes:
            p.join(max(0.0, end - time.monotonic()))
            if p.is_alive():
                _log.warning("Unable to shutdown process %s via SIGTERM, forcefully exiting via SIGKILL", p.pid)
                p.kill()
                p.join()

    def join(self, timeout=None, grace_period=None):
        """Wait until one more process has ended; whether all have. When one failed the others get grace_period seconds
        to end by themselves, are terminated then, and killed when that does not help; a ProcessRaisedException or ProcessExitedException is raised."""
        if not self.sentinels:
            return True
        ready = multiprocessing.connection.wait(self.sentinels.keys(), timeout=timeout)
        failed = None
        for sentinel in ready:
            index = self.sentinels.pop(sentinel)
            self.processes[index].join()
            if self.processes[index].exitcode != 0 and failed is None:
                failed = index
        if failed is None:
            return not self.sentinels
        self._stop_others(grace_period)
        process = self.processes[failed]
        text = None
        try:
            if self._errors[failed].poll():
                text = self._errors[failed].recv()
        except EOFError:
            pass
        if text is not None:
            raise ProcessRaisedException(f"\n\n-- Process {failed} terminated with the following error:\n{text}", failed, process.pid)
        code = process.exitcode
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"<Unknown signal {-code}>"
            raise ProcessExitedException(f"process {failed} terminated with signal {name}", failed, process.pid, code, name)
        raise ProcessExitedException(f"process {failed} terminated with exit code {code}", failed, process.pid, code)


class SpawnContext(ProcessContext):
    """ProcessContext under its older name."""


def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Run fn(i, *args) in processes i = 0 … nprocs - 1; gives None when they have ended, or with join=False their ProcessContext.

    start_method: "spawn", "fork" or "forkserver". For "spawn" fn and args must be picklable; tensors among them are shared.
    """
    context = multiprocessing.get_context(start_method)

    def start(i):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_run, args=(fn, i, args, sender), daemon=daemon)
        process.start()
        sender.close()
        return process, receiver

    if start_method == "forkserver" and os.environ.get(ENV_VAR_PARALLEL_START, "0") == "1":
        with concurrent.futures.ThreadPoolExecutor(max(nprocs, 1)) as pool:
            started = list(pool.map(start, range(nprocs)))
    else:
        started = [start(i) for i in range(nprocs)]
    running = SpawnContext([p for p, _ in started], [r for _, r in started])
    if not join:
        return running
    while not running.join():
        pass
    return None


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """start_processes with new interpreters; another start_method only warns."""
    if start_method != "spawn":
        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}).\nTo use a different start_method use:\n\t\t"
            " torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
