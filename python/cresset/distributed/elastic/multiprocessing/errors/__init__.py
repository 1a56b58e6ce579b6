"""A process that fails writes down why, where its launcher asks for it; the launcher reads that."""

import json
import os
import signal
import socket
import time
from dataclasses import dataclass, field
from datetime import datetime
from functools import wraps

from .error_handler import ErrorHandler
from .handlers import get_error_handler

__all__ = ["ChildFailedError", "ErrorHandler", "ProcessFailure", "get_error_handler", "record"]

_NOT_AVAILABLE = "<N/A>"
_NO_TRACEBACK = "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"


@dataclass
class ProcessFailure:
    """How a process failed: its exit code, below 0 for a signal, and what it wrote into its error file, if anything."""

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    error_file_data: dict = field(init=False)
    message: str = field(init=False)
    timestamp: int = field(init=False)

    def __post_init__(self):
        self.error_file_data = {"message": "<NONE>"}
        if os.path.isfile(self.error_file):
            with open(self.error_file) as file:
                self.error_file_data = json.load(file)
            self.message, self.timestamp = self._told(self.error_file_data)
            return
        self.error_file, self.timestamp = _NOT_AVAILABLE, int(time.time())
        self.message = f"Signal {-self.exitcode} ({self.signal_name()}) received by PID {self.pid}" if self.exitcode < 0 else _NO_TRACEBACK

    @staticmethod
    def _told(data):
        message = data["message"]
        if isinstance(message, str):
            return message, int(data.get("timestamp", 0))
        more = message.get("extraInfo", {})
        return more.get("py_callstack") or message["message"], int(more.get("timestamp", data.get("timestamp", 0)))

    def signal_name(self):
        """The signal's name; "<N/A>" for a process that none ended."""
        if self.exitcode >= 0:
            return _NOT_AVAILABLE
        try:
            return signal.Signals(-self.exitcode).name
        except ValueError:
            return _NOT_AVAILABLE

    def timestamp_isoformat(self):
        """When, as 2000-12-31_23:59:59."""
        return datetime.fromtimestamp(self.timestamp).strftime("%Y-%m-%d_%H:%M:%S")


def _text(number, rank, failure):
    name = f"  ({failure.signal_name()})" if failure.exitcode < 0 else ""
    lines = [
        f"[{number}]:", f"  time      : {failure.timestamp_isoformat()}", f"  host      : {socket.gethostname()}",
        f"  rank      : {rank} (local_rank: {failure.local_rank})", f"  exitcode  : {failure.exitcode} (pid: {failure.pid}){name}",
        f"  error_file: {failure.error_file}",
    ]  # fmt: skip
    if log := getattr(failure, "log", ""):
        lines.append(f"  log       : {log}")
    return "\n".join([*lines, "  traceback : " + failure.message.rstrip().replace("\n", "\n    ")])


class ChildFailedError(Exception):
    """Processes failed: {rank: ProcessFailure}. The text tells of the first one as the cause, and of the others."""

    def __init__(self, name, failures):
        self.name, self.failures = name, failures
        if not failures:
            raise AssertionError("ChildFailedError: a failure was required; none was given.")
        super().__init__(self.format_msg())

    def get_first_failure(self):
        """(rank, failure) of the one that failed first."""
        rank = min(self.failures, key=lambda r: getattr(self.failures[r], "seen", self.failures[r].timestamp))
        return rank, self.failures[rank]

    def format_msg(self, boarder_delim="=", section_delim="-"):
        """The report."""
        first, cause = self.get_first_failure()
        others = [(rank, failure) for rank, failure in self.failures.items() if rank != first]
        parts = [boarder_delim * 60, f"{self.name} FAILED", section_delim * 60, "Failures:"]
        parts += [_text(i, rank, failure) for i, (rank, failure) in enumerate(others, 1)] or ["  <NO_OTHER_FAILURES>"]
        parts += [section_delim * 60, "Root Cause (first observed failure):", _text(0, first, cause), boarder_delim * 60]
        return "\n".join(parts)


def record(fn, error_handler=None):
    """Decorator of a main function: an exception is written as JSON to the file that $TORCHELASTIC_ERROR_FILE names, and raised.

    SystemExit(0) ends the function; of a ChildFailedError the first child's file is copied.
    """
    if not error_handler:
        error_handler = get_error_handler()

    @wraps(fn)
    def recorded(*args, **kwargs):
        error_handler.initialize()
        try:
            return fn(*args, **kwargs)
        except SystemExit as leaving:
            if leaving.code == 0:
                return None
            raise
        except ChildFailedError as error:
            _, failure = error.get_first_failure()
            if failure.error_file != _NOT_AVAILABLE:
                error_handler.dump_error_file(failure.error_file, failure.exitcode)
            raise
        except Exception as error:
            error_handler.record_exception(error)
            raise

    return recorded
