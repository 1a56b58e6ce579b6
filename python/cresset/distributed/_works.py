"""Work that Python does."""

from cresset._C_distributed import Work

__all__ = ["FutureWork"]


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
