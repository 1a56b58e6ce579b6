"""What loaders of other libraries (torchdata's StatefulDataLoader) take of the data loader. Words and numbers are PyTorch 2.13's for the same programs."""

import os
import pickle
import queue
import signal
import threading
import time

import cresset
import pytest
from cresset.utils.data import DataLoader, Sampler, _utils
from cresset.utils.data.dataloader import _get_distributed_settings, _sharding_worker_init_fn
from cresset.utils.data.datapipes.datapipe import _IterDataPipeSerializationWrapper, _MapDataPipeSerializationWrapper
from cresset.utils.data.datapipes.iter import IterableWrapper
from cresset.utils.data.datapipes.iter.sharding import SHARDING_PRIORITIES
from cresset.utils.data.datapipes.map import SequenceWrapper
from cresset.utils.data.graph_settings import apply_sharding


class Eager(Sampler):
    """Draws when its iterator is made, not when it is first advanced."""

    def __init__(self, generator):
        self.generator = generator

    def __iter__(self):
        return iter(cresset.randperm(7, generator=self.generator).tolist())

    def __len__(self):
        return 7


def test_a_sampler_draws_before_the_seed_of_the_workers():
    generator = cresset.Generator().manual_seed(3)
    loader = DataLoader(range(7), sampler=Eager(generator), generator=generator)
    assert [int(x) for x in loader] == [3, 4, 2, 0, 1, 6, 5]
    assert [int(x) for x in loader] == [6, 4, 2, 1, 3, 0, 5]


def test_pipes_in_wrappers_are_pickled():
    pipe = _IterDataPipeSerializationWrapper(IterableWrapper([3, 4, 5]))
    again = pickle.loads(pickle.dumps(pipe))
    assert list(again) == [3, 4, 5] and len(again) == 3
    assert list(again.map(str)) == ["3", "4", "5"]
    indexed = pickle.loads(pickle.dumps(_MapDataPipeSerializationWrapper(SequenceWrapper([3, 4]))))
    assert (indexed[1], len(indexed)) == (4, 2)
    with pytest.raises(TypeError, match="_IterDataPipeSerializationWrapper instance doesn't have valid length"):
        len(_IterDataPipeSerializationWrapper(IterableWrapper(iter([3]), deepcopy=False)))


def test_a_worker_takes_its_share_and_calls_the_function_of_the_user():
    assert _get_distributed_settings() == (1, 0)
    pipe, called = IterableWrapper(range(10)).sharding_filter(), []
    _utils.worker._worker_info = _utils.worker.WorkerInfo(id=1, num_workers=3, seed=0, dataset=pipe)
    try:
        _sharding_worker_init_fn(called.append, 2, 1, 1)
    finally:
        _utils.worker._worker_info = None
    assert list(pipe) == [3, 9] and called == [1]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_loader_gives_each_sample_once_whatever_the_share_was_before(workers):
    pipe = apply_sharding(IterableWrapper(range(12)).sharding_filter(), 3, 1)
    assert [int(x) for x in DataLoader(pipe, batch_size=None, num_workers=workers)] == list(range(12))
    assert list(pipe) == ([1, 4, 7, 10] if workers else list(range(12)))
    grouped = apply_sharding(IterableWrapper(range(12)).sharding_filter(), 3, 1, SHARDING_PRIORITIES.DISTRIBUTED)
    with pytest.raises(RuntimeError, match="ShardingFilter cannot mix DEFAULT and non DEFAULT groups"):
        list(DataLoader(grouped, batch_size=None, num_workers=workers))


def test_names_of_workers():
    assert _utils.HAS_NUMPY and _utils.python_exit_status is False
    assert _utils.worker._generate_state(2**63 - 5, 3) == [180706846, 4101751318, 4102278446, 3165212977]
    assert repr(_utils.worker._ResumeIteration(3)) == "_ResumeIteration(seed=3)"
    assert _utils.worker._IterableDatasetStopIteration(1).worker_id == 1
    assert _utils.worker.ManagerWatchdog().is_alive()


def test_pinning_in_a_thread():
    arrived, pinned, done = queue.Queue(), queue.Queue(), threading.Event()
    thread = threading.Thread(target=_utils.pin_memory._pin_memory_loop, args=(arrived, pinned, 0, done, None), daemon=True)
    thread.start()

    class Batch:
        def pin_memory(self):
            return "pinned"

    class Broken:
        def pin_memory(self):
            raise ValueError("no")

    arrived.put((4, [Batch(), "text"]))
    assert pinned.get(timeout=30) == (4, ["pinned", "text"])
    arrived.put((5, Broken()))
    number, failure = pinned.get(timeout=30)
    with pytest.raises(ValueError, match="Caught ValueError in pin memory thread for device 0."):
        failure.reraise()
    done.set()
    arrived.put((6, "text"))  # it looks at the event when a message comes
    thread.join(30)
    assert number == 5 and not thread.is_alive()


def _child(how):
    """The pid of a process that ends in this way, once it has."""
    child = os.fork()
    if child == 0:
        if how < 0:
            os.kill(os.getpid(), -how)
            time.sleep(30)
        os._exit(how)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    return child


@pytest.mark.parametrize(("how", "words"), [
    (0, None), (-signal.SIGTERM, "DataLoader worker (pid {}) is killed by signal: Terminated. "), (3, "DataLoader worker (pid {}) exited unexpectedly with exit code 3. Details are lost due to multiprocessing. "
    "Rerunning with num_workers=0 may give better error trace."), (-signal.SIGKILL, "DataLoader worker (pid {}) is killed by signal: Killed. "),
])  # fmt: skip
def test_the_death_of_a_worker(how, words):
    signals = _utils.signal_handling
    child = _child(how)
    signals._set_worker_pids(4711, (child,))
    try:
        if words is None:
            signals._error_if_any_worker_fails()
        else:
            with pytest.raises(RuntimeError) as caught:
                signals._error_if_any_worker_fails()
            assert str(caught.value) == words.format(child)
            signals._error_if_any_worker_fails()  # reported once
        with pytest.raises(ValueError, match="_set_worker_pids should be called only once for each _BaseDataLoaderIter."):
            signals._set_worker_pids(4711, (child,))
    finally:
        signals._remove_worker_pids(4711)
        os.waitpid(child, 0)
    with pytest.raises(ValueError, match="Cannot find worker information for _BaseDataLoaderIter with id 4711"):
        signals._remove_worker_pids(4711)


def test_set_vital_only_warns():
    with pytest.warns(UserWarning, match="'set_vital' is deprecated, please do not call"):
        assert cresset.set_vital("Dataloader", "enabled", "True") is None
