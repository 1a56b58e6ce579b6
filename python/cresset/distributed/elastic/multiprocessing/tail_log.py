"""Files that grow, copied line by line to a stream, each line with a prefix."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from cresset._logging import logger_of

__all__ = ["TailLog", "tail_logfile"]

logger = logger_of(__name__)


def tail_logfile(header, file, dst, finished, interval_sec):
    """Copy the lines of a file, which may not be there yet, until `finished` is set and there are no more."""
    while not os.path.exists(file):
        if finished.is_set():
            return
        time.sleep(interval_sec)
    with open(file, errors="replace") as source:
        begun = ""
        while True:
            over = finished.is_set()
            line = begun + source.readline()
            begun = ""
            if line.endswith("\n") or (line and over):
                dst.write(f"{header}{line}")
                continue
            begun = line
            dst.flush()
            if over:
                return
            time.sleep(interval_sec)


class TailLog:
    """Copies `log_files`, {local rank: path}, to `dst`, a thread for each. Lines begin with `[name0]:`, or with `log_line_prefixes[0]`."""

    def __init__(self, name, log_files, dst, log_line_prefixes=None, interval_sec=0.1):
        self._name, self._dst, self._log_files, self._prefixes, self._interval = name, dst, log_files, log_line_prefixes or {}, interval_sec
        self._threadpool = ThreadPoolExecutor(len(log_files), thread_name_prefix=f"{type(self).__name__}_{name}") if log_files else None
        self._finished, self._futures, self._stopped = threading.Event(), [], False

    def start(self):
        """Begin; this object."""
        for rank, file in self._log_files.items():
            header = self._prefixes.get(rank, f"[{self._name}{rank}]:")
            self._futures.append(self._threadpool.submit(tail_logfile, header, file, self._dst, self._finished, self._interval))
        return self

    def stop(self):
        """Copy what is there, and end. Errors go to the log."""
        self._finished.set()
        for rank, future in zip(self._log_files, self._futures):
            try:
                future.result()
            except Exception as error:
                logger.error("error in log tailor for %s%s. %s: %s", self._name, rank, type(error).__name__, error)
        if self._threadpool:
            self._threadpool.shutdown(wait=True)
        self._stopped = True

    def stopped(self):
        """Was it stopped?"""
        return self._stopped
