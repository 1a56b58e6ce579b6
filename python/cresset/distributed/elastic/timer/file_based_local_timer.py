"""Timers of processes of this machine, over a named pipe: for workers that share nothing with the server but a path."""

import io
import json
import os
import select
import signal
import threading
import time

from cresset._logging import logger_of

from .api import TimerClient, TimerRequest
from .debug_info_logging import log_debug_info_for_expired_timers

__all__ = ["FileTimerClient", "FileTimerRequest", "FileTimerServer"]

_log = logger_of(__name__)


class FileTimerRequest(TimerRequest):
    """A process's timer of a scope, and the signal it gets when that expires; 0 for none."""

    __slots__ = ["signal", "version"]

    def __init__(self, worker_pid, scope_id, expiration_time, signal=0):
        super().__init__(worker_pid, scope_id, expiration_time)
        self.version, self.signal = 1, int(signal)

    @property
    def worker_pid(self):
        """The process."""
        return self.worker_id

    def __eq__(self, other):
        return isinstance(other, FileTimerRequest) and super().__eq__(other) and self.signal == other.signal

    __hash__ = None

    def to_json(self):
        """One line of JSON."""
        return json.dumps(
            {"version": self.version, "pid": self.worker_id, "scope_id": self.scope_id, "expiration_time": self.expiration_time, "signal": self.signal}
        )


class FileTimerClient(TimerClient):
    """Timers of this process. A scope and a path take no more than a pipe writes at once, so that requests do not mix."""

    def __init__(self, file_path, signal=signal.SIGKILL):
        self._file_path, self.signal = file_path, signal

    def _send_request(self, request):
        """BrokenPipeError where no server reads."""
        text = (request.to_json() + "\n").encode()
        if len(text) > select.PIPE_BUF:
            raise RuntimeError(f"FileTimerClient: a request of at most {select.PIPE_BUF} bytes was required; this one has {len(text)}.")
        try:
            pipe = os.open(self._file_path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            raise BrokenPipeError("Could not send the FileTimerRequest because FileTimerServer is not available.") from error
        try:
            os.set_blocking(pipe, True)
            os.write(pipe, text)
        finally:
            os.close(pipe)

    def acquire(self, scope_id, expiration_time):
        """See the base."""
        self._send_request(FileTimerRequest(os.getpid(), scope_id, expiration_time, self.signal))

    def release(self, scope_id):
        """See the base."""
        self._send_request(FileTimerRequest(os.getpid(), scope_id, -1))


class FileTimerServer:
    """Reads requests from the named pipe, which it makes, and sends the signals of timers that expire; timers of processes that ended go."""

    def __init__(self, file_path, run_id, max_interval=10, daemon=True, log_event=None):
        self._file_path, self._run_id, self._max_interval, self._daemon = file_path, run_id, max_interval, daemon
        self._timers, self._request_count, self._stop_signaled, self._run_once = {}, 0, False, False
        self._watchdog_thread, self._is_client_started = None, False
        self._log_event = log_event or (lambda name, request: None)
        self._partial = b""
        if os.path.exists(file_path):
            os.remove(file_path)
        os.mkfifo(file_path)

    def start(self):
        """Begin to look."""
        # Open before it returns, so that clients find a reader.
        self._watchdog_thread = threading.Thread(target=self._watchdog_loop, args=(self._open(),), daemon=self._daemon)
        self._watchdog_thread.start()

    def stop(self):
        """End; the pipe is removed."""
        self._stop_signaled = True
        if self._watchdog_thread:
            self._watchdog_thread.join()
            self._watchdog_thread = None
        if os.path.exists(self._file_path):
            os.remove(self._file_path)

    def run_once(self):
        """End the thread, and do now what there is to do."""
        self._run_once = True
        if self._watchdog_thread:
            self._watchdog_thread.join()
            self._watchdog_thread = None
        self._run_once = False
        if os.path.exists(self._file_path):
            pipe = self._open()
            try:
                self._run_watchdog(pipe)
            finally:
                pipe.close()

    def _open(self):
        # For writing, too, so that the pipe does not end between two clients.
        return os.fdopen(os.open(self._file_path, os.O_RDWR | os.O_NONBLOCK), "rb", buffering=0)

    def _watchdog_loop(self, pipe):
        with pipe:
            while not self._stop_signaled:
                try:
                    self._run_watchdog(pipe)
                except Exception:
                    _log.exception("Error running watchdog")
                if self._run_once:
                    return

    def _get_requests(self, pipe, seconds):
        end, lines = time.monotonic() + seconds, []
        while True:
            left = max(0.0, end - time.monotonic())
            if not select.select([pipe], [], [], 0 if lines else left)[0]:
                break
            data = pipe.read(io.DEFAULT_BUFFER_SIZE) or b""
            *whole, self._partial = (self._partial + data).split(b"\n")
            lines += whole
        if (left := end - time.monotonic()) > 0:
            time.sleep(left)
        made = []
        for line in lines:
            facts = json.loads(line)
            made.append(FileTimerRequest(facts["pid"], facts["scope_id"], facts["expiration_time"], facts["signal"]))
        return made

    def _run_watchdog(self, pipe):
        self.register_timers(self._get_requests(pipe, self._max_interval))
        gone, reaped = set(), set()
        expired = self.get_expired_timers(time.time())
        log_debug_info_for_expired_timers(self._run_id, {pid: [r.scope_id for r in requests] for pid, requests in expired.items()})
        for pid, requests in expired.items():
            reaped.add(pid)
            number = next((r.signal for r in requests if r.signal > 0), 0)
            if not number:
                _log.info("No signal specified with worker=[%s]. Do not reap it.", pid)
                continue
            if self._reap_worker(pid, number):
                gone.add(pid)
        self.clear_timers(reaped | {pid for pid, _ in self._timers if pid not in reaped and not self.is_process_running(pid)} | gone)

    def register_timers(self, timer_requests):
        """Begin and end timers."""
        for request in timer_requests:
            self._request_count += 1
            key = (request.worker_id, request.scope_id)
            if request.expiration_time < 0:
                self._timers.pop(key, None)
            else:
                self._timers[key] = request

    def clear_timers(self, worker_pids):
        """Forget all timers of processes."""
        self._timers = {key: request for key, request in self._timers.items() if key[0] not in worker_pids}

    def get_expired_timers(self, deadline):
        """{process: requests} of those that expired by then."""
        expired = {}
        for request in self._timers.values():
            if request.expiration_time <= deadline:
                expired.setdefault(request.worker_id, []).append(request)
        return {pid: requests for pid, requests in expired.items() if self.is_process_running(pid) or self._clear_now(pid)}

    def _clear_now(self, pid):
        return pid < 0  # no process has such a number: it is for who asked

    @staticmethod
    def is_process_running(pid):
        """Is there a process of that number?"""
        try:
            os.kill(pid, 0)
            return True
        except OSError:
            return False

    def _reap_worker(self, worker_pid, signal):
        try:
            os.kill(worker_pid, signal)
            return True
        except ProcessLookupError:
            return True
        except OSError:
            return False
