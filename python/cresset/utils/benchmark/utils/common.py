"""Results of measurements and their statistics."""

import collections
import contextlib
import dataclasses
import math
import statistics
import textwrap

import cresset

__all__ = ["TaskSpec", "Measurement", "select_unit", "unit_to_english", "trim_sigfig", "ordered_unique", "set_torch_threads"]

_MAX_SIGNIFICANT_FIGURES = 4
_MIN_CONFIDENCE_INTERVAL = 25e-9
_IQR_WARN_THRESHOLD, _IQR_GROSS_WARN_THRESHOLD = 0.1, 0.25


@dataclasses.dataclass(init=True, repr=False, eq=True, frozen=True)
class TaskSpec:
    """What was measured: everything but the numbers."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self):
        """The labels, or the statement."""
        if self.label is not None:
            return self.label + (f": {self.sub_label}" if self.sub_label else "")
        if "\n" not in self.stmt:
            return self.stmt + (f": {self.sub_label}" if self.sub_label else "")
        return f"stmt:{f' ({self.sub_label})' if self.sub_label else ''}\n{textwrap.indent(self.stmt, '  ')}\n"

    def setup_str(self):
        """The set-up as lines of a report."""
        if not self.setup or self.setup == "pass":
            return ""
        return f"setup:\n{textwrap.indent(self.setup, '  ')}\n" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self):
        """The task in several lines."""
        return "\n".join(line for line in (self.title, self.description or "", self.setup_str()) if line)


def _quantile(values, q):
    at = (len(values) - 1) * q
    low = math.floor(at)
    return values[low] + (values[min(low + 1, len(values) - 1)] - values[low]) * (at - low)


@dataclasses.dataclass(init=True, repr=False)
class Measurement:
    """Times of a statement, each of `number_per_run` runs of it in a row: `median`, `mean`, `iqr` are of one run, in seconds."""

    number_per_run: int
    raw_times: list
    task_spec: TaskSpec
    metadata: dict | None = None

    def __post_init__(self):
        self._sorted = tuple(sorted(t / self.number_per_run for t in self.raw_times))

    def __getattr__(self, name):
        if name != "task_spec" and hasattr(TaskSpec, name) or name in TaskSpec.__dataclass_fields__:
            return getattr(self.task_spec, name)
        raise AttributeError(name)

    @property
    def times(self):
        """Seconds of one run, in order of measurement."""
        return [t / self.number_per_run for t in self.raw_times]

    def _some(self):
        if not self.raw_times:
            raise AssertionError("no measurements")
        return self._sorted

    @property
    def median(self):
        """The median time."""
        return statistics.median(self._some())

    @property
    def mean(self):
        """The mean time."""
        return statistics.fmean(self._some())

    @property
    def iqr(self):
        """The distance of the quartiles."""
        return _quantile(self._some(), 0.75) - _quantile(self._sorted, 0.25)

    @property
    def significant_figures(self):
        """About how many digits mean something, by the middle half of the times."""
        values = self._some()
        low, high = _quantile(values, 0.25), _quantile(values, 0.75)
        middle = [t for t in values if low <= t <= high]
        if len(middle) < 2:
            return 1 if len(values) > 1 else _MAX_SIGNIFICANT_FIGURES
        mean, deviation = statistics.fmean(middle), statistics.stdev(middle)
        interval = max(1.645 * deviation / math.sqrt(len(middle)), _MIN_CONFIDENCE_INTERVAL)
        return min(max(int(math.floor(math.log10(mean / interval))), 1), _MAX_SIGNIFICANT_FIGURES)

    @property
    def has_warnings(self):
        """Do the times scatter much?"""
        return self.iqr / self.median > _IQR_WARN_THRESHOLD

    def meets_confidence(self, threshold=_IQR_WARN_THRESHOLD):
        """Is the distance of the quartiles less than `threshold` of the median?"""
        return self.iqr / self.median < threshold

    @property
    def title(self):
        """That of the task."""
        return self.task_spec.title

    @property
    def env(self):
        """The environment that the task names."""
        return self.task_spec.env

    @property
    def as_row_name(self):
        """What the table calls it."""
        return self.sub_label or self.stmt or "[Unknown]"

    def __repr__(self):
        lines = [f"{super().__repr__()}", self.title]
        lines += [text for text in (self.description, self.task_spec.setup_str()) if text]
        unit, scale = select_unit(self.median)
        n = len(self.raw_times)
        show = lambda t: f"{t / scale:.2f} {unit}"  # noqa: E731
        if n == 1:
            lines.append(f"  {show(self.median)}")
        else:
            lines.append(f"  Median: {show(self.median)}")
            if n >= 4:
                low, high = (_quantile(self._sorted, q) / scale for q in (0.25, 0.75))
                lines.append(f"  IQR:    {show(self.iqr)} ({low:.2f} to {high:.2f})")
        threads = f"{self.num_threads} thread{'s' if self.num_threads > 1 else ''}"
        lines.append(f"  {n} measurement{'s' if n > 1 else ''}, {self.number_per_run} runs {'per measurement,' if n > 1 else ','} {threads}")
        if self.has_warnings and n > 1:
            share = self.iqr / self.median * 100
            how = "This suggests significant environmental influence." if share > 100 * _IQR_GROSS_WARN_THRESHOLD else "This could indicate system fluctuation."
            lines.append(f"  WARNING: Interquartile range is {share:.1f}% of the median measurement.\n           {how}")
        return "\n".join(lines)

    @staticmethod
    def merge(measurements):
        """A list of measurements, those of one task joined."""
        groups = collections.defaultdict(list)
        for m in measurements:
            groups[m.task_spec].append(m)

        def join(task, parts):
            n = parts[0].number_per_run
            metadata = parts[0].metadata if all(p.metadata == parts[0].metadata for p in parts) else None
            times = [t * (1 if p.number_per_run == n else n / p.number_per_run) for p in parts for t in p.raw_times]
            return Measurement(n, times, task, metadata)

        return [join(task, parts) for task, parts in groups.items()]


def select_unit(t):
    """(name, seconds) of the unit in which a time has up to three digits in front of the point."""
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(max(int(math.floor(math.log10(t) / 3)), -3) if t > 0 else -3, "s")
    return unit, {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}[unit]


def unit_to_english(u):
    """The name of a unit in full."""
    return {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}[u]


def trim_sigfig(x, n):
    """x rounded to n digits."""
    magnitude = int(math.ceil(math.log10(abs(x)))) if x else 0
    scale = 10.0 ** (magnitude - n)
    return round(x / scale) * scale


def ordered_unique(elements):
    """What is in the list, each once, by the first time."""
    return list(dict.fromkeys(elements))


@contextlib.contextmanager
def set_torch_threads(n):
    """n threads for operators within a block."""
    before = cresset.get_num_threads()
    try:
        cresset.set_num_threads(n)
        yield
    finally:
        cresset.set_num_threads(before)
