"""Limits of what scripts and operators may use: cresset.jit.Limits."""

from cresset import _C


class Limits:
    """How long work may take and how much memory it may add; `None` is no limit.

        with cresset.jit.Limits(time=2.0, memory=2**30):
            m = cresset.jit.load(path)
            m(x)

    `time` is in seconds from the beginning of the block, `memory` in bytes above what the process has then. Scripts, operators, backward passes and
    loads of this thread, and what other threads do for them, raise RuntimeError (OutOfMemoryError for memory) soon after a limit was
    reached. Calls of LAPACK and oneDNN are not stopped inside. Blocks may be nested: an inner one cannot raise a limit. Negative numbers raise ValueError.

    These are limits for programs that are too greedy, not walls: a process that runs code of strangers needs those of the system, too.
    """

    def __init__(self, time=None, memory=None):
        self.time, self.memory = time, memory
        for value in (time, memory):
            if value is not None and not value > 0:
                raise ValueError(f"Limits: numbers above 0 were required; {value!r} was given")
        self._scopes = []

    def __enter__(self):
        self._scopes.append(_C._limits(float(self.time or 0), int(self.memory or 0)))
        return self

    def __exit__(self, *_):
        self._scopes.pop()

    def __repr__(self):
        return f"Limits(time={self.time}, memory={self.memory})"
