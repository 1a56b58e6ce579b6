"""Timer: how long a statement takes, by wall clock or by instructions (valgrind)."""

import enum
import timeit as _timeit
from typing import NamedTuple

import cresset

from . import common

__all__ = ["Timer", "timer", "Language", "CallgrindStats", "FunctionCount", "FunctionCounts", "CopyIfCallgrind"]


def timer():
    """The clock, in seconds; waits for the accelerator where there is one."""
    if cresset.accelerator.is_available():
        cresset.accelerator.synchronize()
    return _timeit.default_timer()


class Language(enum.Enum):
    """What a statement is written in; C++ is not compiled here."""

    PYTHON = 0
    CPP = 1


class FunctionCount(NamedTuple):
    """A function and how many instructions it took."""

    count: int
    function: str


class FunctionCounts:
    """Functions by their counts, as a sequence; `filter`, `transform`, `denoise`, sums and differences."""

    def __init__(self, _data, inclusive, truncate_rows=True, _linewidth=None):
        self._data, self.inclusive, self.truncate_rows, self._linewidth = tuple(_data), inclusive, truncate_rows, _linewidth

    def __iter__(self):
        return iter(self._data)

    def __len__(self):
        return len(self._data)

    def __getitem__(self, item):
        found = self._data[item]
        return FunctionCounts(found, self.inclusive, truncate_rows=False) if isinstance(found, tuple) and not isinstance(found, FunctionCount) else found

    def __repr__(self):
        width = self._linewidth or 160
        rows = list(self._data)
        lines = [f"{count:>12,}  {function}"[:width] for count, function in (rows if not self.truncate_rows or len(rows) <= 18 else rows[:9])]
        if self.truncate_rows and len(rows) > 18:
            lines += [f"{'...':>12}"] + [f"{count:>12,}  {function}"[:width] for count, function in rows[-9:]]
        return "\n".join([f"{type(self).__name__}", *lines, "", f"Total: {self.sum()}"])

    def _merged(self, pairs):
        sums = {}
        for count, function in pairs:
            sums[function] = sums.get(function, 0) + count
        return FunctionCounts(sorted((FunctionCount(n, f) for f, n in sums.items() if n), reverse=True), self.inclusive)

    def __add__(self, other):
        return self._merged([*self, *other])

    def __sub__(self, other):
        return self._merged([*self, *((-count, function) for count, function in other)])

    def __mul__(self, other):
        return self._merged([(int(count * other), function) for count, function in self])

    def transform(self, map_fn):
        """The counts by map_fn(function), those that become one added."""
        return self._merged((count, map_fn(function)) for count, function in self)

    def filter(self, filter_fn):
        """The functions for which filter_fn(function) is true."""
        return self._merged((count, function) for count, function in self if filter_fn(function))

    def sum(self):
        """All instructions."""
        return sum(count for count, _ in self)

    def denoise(self):
        """Without what dictionaries' lookups make vary."""
        return self.filter(lambda function: "dictobject.c:lookdict_unicode" not in function)


class CallgrindStats:
    """Instructions of a statement, for isinstance() and old pickles: collect_callgrind is not available."""

    def __init__(self, task_spec, number_per_run, built_with_debug_symbols, baseline_inclusive_stats, baseline_exclusive_stats,
                 stmt_inclusive_stats, stmt_exclusive_stats, stmt_callgrind_out):  # fmt: skip
        self.task_spec, self.number_per_run, self.built_with_debug_symbols = task_spec, number_per_run, built_with_debug_symbols
        self.baseline_inclusive_stats, self.baseline_exclusive_stats = baseline_inclusive_stats, baseline_exclusive_stats
        self.stmt_inclusive_stats, self.stmt_exclusive_stats, self.stmt_callgrind_out = stmt_inclusive_stats, stmt_exclusive_stats, stmt_callgrind_out

    def stats(self, inclusive=False):
        """Counts of the statement less those of the set-up."""
        if inclusive:
            return self.stmt_inclusive_stats - self.baseline_inclusive_stats
        return self.stmt_exclusive_stats - self.baseline_exclusive_stats

    def counts(self, *, denoise=False):
        """All instructions."""
        stats = self.stmt_exclusive_stats - self.baseline_exclusive_stats
        return (stats.denoise() if denoise else stats).sum()

    def delta(self, other, inclusive=False):
        """The differences to another's counts."""
        return self.stats(inclusive) - other.stats(inclusive)


