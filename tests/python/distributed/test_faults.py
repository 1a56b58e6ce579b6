"""A rank that is killed, late or busy elsewhere: the others get one error that names it, within the timeout."""

import os
import signal
import subprocess
import sys
import time
from datetime import timedelta

import pytest

import cresset as torch
import cresset.distributed as dist

from ranks import RankError, Ranks


@pytest.fixture
def pool():
    ranks = Ranks(3, globals(), timeout=timedelta(seconds=1))
    yield ranks
    for process in ranks.processes:
        process.kill()
    ranks.close()


def reduce(rank, n=4):
    dist.all_reduce(torch.ones(n))


def reduce_and_again(rank):
    errors = []
    for _ in range(2):
        try:
            dist.all_reduce(torch.ones(100_000), async_op=True).wait()
        except Exception as error:
            errors.append(f"{type(error).__name__}: {error}")
    return errors


def pid(rank):
    return os.getpid()


@pytest.mark.parametrize("n", [4, 100_000])
def test_a_killed_rank(pool, n):
    pool.run(reduce, n)
    os.kill(pool.run(pid)[2], signal.SIGKILL)
    begin = time.monotonic()
    with pytest.raises(RankError) as failure:
        pool.run(reduce, n, ranks=[0, 1])
    assert time.monotonic() - begin < 8
    for rank in (0, 1):
        assert failure.value.errors[rank].startswith(f"DistBackendError: [rank {rank}] allreduce (number 2): rank 2 is gone.")


def test_a_stopped_rank(pool):
    pids = pool.run(pid)
    os.kill(pids[1], signal.SIGSTOP)
    try:
        errors = pool.run(reduce_and_again, ranks=[0, 2])
    finally:
        os.kill(pids[1], signal.SIGCONT)
    for rank, (first, second) in zip((0, 2), errors):
        assert "allreduce (number 1) timed out after 1000 ms: rank 1 did not take part" in first
        assert second.startswith("DistBackendError: allreduce: the group cannot be used any more: ") and "destroy_process_group() and init_process_group()" in second


def wait_in_different_calls(rank):
    if rank == 2:
        dist.broadcast(torch.ones(4), 0)
        dist.barrier()
    else:
        dist.all_reduce(torch.ones(100_000))


def test_calls_that_do_not_match(pool):
    with pytest.raises(RankError) as failure:
        pool.run(wait_in_different_calls)
    assert any("timed out" in text or "gone" in text for text in failure.value.errors.values())


def compare_shapes(rank):
    os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
    dist.set_debug_level_from_env()
    group = dist.new_group()
    x = torch.ones(2)
    dist.all_reduce(x, group=group)
    assert x.tolist() == [3, 3]
    try:
        dist.all_reduce(torch.ones(4 if rank == 1 else 3), group=group)
    finally:
        dist.all_reduce(x, group=group)  # the connections are as good as before
        assert x.tolist() == [9, 9]


def test_detail_compares_shapes(pool):
    with pytest.raises(RankError) as failure:
        pool.run(compare_shapes)
    fingerprint = "CollectiveFingerPrint(SequenceNumber=2, OpType=ALLREDUCE, TensorShape=[{}], TensorDtypes=Float, TensorDeviceTypes=cpu)"
    assert failure.value.errors[0] == (
        "RuntimeError: Detected mismatch between collectives on ranks. "
        f"Rank 0 is running collective: {fingerprint.format(3)}, but Rank 1 is running collective: {fingerprint.format(4)}. "
        "Collectives differ in the following aspects: TensorShape [3] vs [4]."
    )


def monitored(rank):
    if rank != 1:
        dist.monitored_barrier(timeout=timedelta(milliseconds=300), wait_all_ranks=True)
    time.sleep(0.5)
    reduce(rank)  # the connections are as good as before


def test_a_monitored_barrier_names_who_is_missing(pool):
    with pytest.raises(RankError) as failure:
        pool.run(monitored)
    assert failure.value.errors[0] == "RuntimeError: [Rank 0]: Ranks 1 failed to pass monitoredBarrier in 300 ms"
    assert failure.value.errors[2].startswith("RuntimeError: Rank 2 successfully reached monitoredBarrier, but received errors while waiting for send/recv from rank 0.")


def interrupt_me(rank, asynchronous):
    if rank == 0:
        time.sleep(0.8)
        return "slept"
    import threading

    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start work in the background with Ctrl-C ignored
    time.sleep(0.1)  # handlers are looked at twenty times a second
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    try:
        dist.all_reduce(torch.ones(4), async_op=asynchronous) and None
        if asynchronous:
            dist.all_reduce(torch.ones(4), async_op=True).wait()
    except KeyboardInterrupt:
        return time.monotonic() - begin < 0.8


def test_control_c():
    pool = Ranks(2, globals(), timeout=timedelta(seconds=20))
    try:
        assert pool.run(interrupt_me, False) == ["slept", True]
    finally:
        for process in pool.processes:
            process.kill()
        pool.close()


def test_a_forked_child_drops_what_has_threads():
    """Servers and groups of the parent end without their threads, and go on in the parent."""
    code = (
        "import gc, os, cresset, cresset.distributed as dist\n"
        "store = dist.TCPStore('localhost', 0, 1, True, wait_for_workers=False)\n"
        "dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)\n"
        "dist.all_reduce(cresset.ones(3), async_op=True).wait()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    dist.destroy_process_group()\n"
        "    del store\n"
        "    gc.collect()\n"
        "    os._exit(7)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7\n"
        "dist.all_reduce(cresset.ones(3), async_op=True).wait()\n"
        "store.set('key', 'value')\n"
        "print(store.get('key').decode())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("value\n", "", 0)
