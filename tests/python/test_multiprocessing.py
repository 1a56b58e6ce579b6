"""Tensors in the memory of several processes: share_memory_, queues, pipes and pools, and what is left when they end."""

import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from multiprocessing.reduction import ForkingPickler

import cresset
import cresset.multiprocessing as mp
import pytest
from cresset import nn
from cresset.multiprocessing.reductions import StorageWeakRef

FORK = multiprocessing.get_context("fork")


def open_files():
    return len(os.listdir("/proc/self/fd"))


def names():
    return {n for n in os.listdir("/dev/shm") if n.startswith("torch_")}


@pytest.fixture(params=["file_descriptor", "file_system"])
def strategy(request):
    before, left = mp.get_sharing_strategy(), names()
    mp.set_sharing_strategy(request.param)
    yield request.param
    mp.set_sharing_strategy(before)
    gc.collect()
    assert names() == left


@pytest.fixture(params=["fork", "spawn"])
def context(request):
    return multiprocessing.get_context(request.param)


def run(target, *args, context=FORK):
    child = context.Process(target=target, args=args)
    child.start()
    child.join(60)
    if child.is_alive():
        child.kill()
        pytest.fail("the child hangs")
    return child.exitcode


def add_one(t):
    t.add_(1)


# --- share_memory_ -----------------------------------------------------------------------------------------------------------


def test_a_forked_child_writes_what_the_parent_reads(strategy):
    t = cresset.arange(6.0)
    row = t[2:4]
    assert not t.is_shared() and not t.untyped_storage().is_shared()
    assert t.share_memory_() is t
    assert t.is_shared() and row.is_shared() and t.storage().is_shared()
    assert run(add_one, row) == 0
    assert t.tolist() == [0, 1, 3, 4, 4, 5]
    assert row.tolist() == [3, 4]
    private = cresset.zeros(2)
    assert run(add_one, private) == 0 and private.tolist() == [0, 0]


def test_sharing_keeps_values_views_and_address():
    t = cresset.arange(12.0).view(3, 4)
    column, version = t[:, 1], t._version
    t.share_memory_()
    where = t.data_ptr()
    assert column.tolist() == [1, 5, 9] and t._version == version
    column.zero_()
    assert t[:, 1].tolist() == [0, 0, 0]
    t.share_memory_()
    assert t.data_ptr() == where


@pytest.mark.parametrize("dtype", [cresset.bool, cresset.uint8, cresset.float16, cresset.int64, cresset.complex128])
def test_kinds_of_elements(dtype, strategy):
    t = cresset.zeros(3, dtype=dtype).share_memory_()
    assert run(lambda: t.fill_(1)) == 0
    assert t.tolist() == cresset.ones(3, dtype=dtype).tolist()


def test_an_empty_tensor_and_large_ones(strategy):
    assert cresset.empty(0, 3).share_memory_().is_shared()
    big = cresset.zeros(3 << 20).share_memory_()
    assert run(lambda: big.add_(1)) == 0 and big.sum().item() == 3 << 20


def test_memory_of_numpy_is_copied():
    import numpy as np

    a = np.zeros(3, np.float32)
    t = cresset.from_numpy(a).share_memory_()
    assert run(add_one, t) == 0
    assert t.tolist() == [1, 1, 1] and a.tolist() == [0, 0, 0]


def test_shared_memory_has_its_size_for_good():
    t = cresset.zeros(3).share_memory_()
    assert t.resize_(2).tolist() == [0, 0]
    with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
        t.resize_(1000)


def test_other_devices_have_no_memory_to_share():
    with pytest.raises(RuntimeError, match="share_memory_: sharing is only available on CPU; this storage is on meta"):
        cresset.empty(2, device="meta").share_memory_()


def train(model, x):
    optimizer = cresset.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()


def test_a_module_is_trained_by_children():
    model, x = nn.Linear(3, 2), cresset.ones(4, 3)
    copy = nn.Linear(3, 2)
    copy.load_state_dict(model.state_dict())
    weight = model.weight
    assert model.share_memory() is model and model.weight is weight and weight.is_shared()
    assert run(train, model, x) == 0
    train(copy, x)
    assert cresset.allclose(model.weight, copy.weight)


def test_gradients_of_shared_parameters_stay_private():
    p = nn.Parameter(cresset.ones(2)).share_memory_()
    assert run(lambda: (p * 2).sum().backward()) == 0
    assert p.grad is None


# --- queues, pipes, pools ----------------------------------------------------------------------------------------------------


def answer(incoming, outgoing):
    while (t := incoming.get()) is not None:
        t.add_(1)
        outgoing.put((t.is_shared(), t.sum().item()))


def test_what_a_queue_carries_is_shared(strategy):
    there, back = FORK.Queue(), FORK.Queue()
    child = FORK.Process(target=answer, args=(there, back))
    child.start()
    t = cresset.zeros(2, 3)
    for sent, total in ((t, 6), (t[1], 6), (t.t()[1:], 10), (cresset.empty(0), 0)):
        there.put(sent)
        assert back.get(timeout=60) == (sent.numel() > 0, total)
    assert t.is_shared() and t.tolist() == [[1, 2, 2], [2, 3, 3]]
    there.put(None)
    child.join(60)
    assert child.exitcode == 0


