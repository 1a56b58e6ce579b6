"""Asynchronous work, faults, and what the host may not do."""

import gc
import json
import subprocess
import sys
import time

import cresset
import pytest
from cresset_simulated import faults

DEVICES = ("simulated", "opaque")
each_device = pytest.mark.parametrize("device", DEVICES)


@pytest.fixture(autouse=True)
def idle():
    yield
    for device in DEVICES:
        cresset.accelerator.synchronize(device)


def test_the_host_cannot_read_device_memory():
    code = "import cresset, ctypes; x = cresset.ones(4, device='simulated'); print(ctypes.string_at(x.data_ptr(), 16))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert result.returncode < 0, "the process should have been killed by a fault"


@each_device
def test_work_happens_later(device):
    x = cresset.ones(8, device=device)
    cresset.accelerator.synchronize(device)
    stream = cresset.accelerator.current_stream(device)
    with faults.fault("delay", 50_000, device):
        start = time.perf_counter()
        y = x + x
        z = y * y
        assert time.perf_counter() - start < 0.05
        assert not stream.query()
        stream.synchronize()
        assert stream.query()
        assert time.perf_counter() - start >= 0.1
    assert z.tolist() == [4.0] * 8


@each_device
def test_memory_is_kept_until_its_work_is_done(device):
    x = cresset.arange(1000.0).to(device)
    with faults.fault("delay", 5_000, device):
        for _ in range(10):
            x = x + 1  # every intermediate is dropped while it is still to be computed
    assert x.sum().item() == 999 * 500 + 10 * 1000


@each_device
def test_blocks_are_freed(device):
    cresset.accelerator.synchronize(device)
    gc.collect()
    before = faults.live_blocks(device)
    x = [cresset.ones(10, device=device) for _ in range(5)]
    cresset.accelerator.synchronize(device)
    assert faults.live_blocks(device) == before + 5
    del x
    cresset.accelerator.synchronize(device)
    assert faults.live_blocks(device) == before


def test_streams_and_events():
    device = "simulated"
    side = cresset.Stream(device)
    assert side.stream_id != 0 and side != cresset.accelerator.current_stream(device)
    x = cresset.ones(4, device=device)
    cresset.accelerator.synchronize(device)
    with faults.fault("delay", 20_000, device):
        y = x * 3
        ready = cresset.accelerator.current_stream(device).record_event()
        with side:
            assert cresset.accelerator.current_stream(device) == side
            side.wait_event(ready)
            z = y + 1
        assert cresset.accelerator.current_stream(device).stream_id == 0
        assert not ready.query()
        side.synchronize()
        assert ready.query()
    assert z.tolist() == [4.0] * 4
    begin, end = cresset.Event(device, enable_timing=True), cresset.Event(device, enable_timing=True)
    with faults.fault("delay", 10_000, device):
        begin.record()
        y + 1
        end.record()
        end.synchronize()
    assert begin.elapsed_time(end) >= 15
    with pytest.raises(ValueError, match="enable_timing"):
        cresset.Event(device).elapsed_time(cresset.Event(device))


def test_wait_stream_orders_two_queues():
    side = cresset.Stream("simulated")
    x = cresset.zeros(4, device="simulated")
    with faults.fault("delay", 10_000):
        y = x + 1
        side.wait_stream(cresset.accelerator.current_stream("simulated"))
        with side:
            z = y + 1
        assert z.cpu().tolist() == [2.0] * 4 or not side.query()
    side.synchronize()
    assert z.cpu().tolist() == [2.0] * 4


@each_device
def test_out_of_memory(device):
    x = cresset.ones(4, device=device)
    for n in range(1, 4):  # whichever allocation fails, nothing leaks and everything goes on
        cresset.accelerator.synchronize(device)
        before = faults.live_blocks(device)
        with faults.fault("fail_allocation", n, device):
            with pytest.raises(cresset.OutOfMemoryError, match="out of memory: you tried to allocate"):
                y = x + 1
                y = cresset.cat([y, y]) * 2
                y.sort()
                y.exp().sum(0)
        y = None
        cresset.accelerator.synchronize(device)
        assert faults.live_blocks(device) == before
    assert (x + 1).tolist() == [2.0] * 4


