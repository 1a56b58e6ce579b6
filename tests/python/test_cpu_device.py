"""The CPU under the names of devices: events that nothing records, what the processor can do."""

import platform
from pathlib import Path

import pytest

import cresset as torch


@pytest.mark.skipif(torch._C._accelerator_type() is not None, reason="a device is mounted")
def test_events_without_a_device():
    event = torch.Event()
    assert repr(event).endswith("Event device_type=cpu, device_index=-1, event_flag=0, event_id=0")
    assert event.query() is True and event.synchronize() is None and event.wait() is None
    with pytest.raises(RuntimeError, match="cpu backend doesn't support events."):
        event.record()
    with pytest.raises(RuntimeError, match="cpu backend doesn't support events."):
        torch.Stream().record_event()
    with pytest.raises(ValueError, match="Both events must be created with argument 'enable_timing=True'."):
        event.elapsed_time(event)


def test_streams_stand_for_the_order_of_operators():
    cpu = torch.cpu
    before, other = cpu.current_stream(), cpu.Stream(priority=3)
    assert before is cpu.current_stream()
    with cpu.stream(other):
        assert cpu.current_stream() is other
        with cpu.StreamContext(None):
            assert cpu.current_stream() is other
    assert cpu.current_stream() is before
    event = cpu.Event()
    event.record()
    event.wait()
    event.synchronize()
    assert event.query() and other.record_event() is None and other.wait_event(event) is None and other.wait_stream(before) is None


def test_capabilities_are_those_of_the_kernel():
    found = torch.cpu.get_capabilities()
    assert found["architecture"] == platform.machine() and found["num_logical_cores"] >= found["num_physical_cores"] >= found["num_sockets"] >= 1
    flags = Path("/proc/cpuinfo").read_text().split()
    for name, flag in {"avx2": "avx2", "avx512_f": "avx512f", "fma3": "fma", "sse3": "pni"}.items():
        assert found.get(name, False) is (flag in flags)
    with pytest.raises(TypeError):
        found["avx2"] = False
