"""futures: values, errors, callbacks, lists."""

import pickle
import threading
import time

import cresset
import pytest
from cresset.futures import Future, collect_all, wait_all


def done(value):
    future = Future()
    future.set_result(value)
    return future


def failed(error):
    future = Future()
    future.set_exception(error)
    return future


def test_a_value_from_another_thread():
    future = Future()
    assert not future.done()
    with pytest.raises(RuntimeError, match="is done was required"):
        future.value()
    threading.Thread(target=lambda: (time.sleep(0.02), future.set_result([1]))).start()
    assert future.wait() == [1] == future.value() and future.done()
    with pytest.raises(RuntimeError, match="Attempting to mark a completed Future as complete again"):
        future.set_result(2)


def test_errors():
    with pytest.raises(ValueError, match="x"):
        failed(ValueError("x")).wait()
    with pytest.raises(AssertionError, match="3 is of type <class 'int'>, not an Exception."):
        Future().set_exception(3)
    with pytest.raises(ValueError, match="Expected devices to have indices, got cpu"):
        Future(devices=["cpu"])
    with pytest.raises(RuntimeError, match="Can not pickle"):
        pickle.dumps(done(1))
    with pytest.raises(TypeError, match="callable"):
        done(1).then(3)


def test_then():
    assert done(2).then(lambda f: f.value() * 5).wait() == 10
    pending = Future()
    chained = pending.then(lambda f: f.wait() + 1).then(lambda f: f.wait() + 1)
    pending.set_result(1)
    assert chained.value() == 3
    with pytest.raises(RuntimeError, match="Got the following error when running the callback: ZeroDivisionError: division by zero"):
        done(1).then(lambda f: 1 / 0).wait()
    error = failed(ValueError("x"))
    assert error.then(lambda f: "called").wait() == "called"
    for read in (Future.wait, Future.value):  # an error that the callback hands on is the callback's
        with pytest.raises(RuntimeError, match="Got the following error when running the callback: ValueError: x"):
            error.then(read).wait()


def test_done_callbacks():
    seen, future = [], Future()
    future.add_done_callback(lambda f: seen.append(f.value()))
    future.add_done_callback(lambda f: 1 / 0)
    future.add_done_callback(lambda f: seen.append("later"))
    with pytest.warns(RuntimeWarning, match="ZeroDivisionError"):
        future.set_result(1)
    assert seen == [1, "later"]


def test_lists():
    a, b = Future(), Future()
    both = collect_all([a, b])
    b.set_result(2)
    assert not both.done()
    a.set_result(1)
    assert both.wait() == [a, b] and wait_all([a, b]) == [1, 2] and wait_all([]) == []
    with pytest.raises(ValueError, match="x"):
        wait_all([a, failed(ValueError("x"))])
    with pytest.raises(TypeError, match="list of futures"):
        collect_all([3])
    assert wait_all([cresset.jit.fork(cresset.add, cresset.ones(1), 1), done(3)]) == [cresset.full((1,), 2.0), 3]
