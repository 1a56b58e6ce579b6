"""A file that one process at a time holds, so that one builds what the others wait for."""

import os
import time
import warnings

__all__ = ["FileBaton"]


class FileBaton:
    """Held by the process that has made `lock_file_path`; others look every `wait_seconds`, and warn each `warn_after_seconds` that they wait.

    A process that dies leaves the file behind: the warning names it.
    """

    def __init__(self, lock_file_path, wait_seconds=0.1, warn_after_seconds=None):
        self.lock_file_path, self.wait_seconds, self.warn_after_seconds = lock_file_path, wait_seconds, warn_after_seconds
        self.fd = None

    def try_acquire(self):
        """Take it without waiting; False where somebody has it."""
        try:
            self.fd = os.open(self.lock_file_path, os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return False
        return True

    def wait(self):
        """Wait until nobody has it."""
        since = time.monotonic()
        while os.path.exists(self.lock_file_path):
            time.sleep(self.wait_seconds)
            if self.warn_after_seconds is not None and time.monotonic() - since > self.warn_after_seconds:
                warnings.warn(f'Waited on lock file "{self.lock_file_path}" for {self.warn_after_seconds} seconds.', stacklevel=2)
                since = time.monotonic()

    def release(self):
        """Give it back."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
        os.remove(self.lock_file_path)
