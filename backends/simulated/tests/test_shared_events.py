"""Events that another process waits for: what comes behind the mark there happens after what came before it here."""

import subprocess
import sys
import time

import cresset
import pytest
from cresset_simulated import faults

SECONDS = 1.0  # that the maker's work takes

OTHER = """
import sys, time
import cresset

def at(what):  # when it was so, by the clock of all processes
    print(what, time.monotonic(), flush=True)

event = cresset.Event.from_ipc_handle("{device}:1", bytes.fromhex(sys.stdin.readline()))
assert event.device == cresset.device("{device}:1")
at(event.query())
x = cresset.ones(3, device="{device}:1")
with cresset.Stream("{device}:1") as stream:
    event.wait(stream)
    y = x + 1
stream.synchronize()
at("waited")
event.synchronize()
at(event.query())
assert y.tolist() == [2.0, 2.0, 2.0]
sys.stdin.readline()
try:
    cresset.Event.from_ipc_handle("{device}:1", event.ipc_handle())
except RuntimeError as error:
    print("gone" if "the event of the other process is not there any more" in str(error) else error, 0, flush=True)
"""


@pytest.mark.parametrize("device", ["simulated", "opaque"])
def test_another_process_waits(device):
    event = cresset.Event(device, interprocess=True)
    handle = event.ipc_handle()  # before the first record: of the current device
    assert len(handle) == 64 and event.query()
    with subprocess.Popen([sys.executable, "-c", OTHER.format(device=device)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        x = cresset.ones(3, device=device)
        cresset.accelerator.synchronize(device)
        with faults.fault("delay", int(SECONDS * 1e6), device):
            begun = time.monotonic()
            x.add_(1)
            event.record()
            other.stdin.write(handle.hex() + "\n")
            other.stdin.flush()
            told = [other.stdout.readline().split() for _ in range(3)]
        assert [word for word, _ in told[1:]] == ["waited", "True"]
        for word, when in told:
            assert (float(when) >= begun + SECONDS) or word == "False", "nothing is behind the mark before it"
        event.synchronize()
        assert event.query() and x.tolist() == [2.0, 2.0, 2.0]
        del event
        other.stdin.write("\n")
        other.stdin.flush()
        assert other.stdout.readline().split() == ["gone", "0"]
    assert other.returncode == 0


def test_refusals():
    with pytest.raises(RuntimeError, match="enable_timing=True and interprocess=True exclude each other"):
        cresset.Event("simulated", enable_timing=True, interprocess=True)
    with pytest.raises(RuntimeError, match="only events made with interprocess=True have a handle"):
        cresset.Event("simulated").ipc_handle()
    with pytest.raises(ValueError, match="a handle of 64 bytes was required; 3 were given"):
        cresset.Event.from_ipc_handle("simulated", b"abc")
    with pytest.raises(TypeError, match="bytes were required; a str was given"):
        cresset.Event.from_ipc_handle("simulated", "abc")
    with pytest.raises(RuntimeError, match="the event of the other process is not there any more"):
        cresset.Event.from_ipc_handle("simulated", b"\0" * 64)
    with pytest.raises(NotImplementedError, match="this backend has no events of several processes; leave interprocess out."):
        cresset.Event("cpu", interprocess=True)
