"""Faults on demand, as context managers, and counts of what the device was asked to do."""

import contextlib
import ctypes

import cresset


def _library(device):
    cresset.device(device)
    return ctypes.CDLL(cresset.accelerator.report(device)["library"])


@contextlib.contextmanager
def fault(name, value=1, device="simulated"):
    """`fail_allocation` or `fail_task`: the n-th from now; `delay`: microseconds in front of each task; `host_delay`: microseconds that each
    call of the device takes the host; `transfer_delay`: microseconds in front of each transfer of a process group; `poison`: NaN in fresh memory; `wrong_queue`: kernels go to the default queue."""
    library = _library(device)
    if library.simulated_set_fault(name.encode(), ctypes.c_int64(value)) != 0:
        raise ValueError(f"fault: fail_allocation, fail_task, delay, host_delay, transfer_delay, poison or wrong_queue was required; got {name!r}")
    try:
        yield
    finally:
        library.simulated_set_fault(name.encode(), ctypes.c_int64(0))


@contextlib.contextmanager
def wrong_kernel(op, device="simulated"):
    """The kernel of an operator, such as "aten::mul.Tensor", gives numbers that are 1 too high."""
    library = _library(device)
    library.simulated_set_wrong(op.encode())
    try:
        yield
    finally:
        library.simulated_set_wrong(b"")


def live_blocks(device="simulated"):
    """Blocks of device memory that are alive."""
    return _call(device, "simulated_live_blocks")


def calls(hook, device="simulated"):
    """How often a hook was called: set_device, optimizer_step, profile_push, kernel; with_lock: any, while Python's lock was held; host_wait: the host waited."""
    return _call(device, "simulated_calls", hook.encode())


def _call(device, function, *arguments):
    f = getattr(_library(device), function)
    f.restype = ctypes.c_int64
    return f(*arguments)