def test_out_of_memory_in_backward():
    x = cresset.ones(4, device="simulated", requires_grad=True)
    loss = (x.exp() * x).sum()
    with faults.fault("fail_allocation", 2), pytest.raises(cresset.OutOfMemoryError):
        loss.backward(retain_graph=True)
    x.grad = None
    loss.backward()
    assert cresset.allclose(x.grad.cpu(), cresset.full((4,), 2 * 2.718281828))


@each_device
def test_an_error_in_a_queue_is_raised_where_it_is_waited_for(device):
    x = cresset.ones(4, device=device)
    with faults.fault("fail_task", 1, device):
        y = x + 1
        with pytest.raises(RuntimeError, match="simulated fault in a kernel"):
            cresset.accelerator.synchronize(device)
    assert (x + 1).tolist() == [2.0] * 4
    del y


def test_a_wrong_kernel_is_noticed():
    x = cresset.ones(4)
    with faults.wrong_kernel("aten::mul.Tensor"):
        assert not cresset.equal((x.to("simulated") * 2).cpu(), x * 2)
    assert cresset.equal((x.to("simulated") * 2).cpu(), x * 2)


@each_device
def test_poison_shows_uninitialised_memory(device):
    with faults.fault("poison", 1, device):
        assert cresset.empty(4, device=device).isnan().all().item()
        x = cresset.ones(2, 3, device=device)
        for result in (x + 1, x @ x.t(), x.exp(), cresset.cat([x, x]), x.sort()[0], x.cumsum(0), x.var(0), x.flip(0)):
            assert not result.isnan().any().item()


def test_pinned_memory_copies_without_waiting():
    host = cresset.ones(1000).pin_memory("simulated")
    assert host.is_pinned() and not cresset.ones(2).is_pinned()
    assert host[10:20].is_pinned()
    assert host.pin_memory() is host
    with faults.fault("delay", 30_000):
        start = time.perf_counter()
        x = host.to("simulated", non_blocking=True)
        assert time.perf_counter() - start < 0.03
        assert x.sum().item() == 1000
        start = time.perf_counter()
        cresset.ones(1000).to("simulated", non_blocking=True)
        assert time.perf_counter() - start >= 0.03, "pageable memory could be freed before it is read"


def test_new_tensors_are_pinned_when_asked():
    x = cresset.ones(2, device="simulated")
    like = cresset.ones(2, 3)
    pinned = [
        cresset.empty(2, 3, pin_memory=True), cresset.empty_strided((2, 3), (1, 2), pin_memory=True), cresset.zeros(3, pin_memory=True),
        cresset.full((2,), 5, pin_memory=True), cresset.ones_like(like, pin_memory=True), like.new_zeros(3, pin_memory=True),
        cresset.arange(4, pin_memory=True), cresset.linspace(0, 1, 3, pin_memory=True), cresset.eye(2, pin_memory=True),
        cresset.rand(3, pin_memory=True), cresset.randperm(5, pin_memory=True), cresset.tensor([1.0, 2.0], pin_memory=True),
        cresset.empty(2, 3, 4, 4, memory_format=cresset.channels_last, pin_memory=True),
    ]  # fmt: skip
    assert all(t.is_pinned() and t.device.type == "cpu" for t in pinned)
    assert pinned[1].stride() == (1, 2) and pinned[-1].is_contiguous(memory_format=cresset.channels_last)
    assert [t.tolist() for t in pinned[2:4]] == [[0, 0, 0], [5, 5]] and sorted(pinned[10].tolist()) == [0, 1, 2, 3, 4]
    assert cresset.tensor([1.0], pin_memory=True, requires_grad=True).is_leaf
    assert not (pinned[2] + 1).is_pinned() and not cresset.empty(2, pin_memory=False).is_pinned()
    assert cresset.zeros(2, device="meta", pin_memory=True).is_meta
    assert not x.is_pinned()
    for make in (lambda: cresset.empty(2, device="simulated", pin_memory=True), lambda: cresset.arange(2, device="simulated", pin_memory=True),
                 lambda: cresset.tensor([1], device="simulated", pin_memory=True)):  # fmt: skip
        with pytest.raises(RuntimeError, match="Only dense CPU tensors can be pinned"):
            make()
    with pytest.raises(RuntimeError, match="cannot pin 'SIMULATEDFloatType.*' only dense CPU tensors can be pinned"):
        x.pin_memory()


