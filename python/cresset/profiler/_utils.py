"""Trees of events: walks over them, what of its time a call spent itself, and when a device had nothing to do."""

import bisect
from collections import deque
from dataclasses import dataclass
from statistics import mean, pstdev

from cresset.autograd.profiler_util import DeviceType

__all__ = ["BasicEvaluation", "EventKey", "EventMetrics", "Interval", "source_code_location", "traverse_bfs", "traverse_dfs"]


# What gives a device work, among the calls about one piece of it: the others ask or wait.
_LAUNCHES = ("Launch", "Memcpy", "Memset")


def _launches(event):
    name = event.name() if callable(event.name) else event.name
    return any(word in name for word in _LAUNCHES)


def traverse_dfs(roots):
    """Each node in front of its children, these in front of its next sibling."""
    waiting = deque(roots)
    while waiting:
        node = waiting.popleft()
        yield node
        waiting.extendleft(reversed(node.children))


def traverse_bfs(roots):
    """Each node in front of all that are deeper."""
    waiting = deque(roots)
    while waiting:
        node = waiting.popleft()
        yield node
        waiting.extend(node.children)


@dataclass
class EventMetrics:
    """What an event's time, in nanoseconds, was spent on; queue_depth is how much work was waiting for the device when it began."""

    duration_time_ns: int = 0
    self_time_ns: int = 0
    idle_time_ns: int = 0
    queue_depth: int = 0

    @property
    def fraction_idle_time(self):
        """The part of its time in which the device had nothing to do."""
        return self.idle_time_ns / self.duration_time_ns if self.duration_time_ns else 0.0


@dataclass
class Interval:
    """From `start` to `end`, in nanoseconds."""

    start: int
    end: int
    queue_depth: int = 0


class EventKey:
    """An event as a key of dictionaries, by its number; in order of their beginning."""

    def __init__(self, event):
        self.event = event

    def __hash__(self):
        return hash(self.event.id)

    def __eq__(self, other):
        return self.event.id == other.event.id

    def __lt__(self, other):
        return self.event.start_time_ns < other.event.start_time_ns

    def __repr__(self):
        return self.event.name

    def intervals_overlap(self, intervals):
        """How many nanoseconds of the event lie in at least one of the intervals."""
        begin, end = self.event.start_time_ns, self.event.end_time_ns
        covered, total = begin, 0
        for i in sorted(intervals, key=lambda i: i.start):
            first, last = max(i.start, covered), min(i.end, end)
            if last > first:
                total += last - first
                covered = last
        return total


class BasicEvaluation:
    """What the events of a finished profile (of cresset.autograd.profiler) did with their time. `metrics` has EventMetrics for each EventKey;
    `event_keys` and `events` are in order of their beginning; `cuda_events` are the calls that gave a device work, and this work;
    `queue_depth_list` says for each of these how much work was waiting then."""

    def __init__(self, prof):
        self.profile = prof
        roots = prof.kineto_results.experimental_event_tree()
        self.event_keys = sorted(EventKey(e) for e in traverse_dfs(roots))
        self.events = [key.event for key in self.event_keys]
        self.metrics = {key: EventMetrics(duration_time_ns=key.event.duration_time_ns) for key in self.event_keys}
        self.cuda_events = []
        self.compute_self_time()
        self.queue_depth_list = self.compute_queue_depth()
        self.compute_idle_time()

    def compute_self_time(self):
        """The time of each event less that of those inside."""
        for key, metrics in self.metrics.items():
            metrics.self_time_ns = key.event.duration_time_ns - sum(child.duration_time_ns for child in key.event.children)

    def compute_queue_depth(self):
        """Intervals, for each event of the device or that gave it work, with how much was waiting; an empty list without any."""
        recorded = [e for e in self.profile.kineto_results.events() if e.linked_correlation_id()]
        on_device = [e for e in recorded if e.device_type() != DeviceType.CPU]
        numbers, launches = {e.linked_correlation_id() for e in on_device}, {}
        for e in sorted(recorded, key=lambda e: (not _launches(e), e.start_ns())):
            if e.device_type() == DeviceType.CPU and e.linked_correlation_id() in numbers:
                launches.setdefault(e.linked_correlation_id(), e)
        self.cuda_events = sorted([*launches.values(), *on_device], key=lambda e: e.start_ns())
        depth, found = 0, []
        for e in self.cuda_events:
            depth += 1 if e.device_type() == DeviceType.CPU else -1
            found.append(Interval(e.start_ns(), e.start_ns() + e.duration_ns(), max(depth, 0)))
        starts = [i.start for i in found]
        for key, metrics in self.metrics.items():
            at = bisect.bisect_right(starts, key.event.start_time_ns)
            metrics.queue_depth = found[at - 1].queue_depth if at else 0
        return found

    def _idle(self):
        # From the end of what is running, when nothing waits behind it, to the next launch.
        if not self.queue_depth_list or not self.events:
            return []
        found, free_since = [], self.events[0].start_time_ns
        for event, interval in zip(self.cuda_events, self.queue_depth_list, strict=True):
            if event.device_type() == DeviceType.CPU:
                if free_since is not None and interval.start > free_since:
                    found.append(Interval(free_since, interval.start))
                free_since = None
            else:
                free_since = interval.end if interval.queue_depth == 0 else None
        last = max(e.end_time_ns for e in self.events)
        if free_since is not None and last > free_since:
            found.append(Interval(free_since, last))
        return found

    def compute_idle_time(self):
        """How long the device had nothing to do during each event."""
        idle = self._idle()
        for key, metrics in self.metrics.items():
            metrics.idle_time_ns = key.intervals_overlap(idle)

    def _falling(self):
        # From the last time that much was waiting to the moment when nothing was.
        found, top = [], None
        for interval in self.queue_depth_list:
            if top is None or interval.queue_depth >= top.queue_depth:
                top = interval
            elif interval.queue_depth == 0:
                found.append(Interval(top.end, interval.start))
                top = None
        return found

    def rank_events(self, length):
        """The `length` events that most likely keep the device waiting: that run while its queue becomes empty, and are long themselves
        while it has nothing to do."""
        falling = self._falling()
        keys = [key for key in self.event_keys if key.intervals_overlap(falling)]
        if not keys:
            return []

        def score(values):
            middle, spread = mean(values), pstdev(values) or 1
            return [(v - middle) / spread for v in values]

        idle = score([self.metrics[k].idle_time_ns for k in keys])
        own = score([self.metrics[k].self_time_ns for k in keys])
        ranked = sorted(zip(keys, idle, own, strict=True), key=lambda item: -(item[1] + item[2]))
        return [key for key, _, _ in ranked[:length]]

    def get_optimizable_events(self, length=1, print_enable=True):
        """rank_events(length); they are printed, with where they were called, unless print_enable is False."""
        found = self.rank_events(length)
        if print_enable:
            lines = [f"{'-' * 80}\nEvent:                {k}\nSource code location: {source_code_location(k.event)}\n"
                     f"Percentage idle time: {self.metrics[k].fraction_idle_time * 100:.2f}%" for k in found]  # fmt: skip
            print("Optimizable events:\n" + "\n".join(lines) if found else "No events to optimize")
        return found


def source_code_location(event):
    """The file and line from which a program called what became this event, `file:line`; a text that says so when no stack was recorded."""
    while event is not None:
        caller = getattr(event.extra_fields, "caller", None)
        if caller is not None and caller.file_name and not caller.file_name.startswith("cresset/"):
            return f"{caller.file_name}:{caller.line_number}"
        event = event.parent
    return "No source code location found"
