"""ThroughputBenchmark: how many calls of a module a second, from several threads."""

import threading
import time

import cresset

__all__ = ["ExecutionStats", "ThroughputBenchmark", "format_time"]


def format_time(time_us=None, time_ms=None, time_s=None):
    """A time, given in one unit, as text; AssertionError for none or several."""
    given = [t * k for t, k in ((time_us, 1), (time_ms, 1e3), (time_s, 1e6)) if t is not None]
    if len(given) != 1:
        raise AssertionError("format_time: one time was required")
    us = given[0]
    return f"{us / 1e6:.3f}s" if us >= 1e6 else f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"


class ExecutionStats:
    """What a benchmark measured."""

    def __init__(self, latency_avg_ms, num_iters, benchmark_config):
        self._latency, self.num_iters, self.benchmark_config = latency_avg_ms, num_iters, benchmark_config

    @property
    def latency_avg_ms(self):
        """Mean time of a call in milliseconds."""
        return self._latency

    @property
    def iters_per_second(self):
        """Calls a second, by all threads."""
        return self.benchmark_config["num_calling_threads"] / (self._latency / 1e3)

    @property
    def total_time_seconds(self):
        """Time of all calls on each thread."""
        return self.num_iters * self._latency / 1e3 / self.benchmark_config["num_calling_threads"]

    def __str__(self):
        return "\n".join([
            f"Average latency per example: {format_time(time_ms=self.latency_avg_ms)}", f"Total number of iterations: {self.num_iters}",
            f"Total number of iterations per second (across all threads): {self.iters_per_second:.2f}",
            f"Total time: {format_time(time_s=self.total_time_seconds)}",
        ])  # fmt: skip


class ThroughputBenchmark:
    """Calls a module with inputs of `add_input`, in turn, from several threads."""

    def __init__(self, module):
        self._module, self._inputs = module, []

    def add_input(self, *args, **kwargs):
        """Arguments of one call."""
        self._inputs.append((args, kwargs))

    def run_once(self, *args, **kwargs):
        """Call the module."""
        return self._module(*args, **kwargs)

    def benchmark(self, num_calling_threads=1, num_warmup_iters=10, num_iters=100, profiler_output_path=""):
        """An ExecutionStats of `num_iters` calls in all, after `num_warmup_iters` on each thread. RuntimeError without inputs."""
        if not self._inputs:
            raise RuntimeError("ThroughputBenchmark: add_input was required before benchmark.")
        each = -(-num_iters // num_calling_threads)
        start, spent, gradients = threading.Barrier(num_calling_threads), [0.0] * num_calling_threads, cresset.is_grad_enabled()

        def work(k):
            with cresset.set_grad_enabled(gradients):
                for i in range(num_warmup_iters):
                    args, kwargs = self._inputs[i % len(self._inputs)]
                    self._module(*args, **kwargs)
                start.wait()
                began = time.perf_counter()
                for i in range(each):
                    args, kwargs = self._inputs[(i + k) % len(self._inputs)]
                    self._module(*args, **kwargs)
                spent[k] = time.perf_counter() - began

        threads = [threading.Thread(target=work, args=(k,)) for k in range(num_calling_threads)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        config = {"num_calling_threads": num_calling_threads, "num_warmup_iters": num_warmup_iters, "num_iters": num_iters}
        return ExecutionStats(sum(spent) / (each * num_calling_threads) * 1e3, each * num_calling_threads, config)
