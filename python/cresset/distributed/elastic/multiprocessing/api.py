"""Ranks of one machine as processes of a function or of a program: started together, watched, ended together."""

import contextlib
import os
import signal
import sys
import threading
import time
import weakref
from abc import ABC, abstractmethod
from contextlib import nullcontext
from dataclasses import dataclass, field

import cresset.multiprocessing as mp

from cresset._logging import logger_of

from .errors import ProcessFailure, record
from .logs import DefaultLogsSpecs, LogsDest, LogsSpecs, Std, to_map
from .redirects import redirect_stderr, redirect_stdout
from .subprocess_handler import SubprocessHandler
from .tail_log import TailLog

__all__ = [
    "DefaultLogsSpecs", "LogsDest", "LogsSpecs", "MultiprocessContext", "PContext", "RunProcsResult", "SignalException", "Std", "SubprocessContext",
    "get_std_cm", "start_processes", "to_map",
]

_log = logger_of(__name__)
_SIGNALS = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"


class SignalException(Exception):
    """This process got a signal, `sigval`."""

    def __init__(self, msg, sigval):
        super().__init__(msg)
        self.sigval = sigval


def _terminate_process_handler(signum, frame):
    raise SignalException(f"Process {os.getpid()} got signal: {signum}", sigval=signal.Signals(signum))


_handlers_before = {}  # signal -> what handled it before the first context that is not closed yet
_open_contexts = weakref.WeakSet()


def _in_main_thread():
    return threading.current_thread() is threading.main_thread()


def _give_signals_back(context):
    """The last context that is closed leaves signals to who had them. Only the main thread can."""
    _open_contexts.discard(context)
    if _open_contexts or not _in_main_thread():
        return
    for number, handler in _handlers_before.items():
        if signal.getsignal(number) is _terminate_process_handler:
            signal.signal(number, handler)
    _handlers_before.clear()


@contextlib.contextmanager
def _signals_wait(context):
    """In the main thread the signals to handle become SignalException from the end of the block on: one that comes meanwhile would lose a process
    that was started and not noted yet, which nobody would end."""
    names = os.environ.get("TORCHELASTIC_SIGNALS_TO_HANDLE", _SIGNALS).split(",") if _in_main_thread() else []
    numbers, came = [getattr(signal, name.strip()) for name in names if name.strip()], []
    _open_contexts.add(context)
    for number in numbers:
        before = signal.signal(number, lambda signum, frame: came.append(signum))
        _handlers_before.setdefault(number, before)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, _terminate_process_handler)
    if came:
        _terminate_process_handler(came[0], None)


@dataclass
class RunProcsResult:
    """How ranks ended: values of functions, failures, and files of streams, by local rank."""

    return_values: dict = field(default_factory=dict)
    failures: dict = field(default_factory=dict)
    stdouts: dict = field(default_factory=dict)
    stderrs: dict = field(default_factory=dict)

    def is_failed(self):
        """Did one fail?"""
        return bool(self.failures)


def _validate_full_rank(d, nprocs, what):
    if not d.keys():
        raise RuntimeError(f"{what}: must not be empty")
    if set(d.keys()) != set(range(nprocs)):
        raise RuntimeError(f"{what}: local rank keys do not match [0, {nprocs})")


def get_std_cm(std_rd, redirect_fn):
    """The context for a stream's file; "" leaves it."""
    return redirect_fn(std_rd) if std_rd else nullcontext()


