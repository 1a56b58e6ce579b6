"""Values that another thread will deliver: `Future`, and lists of them."""

import contextlib
import threading
from typing import Generic, TypeVar

from . import _C

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")


class Future(Generic[T]):
    """A value that is set once, by `set_result` or `set_exception`, and that any thread can wait for.

    `devices` are those whose memory the value may hold, each with an index (ValueError otherwise). The value is set while their current
    streams may still be at work on it: wait() makes the current streams of who waits come after that work, and callbacks run in streams that do.
    """

    def __init__(self, *, devices=None):
        from cresset import device

        self._devices = [device(d) for d in devices or ()]
        for d in self._devices:
            if d.index is None:
                raise ValueError(f"Expected devices to have indices, got {d}")
        self._changed = threading.Condition()
        self._done, self._value, self._error, self._callbacks = False, None, None, []
        self._events = []  # in the streams where the value was set

    def done(self):
        """Is the value, or the error, there?"""
        return self._done

    def wait(self):
        """The value, once it is there; raises the error that was set. Current streams of its devices wait for what makes it, not the host."""
        with self._changed:
            self._changed.wait_for(lambda: self._done)
        for event in self._events:
            event.wait()
        return self._outcome()

    def value(self):
        """The value of a future that is done, without waiting in streams. RuntimeError for another; raises the error that was set."""
        if not self._done:
            raise RuntimeError("Future.value: a future that is done was required (completed() is false). Use wait().")
        return self._outcome()

    def _outcome(self):
        if self._error is not None:
            raise self._error
        return self._value

    def then(self, callback):
        """A future of `callback(self)`, which is called when this one is done, at once when it is already; its error is a RuntimeError there.

        It is called in streams of its own that come after what makes the value; the new future has the same devices.
        """
        _callable("then", callback)
        result = Future(devices=self._devices)

        def run(future):
            with future._streams():
                try:
                    value = callback(future)
                except Exception as error:
                    message = f"Got the following error when running the callback: {type(error).__name__}: {error}"
                    return result._finish(None, RuntimeError(message).with_traceback(error.__traceback__))
                return result.set_result(value)

        self._when_done(run)
        return result

    def add_done_callback(self, callback):
        """Call `callback(self)` when this is done, at once when it is already. An error in it is reported as a warning and ends there."""
        _callable("add_done_callback", callback)

        def run(future):
            try:
                with future._streams():
                    callback(future)
            except Exception as error:
                import warnings

                warnings.warn(f"Got the following error when running the callback: {type(error).__name__}: {error}", RuntimeWarning, stacklevel=2)

        self._when_done(run)

    def set_result(self, result):
        """Set the value, which current streams of the devices may still be making. RuntimeError when this is done already."""
        self._finish(result, None, [_current_stream(d).record_event() for d in self._devices])

    def set_exception(self, result):
        """Set the error that wait() raises: an Exception (AssertionError otherwise)."""
        assert isinstance(result, Exception), f"{result} is of type {type(result)}, not an Exception."
        self._finish(None, result)

    def _when_done(self, run):
        with self._changed:
            if not self._done:
                self._callbacks.append(run)
                return
        run(self)

    @contextlib.contextmanager
    def _streams(self):
        """Other current streams, which come after what makes the value."""
        from cresset import Stream

        with contextlib.ExitStack() as stack:
            for event in self._events:
                stream = Stream(event.device)
                stream.wait_event(event)
                stack.enter_context(stream)
            yield

    def _finish(self, value, error, events=()):
        with self._changed:
            if self._done:
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a Future can only be marked completed once."
                )
            self._value, self._error, self._events, self._done = value, error, list(events), True
            callbacks, self._callbacks = self._callbacks, []
            self._changed.notify_all()
        for run in callbacks:
            run(self)

    def __reduce__(self):
        raise RuntimeError("Can not pickle torch.futures.Future")


def _current_stream(device):
    from cresset import accelerator

    return accelerator.current_stream(device)


def _callable(name, callback):
    if not callable(callback):
        raise TypeError(f"{name}(): a callable was required; given: {type(callback).__name__}")


def _as_future(future):
    """The future itself; for one of a script's fork, a future that a thread sets when that is done."""
    if isinstance(future, Future):
        return future
    if not isinstance(future, _C.Future):
        if future is None:
            raise RuntimeError("Future can't be None")
        raise TypeError(f"collect_all(): a list of futures was required; given in it: {type(future).__name__}")
    result = Future()

    def wait():
        try:
            value = future.wait()
        except Exception as error:
            result._finish(None, error)
        else:
            result._finish(value, None)

    wait() if future.done() else threading.Thread(target=wait, daemon=True).start()
    return result


def collect_all(futures):
    """A future of the list of these futures, done when all of them are; it has the error of the first that has one."""
    futures = list(futures)
    watched = [_as_future(future) for future in futures]
    result, lock, missing = Future(), threading.Lock(), len(watched)

    def one_less(_):
        nonlocal missing
        with lock:
            missing -= 1
            last = missing == 0
        if last:
            result._finish(futures, next((f._error for f in watched if f._error is not None), None))

    if not watched:
        result._finish([], None)
    for future in watched:
        future._when_done(one_less)
    return result


def wait_all(futures):
    """The list of the futures' values, once all are there; raises the first error."""
    return [future.wait() for future in collect_all(futures).wait()]