def pass_back(connection):
    a, b = connection.recv()
    a[0] = 7
    connection.send((a, b.clone()))
    connection.recv()
    connection.close()


def test_one_memory_is_one_storage_on_either_side(context):
    here, there = context.Pipe()
    child = context.Process(target=pass_back, args=(there,))
    child.start()
    t = cresset.zeros(4)
    here.send((t, t[1:3]))
    a, copy = here.recv()
    assert a.untyped_storage() is t.untyped_storage() and a.data_ptr() == t.data_ptr() and t[0].item() == 7
    assert copy.tolist() == [0, 0]
    del copy
    here.send(None)
    child.join(60)
    assert child.exitcode == 0


def there_and_back(value):
    return pickle.loads(ForkingPickler.dumps(value))


def test_what_travels_with_a_tensor(strategy):
    p = there_and_back(nn.Parameter(cresset.ones(2)))
    assert type(p) is nn.Parameter and p.requires_grad
    assert not there_and_back(nn.Parameter(cresset.ones(2), requires_grad=False)).requires_grad
    leaf = cresset.ones(2, requires_grad=True)
    leaf.note = "kept"
    back = there_and_back(leaf)
    assert back.requires_grad and back.is_leaf and back.note == "kept" and back.data_ptr() == leaf.data_ptr()
    meta = there_and_back(cresset.empty(2, 3, device="meta").t())
    assert meta.is_meta and meta.shape == (3, 2) and meta.stride() == (1, 3)
    c = cresset.tensor([1 + 2j]).conj()
    assert there_and_back(c).tolist() == c.tolist()
    assert there_and_back(cresset.empty(0, 3)).shape == (0, 3)
    wide = cresset.ones(1).expand(5)
    assert there_and_back(wide).stride() == (0,)
    s = cresset.arange(3.0).storage()
    assert there_and_back(s).tolist() == [0, 1, 2] and there_and_back(s.untyped()) is s.untyped()
    model = there_and_back(nn.Linear(2, 2))
    assert model.weight.is_shared() and isinstance(model.weight, nn.Parameter)


def test_a_result_of_a_graph_is_refused():
    y = cresset.ones(2, requires_grad=True) * 2
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor which requires_grad"):
        ForkingPickler.dumps(y)


def square(t):
    return t * t


def test_pools(context):
    with context.Pool(2) as pool:
        assert [r.item() for r in pool.map(square, [cresset.tensor(float(i)) for i in range(6)])] == [0, 1, 4, 9, 16, 25]


# --- what is left ------------------------------------------------------------------------------------------------------------


def test_files_and_memory_go_with_the_last_user(strategy):
    there_and_back(cresset.ones(3))
    gc.collect()
    files, left = open_files(), names()
    for _ in range(50):
        t = cresset.ones(1000).share_memory_()
        same = there_and_back(t)
        assert same.untyped_storage()._cdata == t.untyped_storage()._cdata and same.data_ptr() == t.data_ptr()
    del t, same
    gc.collect()
    assert open_files() == files and names() == left


def test_a_storage_outlives_the_process_that_made_it(strategy):
    receiver, sender = FORK.Pipe(duplex=False)
    wait, go = FORK.Pipe(duplex=False)

    def make():
        sender.send(cresset.full((3,), 5.0))
        wait.recv()

    child = FORK.Process(target=make)
    child.start()
    t = receiver.recv()
    go.send(None)
    child.join(60)
    assert child.exitcode == 0 and t.add_(1).tolist() == [6, 6, 6]


@pytest.mark.parametrize("ending", ["", "import os; os._exit(0)", "raise SystemExit(3)"])
def test_a_program_that_ends_with_tensors_alive_leaves_nothing(ending):
    before = names()
    program = f"""
import cresset, cresset.multiprocessing as mp
def child(t):
    global kept
    kept = t.clone().share_memory_()
    t.add_(1)
mp.set_sharing_strategy({"file_descriptor" if "_exit" in ending else "file_system"!r})
t = cresset.zeros(3).share_memory_()
p = mp.get_context("fork").Process(target=child, args=(t,))
p.start(); p.join()
assert t.tolist() == [1, 1, 1] and p.exitcode == 0
{ending}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stderr == "" and done.returncode == (3 if "SystemExit" in ending else 0)
    assert names() == before


def test_importing_cresset_does_not_import_multiprocessing():
    program = """