class PContext(ABC):
    """Processes of one entrypoint, one a local rank: `args` and `envs` by local rank."""

    def __init__(self, name, entrypoint, args, envs, logs_specs, log_line_prefixes=None):
        self.name, self.entrypoint, self.args, self.envs, self.nprocs = name, entrypoint, args, envs, len(args)
        files = logs_specs.reify(envs)
        self.stdouts, self.stderrs, self.error_files = files.stdouts, files.stderrs, files.error_files
        self._stdout_tail = TailLog(name, files.tee_stdouts, sys.stdout, log_line_prefixes)
        self._stderr_tail = TailLog(name, files.tee_stderrs, sys.stderr, log_line_prefixes)

    def start(self):
        """Start them. Signals of TORCHELASTIC_SIGNALS_TO_HANDLE become SignalException, in the main thread, until all contexts are closed."""
        with _signals_wait(self):
            self._start()
            self._stdout_tail.start()
            self._stderr_tail.start()

    @abstractmethod
    def _start(self):
        """Start the processes."""

    @abstractmethod
    def _poll(self):
        """The result when all ended well or one failed, else None."""

    def look(self):
        """Note who ended, so that it is known who was first."""

    def wait(self, timeout=-1, period=1):
        """The result when all ended well or one failed, looking every `period` seconds; None after `timeout` seconds (-1: no limit)."""
        if timeout == 0:
            return self._poll()
        end = sys.maxsize if timeout < 0 else time.monotonic() + timeout
        while time.monotonic() < end:
            result = self._poll()
            if result:
                return result
            time.sleep(period)
        return None

    @abstractmethod
    def pids(self):
        """{local rank: process id}."""

    @abstractmethod
    def _close(self, death_sig, timeout=30):
        """End those that run: by the signal, after `timeout` seconds by SIGKILL."""

    def close(self, death_sig=None, timeout=30):
        """End all that runs."""
        self._close(death_sig or signal.SIGTERM, timeout)
        self._stdout_tail.stop()
        self._stderr_tail.stop()
        _give_signals_back(self)


def _bind(pid, local_rank, local_world_size, numa_options):
    """Let a rank run on its processors, where that was asked for."""
    if numa_options is not None:
        from cresset.numa.binding import bind_process

        bind_process(pid, local_rank, local_world_size, numa_options)


@contextlib.contextmanager
def _bound(local_rank, local_world_size, numa_options):
    """Programs that this thread starts meanwhile run on the processors of a rank from their first instruction on."""
    mine = os.sched_getaffinity(0) if numa_options is not None and hasattr(os, "sched_getaffinity") else None  # Linux has it
    _bind(0, local_rank, local_world_size, numa_options)
    try:
        yield
    finally:
        if mine is not None:
            os.sched_setaffinity(0, mine)


def _wrap(local_rank, fn, args, envs, stdout_redirects, stderr_redirects, ret_vals, queue_finished_reading_event, numa_options=None):
    """In the process of a function."""
    _bind(0, local_rank, len(args), numa_options)
    with get_std_cm(stdout_redirects[local_rank], redirect_stdout), get_std_cm(stderr_redirects[local_rank], redirect_stderr):
        os.environ.update(envs[local_rank])
        value = record(fn)(*args[local_rank])
    ret_vals[local_rank].put(value)
    queue_finished_reading_event.wait()  # the value is in a pipe that ends with this process


class MultiprocessContext(PContext):
    """Processes of a function."""

    def __init__(self, name, entrypoint, args, envs, start_method, logs_specs, log_line_prefixes=None, numa_options=None):
        super().__init__(name, entrypoint, args, envs, logs_specs, log_line_prefixes)
        self.start_method, self._numa_options = start_method, numa_options
        context = mp.get_context(start_method)
        self._ret_vals = {rank: context.SimpleQueue() for rank in range(self.nprocs)}
        self._return_values, self._pc = {}, None
        self._worker_finished_event = context.Event()

    def _start(self):
        self._pc = mp.start_processes(
            fn=_wrap, args=(self.entrypoint, self.args, self.envs, self.stdouts, self.stderrs, self._ret_vals, self._worker_finished_event, self._numa_options),
            nprocs=self.nprocs, join=False, daemon=False, start_method=self.start_method,
        )  # fmt: skip

    def _is_done(self):
        return len(self._return_values) == self.nprocs

    def _poll(self):
        try:
            self._pc.join(-1)  # raises for a process that failed
            for rank, queue in self._ret_vals.items():
                if not queue.empty():
                    self._return_values[rank] = queue.get()
            if not self._is_done():
                return None
            self._worker_finished_event.set()
            while not self._pc.join():
                pass
            self.close()
            return RunProcsResult(self._return_values, stdouts=self.stdouts, stderrs=self.stderrs)
        except (mp.ProcessRaisedException, mp.ProcessExitedException) as error:
            rank = error.error_index
            process = self._pc.processes[rank]
            failure = ProcessFailure(rank, error.pid, process.exitcode, self.error_files[rank])
            _log.error("failed (exitcode: %s) local_rank: %s (pid: %s) of fn: %s", process.exitcode, rank, error.pid, self.entrypoint)
            self.close()
            return RunProcsResult(failures={rank: failure}, stdouts=self.stdouts, stderrs=self.stderrs)

    def pids(self):
        """{local rank: process id}."""
        return dict(enumerate(self._pc.pids()))

    def _close(self, death_sig, timeout=30):
        if not self._pc:
            return
        deadline = time.monotonic() + timeout
        for process in self._pc.processes:
            if process.is_alive():
                try:
                    os.kill(process.pid, death_sig)
                    os.kill(process.pid, signal.SIGCONT)  # a process that was stopped hears it then
                except ProcessLookupError:
                    pass
        for process in self._pc.processes:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                process.kill()
            process.join()


