"""Small parts of the profiler that programs take from `autograd.profiler` to make records of their own."""

import bisect
from collections import defaultdict

__all__ = ["EnforceUnique", "KinetoStepTracker", "MemRecordsAcc"]


class EnforceUnique:
    """RuntimeError when a key is seen a second time."""

    def __init__(self):
        self._seen = set()

    def see(self, *key):
        """Note a key."""
        if key in self._seen:
            raise RuntimeError("duplicate key: " + str(key))
        self._seen.add(key)


class KinetoStepTracker:
    """The number of the step that a program is in, where several parts of it count steps: that of the part that counted furthest."""

    _current_step = 0
    _step_dict = defaultdict(int)

    @classmethod
    def init_step_count(cls, requester: str):
        """A part begins to count, at the present step."""
        cls._step_dict[requester] = cls._current_step

    @classmethod
    def erase_step_count(cls, requester: str) -> bool:
        """A part no longer counts; whether it did."""
        return cls._step_dict.pop(requester, None) is not None

    @classmethod
    def increment_step(cls, requester: str) -> int:
        """A part ends a step; the present step afterwards."""
        if requester not in cls._step_dict:
            cls.init_step_count(requester)
        cls._step_dict[requester] += 1
        cls._current_step = max(cls._current_step, *cls._step_dict.values())
        return cls._current_step

    @classmethod
    def current_step(cls) -> int:
        """The present step."""
        return cls._current_step


class MemRecordsAcc:
    """Records of memory (pairs whose first has start_ns()) by time."""

    def __init__(self, mem_records):
        self._records = sorted(mem_records, key=lambda record: record[0].start_ns())
        self._starts = [record[0].start_ns() for record in self._records]

    def in_interval(self, start_us, end_us):
        """Those that begin between two times in microseconds, both included."""
        first = bisect.bisect_left(self._starts, start_us * 1000)
        yield from self._records[first : bisect.bisect_right(self._starts, end_us * 1000)]
