"""utils.benchmark, collect_env, throughput_benchmark, tensorboard, and monitor."""

import datetime
import struct

import cresset
import pytest
from cresset import monitor
from cresset.utils import benchmark, collect_env, throughput_benchmark
from cresset.utils.tensorboard import SummaryWriter


def measurement(times, **task):
    return benchmark.Measurement(10, [t * 10 for t in times], benchmark.TaskSpec(stmt="x + y", setup="pass", **task))


def test_measurements():
    one = measurement([1.0e-6, 1.1e-6, 1.2e-6, 1.3e-6], label="L", sub_label="S", description="D")
    assert (round(one.median * 1e9), round(one.mean * 1e9), round(one.iqr * 1e9)) == (1150, 1150, 150) and one.has_warnings
    assert repr(one).split("\n")[1:6] == ["L: S", "D", "  Median: 1.15 us", "  IQR:    0.15 us (1.08 to 1.22)", "  4 measurements, 10 runs per measurement, 1 thread"]
    assert benchmark.Measurement.merge([one, one])[0].raw_times == one.raw_times * 2


def test_table():
    """As PyTorch 2.13 prints it."""
    a = measurement([1.02e-6] * 3, label="L", sub_label="S", description="D")
    b = measurement([5.123e-4] * 5, label="L", sub_label="S2", description="D2")
    c = measurement([8e-6] * 3, label="L", sub_label="S", description="D2", num_threads=2)
    assert str(benchmark.Compare([a, b, c])).split("\n") == [
        "[---------- L -----------]", "          |   D   |    D2 ", "1 threads: ---------------", "      S   |  1.0  |       ", "      S2  |       |  512.3",
        "2 threads: ---------------", "      S   |       |    8.0", "", "Times are in microseconds (us).", "",
    ]  # fmt: skip
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`"):
        benchmark.Compare([3])


def test_table_trimmed_and_coloured():
    """As PyTorch 2.13 prints it."""
    best, bad, worst, end = "\033[92m\033[1m", "\033[2m\033[91m", "\033[31m\033[1m", "\033[0m\033[0m"
    ratios = (1, 1.1, 1.11, 1.99, 2.01, 4.9, 5.1, 11)
    columns = benchmark.Compare([measurement([r * 1e-6] * 4, label="L", sub_label=f"r{r}", description="D") for r in ratios])
    columns.colorize()
    assert [line.partition("|  ")[2] for line in str(columns).split("\n")[3:11]] == [
        f"{best} 1.0{end}", f"{best} 1.1{end}", " 1.1", " 2.0", f"{bad} 2.0{end}", f"{bad} 4.9{end}", f"{worst} 5.1{end}", f"{worst}11.0{end}",
    ]  # fmt: skip
    make = lambda seconds, sub, description, threads=1: measurement([seconds] * 4, label="L", sub_label=sub, description=description, num_threads=threads)  # noqa: E731
    mixed = benchmark.Compare([make(1e-6, "a", "D"), make(5.123e-4, "bb", "Description"), make(8e-6, "a", "Description", 2), make(2e-6, "c", "E")])
    mixed.trim_significant_figures()
    assert [make(seconds, "a", "D").significant_figures for seconds in (1e-6, 2e-6, 8e-6, 5.123e-4)] == [1, 1, 2, 4]
    assert str(mixed).split("\n")[:7] == [
        "[---------------- L -----------------]", "          |   D   |  Description  |  E", "1 threads: ---------------------------",
        "      a   |  1.0  |               |   ", "      bb  |       |     512.3     |   ", "      c   |       |               |  2",
        "2 threads: ---------------------------",
    ]  # fmt: skip


def test_timer():
    seen = []
    timer = benchmark.Timer("seen.append(torch.get_num_threads())", globals={"seen": seen}, num_threads=1)
    before = cresset.get_num_threads()
    assert timer.timeit(7).number_per_run == 7 and set(seen) == {1} and cresset.get_num_threads() == before
    blocks = timer.blocked_autorange(min_run_time=0.02)
    assert len(blocks.times) >= 1 and sum(blocks.raw_times) >= 0.02
    assert timer.adaptive_autorange(max_run_time=0.05).median > 0
    with pytest.raises(NotImplementedError, match="valgrind"):
        timer.collect_callgrind()


def test_statements_are_indented_as_they_like_and_reports_part_blocks_as_pytorch():
    timer = benchmark.Timer("\n        if value:\n            seen.append(1)", "\n    value = 1\n    other = 2\n", globals={"seen": (seen := [])})
    measured = timer.timeit(2)
    assert len(seen) == 4
    assert measured.task_spec.summarize() == "stmt:\n  if value:\n      seen.append(1)\n\nsetup:\n  value = 1\n  other = 2\n"
    assert benchmark.Timer("x = 1", "y = 1").timeit(1).task_spec.summarize() == "x = 1\nsetup: y = 1"


class Clock:
    """Blocks of one second a run, the first of them disturbed."""

    def __init__(self, stmt, setup, timer, globals):
        self.seconds = iter([1e-6] * 5 + [1.0] + [1.0, 9.0, 1.0] + [1.0] * 20)

    def timeit(self, number):
        return next(self.seconds)


def test_adaptive_measurements_have_four_blocks_at_least():
    class Timer(benchmark.Timer):
        _timer_cls = Clock

    # One, nine, one, one: the quartiles are 1 and 3. With two more they are 1 and 1. (The documentation's rule: more than three blocks.)
    assert Timer("pass").adaptive_autorange(max_run_time=100).raw_times == [1, 9, 1, 1, 1]
    assert Timer("pass").adaptive_autorange(max_run_time=5).raw_times == [1, 9]


def test_fuzzer():
    make = lambda seed: benchmark.Fuzzer(  # noqa: E731
        parameters=[benchmark.FuzzedParameter("k", 4, 64, "loguniform"), benchmark.FuzzedParameter("n", distribution={1: 0.5, benchmark.ParameterAlias("k"): 0.5})],
        tensors=[benchmark.FuzzedTensor("x", size=("k", "n"), min_elements=8, probability_contiguous=0.3)], seed=seed,
    )  # fmt: skip
    draws = list(make(1).take(6))
    assert all(t["x"].shape == (p["k"], p["n"]) and t["x"].numel() >= 8 and p["n"] in (1, p["k"]) for t, _, p in draws)
    assert all(cresset.equal(a[0]["x"], b[0]["x"]) for a, b in zip(draws, make(1).take(6)))


def test_environment():
    text = collect_env.get_pretty_env_info()
    assert f"PyTorch version: {cresset.__version__}" in text and "Is CUDA available: False" in text


def test_throughput():
    calls = []
    bench = throughput_benchmark.ThroughputBenchmark(lambda x: calls.append(x))
    with pytest.raises(RuntimeError, match="add_input"):
        bench.benchmark()
    bench.add_input(3)
    stats = bench.benchmark(num_calling_threads=2, num_warmup_iters=1, num_iters=10)
    assert len(calls) == 12 and stats.num_iters == 10 and stats.iters_per_second > 0 and "Total number of iterations: 10" in str(stats)
    assert throughput_benchmark.format_time(time_ms=1500) == "1.500s"


def records(path):
    data, out = path.read_bytes(), []
    while data:
        (length,) = struct.unpack_from("<Q", data)
        out.append(data[12 : 12 + length])
        data = data[16 + length :]
    return out


def test_event_files(tmp_path):
    with SummaryWriter(tmp_path / "run") as writer:
        writer.add_scalar("loss", cresset.tensor(0.5), 3, walltime=1.0)
        writer.add_text("note", "hello", 4)
        writer.add_histogram("h", cresset.arange(10.0), 5)
        writer.add_image("picture", cresset.rand(3, 4, 5))
        writer.add_scalars("several", {"a": 1, "b": 2}, 6)
        with pytest.raises(NotImplementedError, match="add_graph"):
            writer.add_graph(None)
    (path,) = (tmp_path / "run").glob("events.out.tfevents.*")
    first, scalar, text, histogram, image = records(path)
    assert b"brain.Event:2" in first and b"hello" in text and b"\x89PNG" in image
    assert scalar == b"\x09" + struct.pack("<d", 1.0) + b"\x10\x03\x2a\x0d\x0a\x0b\x0a\x04loss\x15" + struct.pack("<f", 0.5)
    assert struct.pack("<d", 45.0) in histogram
    assert len(list((tmp_path / "run").glob("several_*/events*"))) == 2


def test_checksums():
    """Those of RFC 3720's examples, masked as TFRecord's are."""
    from cresset.utils.tensorboard._events import _checksum

    crc = 0x8A9136AA  # of 32 zeros
    assert _checksum(bytes(32)) == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def test_monitor():
    events = []
    handle = monitor.register_event_handler(events.append)
    stat = monitor.Stat("s", [monitor.SUM, monitor.COUNT, monitor.MEAN, monitor.MAX, monitor.MIN, monitor.VALUE], datetime.timedelta(hours=10), 3)
    stat.add(1)
    stat.add(5)
    assert stat.count == 2 and stat.get()[monitor.SUM] == 0 and events == []
    stat.add(3)
    assert stat.count == 0 and stat.get()[monitor.SUM] == 9
    stat.add(7)  # belongs to the next window
    assert stat.count == 0 and len(events) == 1
    assert events[0].name == "torch.monitor.Stat"
    assert events[0].data == {"s.sum": 9, "s.count": 3, "s.mean": 3.0, "s.max": 5, "s.min": 1, "s.value": 3}
    monitor.unregister_event_handler(handle)
    monitor.log_event(monitor.Event("x", datetime.datetime.now(), {"k": 1}))
    assert len(events) == 1
    with pytest.raises(TypeError):
        monitor.Event("x", 3, {})