class CopyIfCallgrind:
    """A value of `globals` that another process may have a copy of, made by `setup` there."""

    def __init__(self, value, *, setup=None):
        self.value, self.setup = value, setup

    @staticmethod
    def unwrap_all(globals):
        """The values themselves."""
        return {k: (v.value if isinstance(v, CopyIfCallgrind) else v) for k, v in globals.items()}


class Timer:
    """Times `stmt` after `setup`, with `globals` as names and `num_threads` threads for operators.

    `label`, `sub_label`, `description` and `env` name the measurement in tables. `torch` is a name of the statement, too.
    NotImplementedError for statements in C++.
    """

    _timer_cls = _timeit.Timer

    def __init__(
        self, stmt="pass", setup="pass", global_setup="", timer=timer, globals=None, label=None, sub_label=None, description=None, env=None,
        num_threads=1, language=Language.PYTHON,
    ):  # fmt: skip
        if language not in (Language.PYTHON, "py", "python"):
            raise NotImplementedError("Timer: statements in C++ are not compiled; measure an extension's function from Python.")
        if global_setup:
            raise ValueError(f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be moved to `setup`.")
        self._globals = CopyIfCallgrind.unwrap_all(dict(globals or {}))
        self._globals.setdefault("torch", cresset)
        stmt, setup = (_plain(code) if isinstance(code, str) else code for code in (stmt, setup))
        self._timer = self._timer_cls(stmt=stmt, setup=setup, timer=timer, globals=self._globals)
        self._task_spec = common.TaskSpec(
            stmt=_plain(stmt), setup=_plain(setup), label=label, sub_label=sub_label, description=description, env=env, num_threads=num_threads
        )  # fmt: skip

    def _timeit(self, number):
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number=1000000):
        """A Measurement of `number` runs in a row, after some to warm up."""
        with common.set_torch_threads(self._task_spec.num_threads):
            self._timeit(number=max(int(number // 100), 2))
            return common.Measurement(number_per_run=number, raw_times=[self._timeit(number=number)], task_spec=self._task_spec)

    def repeat(self, repeat=-1, number=-1):
        """Not as in timeit: NotImplementedError. See blocked_autorange."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback=None):
        """Not as in timeit: NotImplementedError. See blocked_autorange."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block(self, min_run_time):
        """A number of runs that takes so long that the clock's own time does not matter."""
        overhead = sorted(self._timeit(0) for _ in range(5))[2]
        number = 1
        while True:
            taken = self._timeit(number)
            if overhead / taken <= 1e-4 and taken >= min_run_time / 1000 or taken > min_run_time:
                return number
            number *= 10

    def blocked_autorange(self, callback=None, min_run_time=0.2):
        """A Measurement of as many blocks of runs as `min_run_time` seconds have; `callback(number, seconds)` after each block."""
        with common.set_torch_threads(self._task_spec.num_threads):
            number = self._block(min_run_time)
            times = []
            self._until(lambda total: total >= min_run_time, number, times, callback)
            return common.Measurement(number_per_run=number, raw_times=times, task_spec=self._task_spec)

    def _until(self, stop, number, times, callback):
        total = 0.0
        while not times or not stop(total):
            taken = self._timeit(number)
            times.append(taken)
            total += taken
            if callback is not None:
                callback(number, taken)

    def adaptive_autorange(self, threshold=0.1, *, min_run_time=0.01, max_run_time=10.0, callback=None):
        """As blocked_autorange, until the distance of the quartiles is less than `threshold` of the median, or after `max_run_time` seconds."""
        with common.set_torch_threads(self._task_spec.num_threads):
            number, times = self._block(0.05), []

            def stop(total):
                if total >= max_run_time:
                    return True
                if total <= min_run_time or len(times) <= 3:
                    return False
                measured = common.Measurement(number_per_run=number, raw_times=times, task_spec=self._task_spec)
                return measured.meets_confidence(threshold)

            self._until(stop, number, times, callback)
            return common.Measurement(number_per_run=number, raw_times=times, task_spec=self._task_spec)

    def collect_callgrind(self, number=100, *, repeats=None, collect_baseline=True, retain_out_file=False):
        """Raises NotImplementedError: instructions are not counted here. Run the program under `valgrind --tool=callgrind`."""
        raise NotImplementedError("Timer.collect_callgrind: instructions are not counted. Run the program under `valgrind --tool=callgrind`.")


def _plain(code):
    import textwrap

    return textwrap.dedent(code).strip() if isinstance(code, str) else repr(code)
