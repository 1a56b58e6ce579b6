"""Streams and events where no accelerator is: the CPU's, and handles made of numbers."""

import cresset as torch
import pytest


def test_a_stream_without_accelerator_is_the_cpus():
    s = torch.Stream()
    assert (s.device.type, s.device_index, s.device_type, s.stream_id) == ("cpu", -1, 0, 0)
    assert repr(s) == "cresset.Stream device_type=cpu, device_index=-1, stream_id=0" and s.query()
    s.synchronize()


@pytest.mark.parametrize("number, kind", [(0, "cpu"), (1, "cuda"), (14, "meta"), (20, "privateuseone")])
def test_streams_of_numbers(number, kind):
    s = torch.Stream(stream_id=3, device_index=2, device_type=number)
    assert (s.stream_id, s.device_index, s.device_type) == (3, 2, number) and s.device == torch.device(kind, 2)
    assert s == torch.Stream(stream_id=3, device_index=2, device_type=number) != torch.Stream(stream_id=4, device_index=2, device_type=number)
