"""Work that Python does, and the Works of collectives that are operators."""

import contextlib
import threading

from cresset._C_distributed import Work

__all__ = ["FutureWork", "begun", "collecting"]


class _Here(threading.local):
    works = None  # of what this thread begins, where somebody collects them


_here = _Here()


@contextlib.contextmanager
def collecting():
    """A list that gets the Works of what operators begin in the block."""
    before, _here.works = _here.works, []
    try:
        yield _here.works
    finally:
        _here.works = before


def begun(work):
    """For operators: the Work for who collects it; waits for it where nobody does."""
    if work is None:
        return
    if _here.works is None:
        work.wait()
    else:
        _here.works.append(work)


class FutureWork(Work):
    """Work that is done when a future is."""

    def __init__(self, future):
        super().__init__()
        self._future = future

    def wait(self, timeout=None):
        """Waits for the future; True. Raises its error."""
        self._future.wait()
        return True

    def get_future(self):
        """The future."""
        return self._future

    def is_completed(self):
        """Is the future done?"""
        return self._future.done()

    def is_success(self):
        """Is it done without an error?"""
        return self._future.done() and self.exception() is None

    def exception(self):
        """The future's error, or None."""
        try:
            self._future.value()
        except Exception as error:
            return error
        return None

    def result(self):
        """The future's value."""
        return self._future.value()
