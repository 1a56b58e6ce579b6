"""The error of a checkpoint: what went wrong on which ranks."""

import traceback

__all__ = ["CheckpointException"]


class CheckpointException(BaseException):
    """A save or load failed on some ranks; `failures` maps each to (exception, traceback.StackSummary). Every rank raises it."""

    def __init__(self, msg, failures):
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self):
        """Rank -> (exception, where it was raised)."""
        return self._failures

    def __str__(self):
        parts = [f"CheckpointException ranks:{self._failures.keys()}\n"]
        for rank, (error, stack) in self._failures.items():
            parts.append(f"Traceback (most recent call last): (RANK {rank})\n")
            if stack is not None:
                parts += traceback.format_list(stack)
            parts += traceback.format_exception_only(type(error), value=error)
        return "".join(parts)


def _wrap_exception(error):
    """(exception, stack) as it travels between ranks; an exception that does not survive pickling becomes a RuntimeError with its words."""
    import pickle

    stack = traceback.extract_tb(error.__traceback__)
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        error = RuntimeError(f"{type(error).__name__}: {error}")
    return (error, stack)


def _is_wrapped_exception(obj):
    return isinstance(obj, tuple) and len(obj) == 2 and isinstance(obj[0], BaseException) and isinstance(obj[1], traceback.StackSummary)
