"""Timers: a client acquires one for a scope and releases it; a server ends the process whose timer expires."""

import abc
import threading
import time
from contextlib import contextmanager
from inspect import getframeinfo, stack

from cresset._logging import logger_of

__all__ = ["RequestQueue", "TimerClient", "TimerRequest", "TimerServer", "configure", "expires"]

_log = logger_of(__name__)


class TimerRequest:
    """A worker's timer of a scope: it expires at a time.time(), or is released by one below 0."""

    __slots__ = ["expiration_time", "scope_id", "worker_id"]

    def __init__(self, worker_id, scope_id, expiration_time):
        self.worker_id, self.scope_id, self.expiration_time = worker_id, scope_id, expiration_time

    def __eq__(self, other):
        return isinstance(other, TimerRequest) and all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    __hash__ = None


class TimerClient(abc.ABC):
    """The worker's side."""

    @abc.abstractmethod
    def acquire(self, scope_id, expiration_time):
        """Begin a timer, or begin it anew."""

    @abc.abstractmethod
    def release(self, scope_id):
        """End it."""


class RequestQueue(abc.ABC):
    """Requests on their way to the server."""

    @abc.abstractmethod
    def size(self):
        """About how many there are."""

    @abc.abstractmethod
    def get(self, size, timeout):
        """Up to `size` requests, which come within `timeout` seconds."""


class TimerServer(abc.ABC):
    """The server's side: looks every `max_interval` seconds on a thread of its own, and ends workers whose timers expired."""

    def __init__(self, request_queue, max_interval, daemon=True):
        self._request_queue, self._max_interval, self._daemon = request_queue, max_interval, daemon
        self._watchdog_thread, self._stop_signaled = None, False

    @abc.abstractmethod
    def register_timers(self, timer_requests):
        """Begin and end timers."""

    @abc.abstractmethod
    def clear_timers(self, worker_ids):
        """Forget all timers of workers."""

    @abc.abstractmethod
    def get_expired_timers(self, deadline):
        """{worker: requests} of those that expired by then."""

    @abc.abstractmethod
    def _reap_worker(self, worker_id):
        """End a worker; whether it is gone."""

    def _reap_worker_no_throw(self, worker_id):
        try:
            return self._reap_worker(worker_id)
        except Exception:
            _log.exception("Uncaught exception thrown from _reap_worker(), check that the implementation correctly catches exceptions")
            return True

    def _watchdog_loop(self):
        while not self._stop_signaled:
            try:
                self._run_watchdog()
            except Exception:
                _log.exception("Error running watchdog")

    def _run_watchdog(self):
        self.register_timers(self._request_queue.get(max(1, self._request_queue.size()), self._max_interval))
        gone = set()
        for worker_id, expired in self.get_expired_timers(time.time()).items():
            _log.info("Reaping worker_id=[%s]. Expired timers: %s", worker_id, [request.scope_id for request in expired])
            if self._reap_worker_no_throw(worker_id):
                gone.add(worker_id)
        self.clear_timers(gone)

    def start(self):
        """Begin to look."""
        self._watchdog_thread = threading.Thread(target=self._watchdog_loop, daemon=self._daemon)
        self._watchdog_thread.start()

    def stop(self):
        """End, when the thread has looked for the last time."""
        self._stop_signaled = True
        if self._watchdog_thread:
            self._watchdog_thread.join(self._max_interval)
            self._watchdog_thread = None


_timer_client = None


def configure(timer_client):
    """The client of this process for expires()."""
    global _timer_client
    _timer_client = timer_client


@contextmanager
def expires(after, scope=None, client=None):
    """The body may take `after` seconds. `scope` is file and line where none is given. RuntimeError without a client: configure(client)."""
    client = client or _timer_client
    if client is None:
        raise RuntimeError("Configure timer client before using countdown timers.")
    if scope is None:
        caller = getframeinfo(stack()[2][0])
        scope = f"{caller.filename}#{caller.lineno}"
    client.acquire(scope, time.time() + after)
    try:
        yield
    finally:
        client.release(scope)
