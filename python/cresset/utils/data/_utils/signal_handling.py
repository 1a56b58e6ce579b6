"""How the death of a worker process reaches the process that loads: loaders of other libraries, whose workers answer by one shared queue, use this.

Cresset's own loader needs none of it: each of its workers has a pipe of its own, which ends with the worker.
"""

import faulthandler
import os
import signal
import sys
import threading

_pids = {}  # key of an iterator: the pids of its workers
_handler_set = False


def _set_worker_pids(loader_id, child_pids):
    """Watch these processes until _remove_worker_pids(loader_id)."""
    if loader_id in _pids:
        raise ValueError("_set_worker_pids should be called only once for each _BaseDataLoaderIter.")
    if not isinstance(child_pids, tuple):
        raise TypeError(f"_set_worker_pids expects a tuple for child_pids, but got {type(child_pids).__name__}.")
    _pids[loader_id] = set(child_pids)


def _remove_worker_pids(loader_id):
    """Watch them no longer."""
    if loader_id not in _pids:
        raise ValueError(f"Cannot find worker information for _BaseDataLoaderIter with id {loader_id}")
    del _pids[loader_id]


def _error_if_any_worker_fails():
    """RuntimeError that names a watched process which failed; each is reported once."""
    for pids in list(_pids.values()):
        for pid in list(pids):
            try:
                state = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:  # waited for already
                continue
            if state is None:
                continue
            if state.si_code == os.CLD_EXITED:
                if state.si_status == 0:
                    continue
                pids.clear()
                raise RuntimeError(
                    f"DataLoader worker (pid {pid}) exited unexpectedly with exit code {state.si_status}. Details are lost due to multiprocessing. "
                    "Rerunning with num_workers=0 may give better error trace."
                )
            if state.si_code in (os.CLD_KILLED, os.CLD_DUMPED):
                pids.clear()
                raise RuntimeError(f"DataLoader worker (pid {pid}) is killed by signal: {signal.strsignal(state.si_status)}. ")


def _set_SIGCHLD_handler():
    """Let the main thread raise that error as soon as a process ends. A handler that was there is called afterwards."""
    global _handler_set
    if _handler_set or not hasattr(signal, "SIGCHLD") or threading.current_thread() is not threading.main_thread():
        return
    previous = signal.getsignal(signal.SIGCHLD)
    previous = previous if callable(previous) else None

    def ended(signum, frame):
        if not sys.modules[__package__].python_exit_status:  # then workers are ended
            _error_if_any_worker_fails()
        if previous is not None:
            previous(signum, frame)

    signal.signal(signal.SIGCHLD, ended)
    _handler_set = True


def _set_worker_signal_handlers():
    """In a worker: where it stood is printed when memory or arithmetic kills it; SIGTERM ends it; the loader's own handler is not its."""
    faulthandler.enable()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if hasattr(signal, "SIGCHLD"):
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
