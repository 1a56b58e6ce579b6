"""Timers of processes of this machine, over a queue of multiprocessing."""

import os
import signal
import time
from queue import Empty

from .api import RequestQueue, TimerClient, TimerRequest, TimerServer

__all__ = ["LocalTimerClient", "LocalTimerServer", "MultiprocessingRequestQueue"]


class LocalTimerClient(TimerClient):
    """Timers of this process."""

    def __init__(self, mp_queue):
        self._mp_queue = mp_queue

    def acquire(self, scope_id, expiration_time):
        """See the base."""
        self._mp_queue.put(TimerRequest(os.getpid(), scope_id, expiration_time))

    def release(self, scope_id):
        """See the base."""
        self._mp_queue.put(TimerRequest(os.getpid(), scope_id, -1))


class MultiprocessingRequestQueue(RequestQueue):
    """Requests in a queue of multiprocessing."""

    def __init__(self, mp_queue):
        self._mp_queue = mp_queue

    def size(self):
        """See the base."""
        return self._mp_queue.qsize()

    def get(self, size, timeout):
        """See the base."""
        requests, end = [], time.monotonic() + timeout
        while len(requests) < size and (left := end - time.monotonic()) > 0:
            try:
                requests.append(self._mp_queue.get(block=True, timeout=left))
            except Empty:
                break
        return requests


class LocalTimerServer(TimerServer):
    """Ends processes of this machine by SIGKILL."""

    def __init__(self, mp_queue, max_interval=60, daemon=True):
        super().__init__(MultiprocessingRequestQueue(mp_queue), max_interval, daemon)
        self._timers = {}

    def register_timers(self, timer_requests):
        """See the base."""
        for request in timer_requests:
            key = (request.worker_id, request.scope_id)
            if request.expiration_time < 0:
                self._timers.pop(key, None)
            else:
                self._timers[key] = request

    def clear_timers(self, worker_ids):
        """See the base."""
        self._timers = {key: request for key, request in self._timers.items() if key[0] not in worker_ids}

    def get_expired_timers(self, deadline):
        """See the base."""
        expired = {}
        for request in self._timers.values():
            if request.expiration_time <= deadline:
                expired.setdefault(request.worker_id, []).append(request)
        return expired

    def _reap_worker(self, worker_id):
        try:
            os.kill(worker_id, signal.SIGKILL)
            return True
        except ProcessLookupError:
            return True
        except OSError:
            return False
