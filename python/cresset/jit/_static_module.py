"""`_C._jit_to_static_module`: a scripted module whose values are frozen, or a graph, as something that is only run, and timed."""

import time
from collections import Counter

import cresset
from cresset import _C

__all__ = ["IndividualMetrics", "StaticModule", "to_static_module"]


class IndividualMetrics:
    """What `StaticModule.benchmark_individual_ops` found: milliseconds for a run as a whole (`total_time`, and `first_iter_time` of the first) and by kind of
    operator (`time_per_node_type`, `percent_per_node_type`), and how many there are of each (`instances_per_node_type`, `total_nodes_count`)."""

    def __init__(self, setup, first, total, times, counts):
        whole = sum(times.values())
        self.setup_time, self.first_iter_time, self.total_time = setup, first, total
        self.time_per_node_type, self.instances_per_node_type = times, counts
        self.percent_per_node_type = {name: 100 * took / whole for name, took in times.items()} if whole else {}
        self.total_nodes_count = sum(counts.values())


class StaticModule:
    """Runs `function` on arguments by position and by keyword."""

    def __init__(self, function, setup):
        self._function, self._setup = function, setup

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    def runAsync(self, args, kwargs):
        """A future of the result."""
        return cresset.jit.fork(self._function, *args, **kwargs)

    def _timed(self, args, kwargs, runs):
        start = time.perf_counter()
        for _ in range(runs):
            self._function(*args, **kwargs)
        return 1e3 * (time.perf_counter() - start) / max(runs, 1)

    def benchmark(self, args, kwargs, warmup_runs, main_runs):
        """Prints the milliseconds of a run, the mean of main_runs behind warmup_runs."""
        self._timed(args, kwargs, warmup_runs)
        took = self._timed(args, kwargs, main_runs)
        print(f"Static runtime ms per iter: {took:.6f}. Iters per second: {1e3 / took:.2f}")

    def benchmark_individual_ops(self, args, kwargs, warmup_runs, main_runs):
        """IndividualMetrics of a run, the mean of main_runs behind warmup_runs."""
        first = self._timed(args, kwargs, 1)
        self._timed(args, kwargs, warmup_runs)
        total = self._timed(args, kwargs, main_runs)
        with cresset.profiler.profile() as profile:
            self._timed(args, kwargs, main_runs)
        times, counts = Counter(), Counter()
        for event in profile.key_averages():
            times[event.key] += 1e-3 * event.self_cpu_time_total / max(main_runs, 1)
            counts[event.key] += event.count // max(main_runs, 1)
        return IndividualMetrics(self._setup, first, total, dict(times), dict(counts))


def to_static_module(source):
    """The StaticModule of a scripted module, which is frozen as it is now, or of a graph without a module."""
    from ._recursive import wrap_cpp_module

    start = time.perf_counter()
    if isinstance(source, _C.Graph):
        function = _C._create_function_from_graph("forward", source.copy())
    else:
        function = wrap_cpp_module(_C._freeze_module(source, []))
    return StaticModule(function, 1e3 * (time.perf_counter() - start))