import sys, cresset
assert "multiprocessing" not in sys.modules
import multiprocessing.reduction, pickle
t = cresset.zeros(3)
same = pickle.loads(multiprocessing.reduction.ForkingPickler.dumps(t))
assert t.is_shared() and same.data_ptr() == t.data_ptr()
s = cresset.ones(2).storage()
assert pickle.loads(multiprocessing.reduction.ForkingPickler.dumps(s)).data_ptr() == s.data_ptr()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_damaged_handles():
    U = cresset.UntypedStorage
    with pytest.raises(RuntimeError, match="a duplicate of the file of 8 bytes failed"):
        U._new_shared_fd_cpu(-1, 8)
    with pytest.raises(RuntimeError, match="opening /torch_nothing of 8 bytes failed"):
        U._new_shared_filename_cpu(None, "/torch_nothing", 8)
    t = cresset.zeros(2).share_memory_()
    fd, size = t.untyped_storage()._share_fd_cpu_()
    assert size == 8
    with pytest.raises(RuntimeError, match="80 bytes were required; the file has 8"):
        U._new_shared_fd_cpu(fd, 80)
    assert U._new_shared(16).is_shared()


# --- spawn -------------------------------------------------------------------------------------------------------------------


def number(index, results, offset):
    results[index] = index + offset


def fails(index):
    if index == 1:
        raise ValueError(f"in {index}")
    signal.pause()


def exits(index):
    if index == 1:
        os._exit(12)
    signal.pause()


def is_killed(index):
    if index == 1:
        os.kill(os.getpid(), signal.SIGUSR1)
    signal.pause()


def test_spawn():
    results = cresset.zeros(2).share_memory_()
    assert mp.spawn(number, (results, 10), nprocs=2) is None
    assert results.tolist() == [10, 11]


def test_start_processes_without_joining():
    results = cresset.zeros(2).share_memory_()
    running = mp.start_processes(number, (results, 5), nprocs=2, join=False, start_method="fork")
    while not running.join(60):
        pass
    assert len(running.pids()) == 2 and results.tolist() == [5, 6] and running.join()


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (fails, mp.ProcessRaisedException, r"-- Process 1 terminated with the following error:\n(.|\n)*ValueError: in 1"),
        (exits, mp.ProcessExitedException, "process 1 terminated with exit code 12"),
        (is_killed, mp.ProcessExitedException, "process 1 terminated with signal SIGUSR1"),
    ],
)
def test_a_process_that_fails_ends_the_others(function, error, words):
    with pytest.raises(error, match=words) as raised:
        mp.start_processes(function, nprocs=3, start_method="fork")
    assert raised.value.error_index == 1
    again = pickle.loads(pickle.dumps(raised.value))
    assert type(again) is error and str(again) == str(raised.value)


def test_strategies_and_names():
    assert mp.get_all_sharing_strategies() == {"file_descriptor", "file_system"}
    with pytest.raises(AssertionError, match="a sharing strategy"):
        mp.set_sharing_strategy("carrier_pigeon")
    assert mp.Queue and mp.Process and mp.get_context
    with pytest.warns(FutureWarning, match="only supports start_method=spawn"):
        mp.spawn(number, (cresset.zeros(1).share_memory_(), 1), start_method="fork")


def ends_with(index):
    os._exit(12) if index == 0 else signal.pause() if os.environ.get("CRESSET_TEST_WAITS") else os._exit(0)


@pytest.mark.parametrize("waits", [True, False])
def test_time_to_end_by_themselves(waits, monkeypatch, caplog):
    if waits:
        monkeypatch.setenv("CRESSET_TEST_WAITS", "1")
    running = mp.start_processes(ends_with, nprocs=2, join=False, start_method="fork")
    with pytest.raises(mp.ProcessExitedException, match="process 0 terminated with exit code 12"):
        while not running.join(grace_period=0.2 if waits else 30):
            pass
    words = [r.getMessage() for r in caplog.records]
    assert words == ([f"Terminating process {running.pids()[1]} via signal SIGTERM"] if waits else [])
    assert {r.name for r in caplog.records} == ({"torch.multiprocessing.spawn"} if waits else set())  # PyTorch's name, which programs listen to
    assert not any(p.is_alive() for p in running.processes)


def test_processes_of_a_fork_server_start_together(monkeypatch):
    monkeypatch.setenv(mp.ENV_VAR_PARALLEL_START, "1")
    results = cresset.zeros(2).share_memory_()
    mp.start_processes(number, (results, 10), nprocs=2, start_method="forkserver")
    assert results.tolist() == [10, 11]


def test_weak_references_to_storages():
    x, other = cresset.ones(3), cresset.ones(3)
    first, again, elsewhere = (StorageWeakRef(t.untyped_storage()) for t in (x, x[1:], other))
    assert first == again and hash(first) == hash(again) and first != elsewhere
    assert len({first, again, elsewhere}) == 2
    del x
    gc.collect()
    assert first.expired() and again.expired() and not elsewhere.expired()


def test_names_of_threads():
    import threading

    import cresset.multiprocessing as mp

    names = []

    def named():
        mp._set_thread_name("a name that is too long")
        names.append(mp._get_thread_name())

    thread = threading.Thread(target=named)
    thread.start()
    thread.join()
    assert names == ["a name that is "] and mp._get_thread_name() != names[0]
