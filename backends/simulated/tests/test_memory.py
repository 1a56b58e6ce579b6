"""Statistics, limits, history and resizing of device memory; queues of others, priorities, peers."""

import gc
import pickle

import cresset
import pytest
from cresset_simulated import faults

accelerator = cresset.accelerator


@pytest.fixture(params=["simulated", "opaque"])
def device(request):
    return request.param


def test_statistics_under_pytorchs_names(device):
    accelerator.synchronize(device)
    accelerator.reset_peak_memory_stats(device)
    accelerator.reset_accumulated_memory_stats(device)
    before = accelerator.memory_stats(device)
    small, large = cresset.empty(100, device=device), cresset.empty(1 << 20, device=device)
    stats = accelerator.memory_stats(device)
    grown = lambda name: stats[name] - before[name]  # noqa: E731
    assert grown("allocation.all.current") == grown("allocated.all.current") == 2
    assert (grown("allocated_bytes.small_pool.current"), grown("allocated_bytes.large_pool.current")) == (400, 4 << 20)
    assert grown("allocated_bytes.all.peak") == grown("reserved_bytes.all.current") == grown("active_bytes.all.current") == 400 + (4 << 20)
    del large
    stats = accelerator.memory_stats(device)
    assert grown("allocated_bytes.all.current") == 400 and stats["allocated_bytes.all.freed"] == 4 << 20
    assert grown("allocated_bytes.all.peak") == 400 + (4 << 20) and stats["num_device_alloc"] == 2 and stats["num_device_free"] == 1
    assert list(stats) == sorted(stats) and all(isinstance(n, int) for n in stats.values())
    assert stats["allocated_bytes.all.current"] == accelerator.memory_allocated(device)
    accelerator.reset_peak_memory_stats(device)
    accelerator.reset_accumulated_memory_stats(device)
    stats = accelerator.memory_stats(device)
    assert stats["allocated_bytes.all.peak"] == stats["allocated_bytes.all.current"] and stats["allocation.all.allocated"] == 0
    del small


def test_want_of_memory_is_counted():
    accelerator.reset_accumulated_memory_stats("simulated")
    with faults.fault("fail_allocation"), pytest.raises(cresset.OutOfMemoryError):
        cresset.empty(10, device="simulated")
    assert accelerator.memory_stats("simulated")["num_ooms"] == 1