def test_hooks_are_called():
    device = "simulated"
    model = cresset.nn.Linear(3, 2).to(device)
    optimiser = cresset.optim.SGD(model.parameters(), lr=0.1)
    before = faults.calls("optimizer_step")
    model(cresset.ones(1, 3, device=device)).sum().backward()
    optimiser.step()
    assert faults.calls("optimizer_step") == before + 1
    before = faults.calls("profile_push")
    with cresset.autograd.profiler.record_function("a stretch"):
        pass
    assert faults.calls("profile_push") == before + 1
    before = faults.calls("set_device")
    with cresset.simulated.device(1):
        assert cresset.simulated.current_device() == 1
    assert faults.calls("set_device") == before + 2
    assert cresset.simulated.get_device_name() == "Simulated device"
    assert cresset.simulated.mem_get_info() == (1 << 30, 1 << 30)


def test_fork_is_refused():
    code = """
import os, sys, cresset
x = cresset.ones(2, device="simulated")
x.cpu()
if os.fork() == 0:
    try:
        cresset.ones(2, device="simulated")
    except RuntimeError as error:
        print(error, flush=True)
    os._exit(0)
os.wait()
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert out.stdout == (
        "Cannot re-initialize simulated in forked subprocess. To use simulated with multiprocessing, "
        "you must use the 'spawn' start method.\n"
    )  # fmt: skip


def rows_of(prof):
    return {row.key: row for row in prof.key_averages()}


def test_profiler_measures_the_device():
    x = cresset.ones(50, 50, device="simulated", requires_grad=True)
    pushed = faults.calls("profile_push")
    with (
        faults.fault("delay", 5_000),
        cresset.autograd.profiler.profile(use_device="simulated", profile_memory=True, with_flops=True) as prof,
    ):
        y = x * x
        y.sum().backward()
        del y
    rows = rows_of(prof)
    mul = rows["aten::mul"]
    assert mul.device_time_total >= 5000 * mul.count, "microseconds of each kernel"
    first = next(e for e in prof.function_events if e.name == "aten::mul")
    assert first.self_device_time_total == first.kernels[0].duration >= 5000
    assert sum(e.self_device_time_total for e in prof.function_events) == pytest.approx(
        sum(e.device_time_total for e in prof.function_events if e.cpu_parent is None)
    )
    assert rows["MulBackward0"].device_time_total >= 5000 and rows["MulBackward0"].self_device_time_total == 0
    assert first.device_memory_usage == 10000
    assert faults.calls("profile_push") > pushed, "names of operators reach the device's own profiler"
    table = prof.key_averages().table(sort_by="self_device_time_total")
    for title in (
        "Self SIMULATED",
        "SIMULATED total",
        "SIMULATED time avg",
        "Self SIMULATED Mem",
        "Self SIMULATED time total: ",
    ):
        assert title in table
    with cresset.autograd.profiler.profile() as prof:
        x * x
    assert rows_of(prof)["aten::mul"].device_time_total == 0


def test_profiler_records_the_threads_of_devices(tmp_path):
    x = cresset.ones(5, device="simulated", requires_grad=True)
    with cresset.profiler.profile(profile_memory=True) as prof:
        x.exp().sum().backward()
    forward = next(e for e in prof.events() if e.name == "aten::exp")
    backward = next(e for e in prof.events() if e.name == "ExpBackward0")
    assert backward.thread != forward.thread and backward.fwd_thread == forward.thread
    assert forward.kernels[0].device == 0
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    rows = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    kernels = [row for row in rows if row.get("cat") == "kernel"]
    assert {"aten::exp", "aten::mul"} <= {row["name"] for row in kernels}
    assert {row["pid"] for row in kernels} == {"simulated:0"}


def test_activities_of_the_profiler():
    from cresset.profiler import ProfilerActivity, profile, supported_activities

    cresset.ones(1, device="simulated")
    assert supported_activities() == {ProfilerActivity.CPU, ProfilerActivity.PrivateUse1}
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        cresset.ones(2, device="simulated") * 2
    assert "SIMULATED" not in prof.key_averages().table()


def test_autocast_follows_the_lists_of_the_backend():
    """The lists and types of kAutocast in backend.cpp, which differ from the CPU's."""
    x, functional = cresset.ones(4, 4, device="simulated"), cresset.nn.functional
    assert cresset.get_autocast_dtype(
        "simulated"
    ) is cresset.bfloat16 and cresset.simulated.get_amp_supported_dtype() == [cresset.float16, cresset.bfloat16]
    with cresset.autocast("simulated"):
        assert (x @ x).dtype is cresset.bfloat16
        assert functional.linear(x, x).dtype is cresset.bfloat16
        assert x.half().exp().dtype is cresset.float32  # the CPU's autocast leaves it alone
        assert functional.conv1d(x[None], x[None]).dtype is cresset.float32  # and casts this
        assert cresset.cat([x, x.bfloat16()]).dtype is cresset.float32
        assert (x.cpu() @ x.cpu()).dtype is cresset.float32, "another device"
    assert (x @ x).dtype is cresset.float32
    with cresset.autocast("simulated", dtype=cresset.float16):
        assert (x @ x).dtype is cresset.float16
    with pytest.warns(UserWarning, match="only supports dtypes of cresset.float16, cresset.bfloat16"):
        cresset.autocast("simulated", dtype=cresset.float64)