class SubprocessContext(PContext):
    """Processes of a program."""

    def __init__(self, name, entrypoint, args, envs, logs_specs, log_line_prefixes=None, numa_options=None):
        super().__init__(name, entrypoint, args, envs, logs_specs, log_line_prefixes)
        self._running, self._failures, self.subprocess_handlers = set(range(self.nprocs)), {}, {}
        self._numa_options = numa_options

    def _start(self):
        if self.subprocess_handlers:
            raise ValueError("The subprocess handlers already initialized. Most likely the start method got called twice.")
        for rank in range(self.nprocs):
            with _bound(rank, self.nprocs, self._numa_options):
                self.subprocess_handlers[rank] = SubprocessHandler(
                    self.entrypoint, self.args[rank], self.envs[rank], self.stdouts[rank], self.stderrs[rank], rank
                )

    def look(self):
        """See the base."""
        for rank in sorted(self._running):
            process = self.subprocess_handlers[rank].proc
            code = process.poll()
            if code is None:
                continue
            self._running.discard(rank)
            if code:
                failure = ProcessFailure(rank, process.pid, code, self.error_files[rank])
                failure.seen = time.time()
                logs = [file for file in (self.stdouts[rank], self.stderrs[rank]) if file and file != os.devnull]
                failure.log = logs[-1] if logs else ""
                self._failures[rank] = failure

    def _poll(self):
        self.look()
        if self._running and not self._failures:
            return None
        result = RunProcsResult(stdouts=self.stdouts, stderrs=self.stderrs, failures=dict(self._failures))
        if not self._failures:
            result.return_values = dict.fromkeys(range(self.nprocs))
        self.close()
        return result

    def pids(self):
        """{local rank: process id}."""
        return {rank: handler.proc.pid for rank, handler in self.subprocess_handlers.items()}

    def _close(self, death_sig, timeout=30):
        for handler in self.subprocess_handlers.values():
            handler.close(death_sig)
        deadline = time.monotonic() + timeout
        for handler in self.subprocess_handlers.values():
            while handler.proc.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            if handler.proc.poll() is None:
                handler.send(signal.SIGKILL)
            handler.proc.wait()


def start_processes(
    name, entrypoint, args, envs, logs_specs, log_line_prefixes=None, start_method="spawn", numa_options=None
):
    """Start a function, or a program by its path, as `len(args)` local ranks; a PContext.

    `args` and `envs` are by local rank, from 0 up (RuntimeError otherwise). What starts when not all can be started is ended. `numa_options`:
    cresset.numa.binding.NumaOptions, None for processors as they come.
    """
    nprocs = len(args)
    _validate_full_rank(args, nprocs, "args")
    _validate_full_rank(envs, nprocs, "envs")
    if isinstance(entrypoint, str):
        context = SubprocessContext(name, entrypoint, args, envs, logs_specs, log_line_prefixes, numa_options)
    else:
        context = MultiprocessContext(name, entrypoint, args, envs, start_method, logs_specs, log_line_prefixes, numa_options)
    try:
        context.start()
        return context
    except Exception:
        context.close()
        raise