def test_fractions(device):
    gc.collect()
    accelerator.synchronize(device)
    total = accelerator.get_memory_info(device)[1]
    assert accelerator.get_per_process_memory_fraction(device) == 1.0
    accelerator.set_per_process_memory_fraction(2.0**-16, device)
    try:
        room = total // 2**16 - accelerator.memory_stats(device)["reserved_bytes.all.current"]
        words = (
            rf"{device}:0: out of memory: you tried to allocate {room + 1} bytes, and \d+ of the {total // 2**16} bytes are in use that "
            r"set_per_process_memory_fraction\(1\.\d+e-05\) allows"
        )
        with pytest.raises(cresset.OutOfMemoryError, match=words):
            cresset.empty(room + 1, dtype=cresset.uint8, device=device)
        fits = cresset.empty(room, dtype=cresset.uint8, device=device)
        del fits
        assert accelerator.get_per_process_memory_fraction(device) == 2.0**-16
    finally:
        accelerator.set_per_process_memory_fraction(1.0, device)
    cresset.empty(total // 2**16 + 1, dtype=cresset.uint8, device=device)
    with pytest.raises(ValueError, match=r"Invalid fraction value: 1.5. Allowed range: 0 to 1"):
        accelerator.set_per_process_memory_fraction(1.5, device)
    with pytest.raises(TypeError, match="Invalid type for fraction argument, must be `float`"):
        accelerator.set_per_process_memory_fraction(1, device)


def test_snapshots_and_history(device, tmp_path):
    accelerator.record_memory_history(device=device, max_entries=8)
    try:
        x = cresset.empty(300, device=device)
        blocks = [s for s in accelerator.memory_snapshot(device) if s["total_size"] == 1200]
        assert len(blocks) == 1 and blocks[0]["blocks"][0]["state"] == "active_allocated"
        assert blocks[0]["frames"][0]["name"] == "test_snapshots_and_history" and blocks[0]["frames"][0]["filename"] == __file__
        del x
        whole = accelerator.memory._snapshot(device)
        actions = [(e["action"], e["size"]) for e in whole["device_traces"][0] if e["size"] == 1200]
        assert actions == [("segment_alloc", 1200), ("alloc", 1200), ("free_completed", 1200), ("segment_free", 1200)]
        kept = cresset.empty(500, device=device)
        accelerator.memory._dump_snapshot(tmp_path / "snapshot.pickle", device)
        segments = pickle.loads((tmp_path / "snapshot.pickle").read_bytes())["segments"]
        assert [s for s in segments if s["total_size"] == 2000] == [s for s in accelerator.memory_snapshot(device) if s["total_size"] == 2000] != []
        accelerator.memory_page(tmp_path / "page.html", device)
        page = (tmp_path / "page.html").read_text()
        assert f"Memory of {device}:0" in page and "<svg" in page and "test_memory.py" in page and f"{2000 / 1024:.1f} KiB" in page
        for _ in range(10):
            cresset.empty(7, device=device)
        assert len(accelerator.memory._snapshot(device)["device_traces"][0]) == 8, "no more than max_entries"
        del kept
    finally:
        accelerator.record_memory_history(None, device)
    cresset.empty(3, device=device)
    assert accelerator.memory._snapshot(device)["device_traces"][0] == []


def test_storages_are_resized(device):
    x = cresset.arange(6.0, device=device)
    storage = x.untyped_storage()
    storage.resize_(40)
    assert storage.nbytes() == 40 and x.tolist() == [0, 1, 2, 3, 4, 5]
    storage.resize_(24)
    assert storage.nbytes() == 24 and x.tolist() == [0, 1, 2, 3, 4, 5]
    before = accelerator.memory_allocated(device)
    storage.resize_(0)
    assert storage.nbytes() == 0 and accelerator.memory_allocated(device) <= before - 24
    storage.resize_(24)
    x.copy_(cresset.ones(6))
    assert x.tolist() == [1] * 6


def test_priorities():
    assert cresset.device("simulated") and cresset.simulated.Stream.priority_range() == (0, -2)
    assert [cresset.simulated.Stream(priority=p).priority for p in (5, 0, -1, -9)] == [0, 0, -1, -2]
    order, x = [], cresset.zeros(1, device="simulated")
    low, high = cresset.simulated.Stream(priority=0), cresset.simulated.Stream(priority=-2)
    with faults.fault("delay", 20_000):
        with low:
            for _ in range(5):
                x.add_(1)
            last_low = low.record_event()
        with high:
            y = cresset.ones(1, device="simulated") * 2
            last_high = high.record_event()
        last_high.synchronize()
        order.append(last_low.query())
        last_low.synchronize()
    assert order == [False] and y.tolist() == [2] and x.tolist() == [5]


def test_queues_of_others():
    stream = cresset.simulated.Stream("simulated:1")
    handle = stream.native_handle
    same = cresset.simulated.ExternalStream(handle, "simulated:1")
    assert handle != cresset.simulated.Stream("simulated:1").native_handle and same == stream and same.native_handle == handle
    with same:
        assert (cresset.ones(2, device="simulated:1") + 1).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="ExternalStream failed with code 2: no queue of the device has this handle"):
        cresset.simulated.ExternalStream(1)


def test_dlpack_follows_the_producers_stream():
    side = cresset.Stream("simulated")
    with faults.fault("delay", 2000), side:
        x = cresset.ones(1000, device="simulated") + 1
        capsule = x.__dlpack__()
    y = cresset.from_dlpack(capsule)
    assert (y + 1).tolist() == [3] * 1000, "the default stream has waited"
    other = cresset.Stream("simulated")
    with faults.fault("delay", 2000), side:
        x.mul_(5)
        y = cresset.from_dlpack(x.__dlpack__(stream=other.native_handle))
    with other:
        assert (y + 1).tolist() == [11] * 1000
    with pytest.raises(RuntimeError, match="no queue of the device has this handle"):
        x.__dlpack__(stream=12345)


def test_copies_between_devices_wait_for_nobody():
    assert accelerator.can_device_access_peer("simulated:0", "simulated:1") and not accelerator.can_device_access_peer("simulated:0", "simulated:0")
    x = cresset.arange(1000.0, device="simulated:0")
    accelerator.synchronize("simulated:0")
    with faults.fault("delay", 1000):
        waits = faults.calls("host_wait")
        x.mul_(2)
        y = x.to("simulated:1")
        x.fill_(-1)
        z = (y + 1).to("simulated:0", non_blocking=True)
        del y
        assert faults.calls("host_wait") == waits
    assert z.tolist() == [2.0 * i + 1 for i in range(1000)] and x[:3].tolist() == [-1, -1, -1]


def test_events():
    event = cresset.Event("simulated:1")
    assert event.device == cresset.device("simulated") and event.event_id == 0
    event.record(cresset.Stream("simulated:1"))
    assert event.device == cresset.device("simulated:1") and event.event_id != 0
    with pytest.raises(RuntimeError, match="only events made with interprocess=True have a handle"):
        event.ipc_handle()