def test_autocast_trains():
    model = cresset.nn.Linear(3, 2).to("simulated")
    scaler = cresset.amp.GradScaler("simulated", enabled=False)
    optimiser = cresset.optim.SGD(model.parameters(), lr=0.1)
    with cresset.autocast("simulated"):
        out = model(cresset.ones(5, 3, device="simulated"))
        loss = out.float().pow(2).mean()
    assert out.dtype is cresset.bfloat16
    scaler.scale(loss).backward()
    scaler.step(optimiser)
    assert model.weight.grad.dtype is cresset.float32 and model.weight.grad.device.type == "simulated"


def test_recorded_streams_keep_memory():
    device, side = "simulated", cresset.Stream("simulated")
    x = cresset.ones(100, device=device)
    cresset.accelerator.synchronize(device)
    gc.collect()
    before = faults.live_blocks()
    with faults.fault("delay", 30_000):
        with side:
            y = x + 1
        x.record_stream(side)
        del x
        assert faults.live_blocks() == before + 1, "x waits for the stream; y is new"
        assert cresset.accelerator.memory_allocated(device) < 1 << 20
        side.synchronize()
    assert y.tolist() == [2.0] * 100
    del y
    cresset.accelerator.synchronize(device)
    cresset.empty(1, device=device)  # whoever allocates finds what has become free
    cresset.accelerator.synchronize(device)
    assert faults.live_blocks() <= before
    with pytest.raises(RuntimeError, match="record_stream: a stream of simulated:0 was required"):
        cresset.ones(1, device=device).record_stream(cresset.Stream("opaque"))
    with pytest.raises(TypeError, match=r"argument 's' \(position 1\) must be Stream, not int"):
        cresset.ones(1, device=device).record_stream(3)


def test_an_exception_puts_the_stream_back():
    side = cresset.Stream("simulated:1")
    with pytest.raises(ZeroDivisionError), side:
        assert cresset.simulated.current_device() == 1
        1 / 0
    assert cresset.simulated.current_device() == 0
    assert cresset.accelerator.current_stream("simulated:1").stream_id == 0


def test_an_error_of_the_device_in_an_optimizer_step_is_raised():
    model = cresset.nn.Linear(3, 2).to("simulated")
    optimiser = cresset.optim.Adam(model.parameters())
    model(cresset.ones(1, 3, device="simulated")).sum().backward()
    with faults.fault("fail_allocation", 1), pytest.raises(cresset.OutOfMemoryError):
        optimiser.step()
    optimiser.step()
    assert all(t.device.type == "simulated" for s in optimiser.state.values() for t in s.values() if t.dim() > 0)


def test_workers_of_other_processes(tmp_path):
    """A spawned process has the device by its own right; a tensor goes there by way of its bytes."""
    (tmp_path / "main.py").write_text("""
import multiprocessing, cresset

def work(x):
    return (x * 2).cpu().tolist(), str(x.device)

if __name__ == "__main__":
    x = cresset.ones(2, device="simulated:1")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.apply(work, (x,)))
""")
    out = subprocess.run([sys.executable, tmp_path / "main.py"], capture_output=True, text=True, timeout=300)
    assert out.stdout == "([2.0, 2.0], 'simulated:1')\n", out.stderr
