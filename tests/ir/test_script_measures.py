"""What scripts measure: counters of jit._logging, jit._ScriptProfile."""

import threading

import pytest

import cresset
from cresset import jit
from cresset.jit import _logging


@pytest.fixture
def logger():
    logger = _logging.LockingLogger()
    before = _logging.set_logger(logger)
    yield logger
    assert _logging.set_logger(before) is logger


@jit.script
def counts(x, n: int):
    for i in range(n):
        x = x + 1
        jit._logging.add_stat_value("steps", i)
    if bool(x.sum() > 0):
        jit._logging.add_stat_value("positive", 1)
    return x


def test_scripts_add_to_counters(logger):
    counts(cresset.ones(2), 4)
    counts(cresset.full([2], -10.0), 3)
    assert logger.get_counter_val("steps") == 0 + 1 + 2 + 3 + 0 + 1 + 2
    assert logger.get_counter_val("positive") == 1
    assert logger.get_counter_val("nothing") == 0
    logger.set_aggregation_type("steps", _logging.AggregationType.AVG)
    assert logger.get_counter_val("steps") == 9 // 7


def test_python_and_traces_add_to_counters(logger):
    def add_one(x):
        _logging.add_stat_value("calls", 2)
        return x + 1

    traced = jit.trace(add_one, cresset.ones(2))
    before = logger.get_counter_val("calls")
    assert before > 0  # the trace, and its check, called the function
    assert traced(cresset.ones(2)).tolist() == [2, 2]
    assert logger.get_counter_val("calls") == before + 2
    add_one(cresset.ones(2))
    assert logger.get_counter_val("calls") == before + 4


def test_without_a_logger_nothing_is_kept():
    logger = _logging.LockingLogger()
    counts(cresset.ones(2), 4)
    assert logger.get_counter_val("steps") == 0
    with pytest.raises(TypeError, match="a logger was required; a int was given"):
        _logging.set_logger(3)


def test_threads_add_to_one_counter(logger):
    threads = [threading.Thread(target=counts, args=(cresset.ones(2), 100)) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert logger.get_counter_val("steps") == 4 * sum(range(100))


def test_time_points():
    @jit.script
    def took(x):
        begin = jit._logging.time_point()
        for _ in range(30):
            x = x + 1
        return jit._logging.time_point() - begin

    assert 0 < took(cresset.ones(2)) < 10**10
    assert _logging.time_point() <= _logging.time_point()


def double(y):
    z = y * 2
    return z


@jit.script
def profiled(x, n: int):
    for i in range(n):
        x = x + 1
        x = x * 2
    if n > 100:
        x = double(x) - 1
    return x


def hits(profile):
    """{text of the line: (hits, time)}"""
    found = {}
    for row in profile.dump_string().splitlines():
        cells = row.split(maxsplit=3)
        if len(cells) == 4 and cells[1].isdigit() and cells[2].isdigit():
            found[cells[3]] = (int(cells[1]), int(cells[2]))
    return found


def test_a_profile_counts_lines():
    p = jit._ScriptProfile()
    p.enable()
    profiled(cresset.ones(2), 3)
    profiled(cresset.ones(2), 101)
    p.disable()
    found = hits(p)
    assert {line: n for line, (n, _) in found.items()} == {
        "for i in range(n):": 2 + 3 + 101, "x = x + 1": 104, "x = x * 2": 104, "if n > 100:": 2, "x = double(x) - 1": 1, "z = y * 2": 1,
    }  # fmt: skip
    assert found["x = x + 1"][1] > 0
    before = p.dump_string()
    profiled(cresset.ones(2), 3)
    assert p.dump_string() == before
    p.enable()
    profiled(cresset.ones(2), 3)
    p.disable()
    assert hits(p)["x = x + 1"][0] == 107


def test_profiles_are_apart():
    first, second = jit._ScriptProfile(), jit._ScriptProfile()
    first.enable()
    profiled(cresset.ones(2), 3)
    second.enable()
    profiled(cresset.ones(2), 4)
    first.disable()
    profiled(cresset.ones(2), 5)
    second.disable()
    assert hits(first)["x = x + 1"][0] == 7
    assert hits(second)["x = x + 1"][0] == 9


def test_an_empty_profile_is_empty():
    p = jit._ScriptProfile()
    p.enable()
    p.disable()
    assert p.dump_string() == ""


def test_errors_leave_profiles_in_order():
    @jit.script
    def raises(x, bad: bool):
        x = x + 1
        if bad:
            raise RuntimeError("no")
        return x * 3

    p = jit._ScriptProfile()
    p.enable()
    for bad in (True, False, True, False):
        try:
            raises(cresset.ones(2), bad)
        except RuntimeError:
            assert bad
    p.disable()
    assert {line: n for line, (n, _) in hits(p).items()} == {"x = x + 1": 4, "if bad:": 4, 'raise RuntimeError("no")': 2, "return x * 3": 2}


def test_lines_of_forks_and_methods():
    class Model(cresset.nn.Module):
        def forward(self, x):
            later = jit.fork(self.step, x)
            return self.step(x) + jit.wait(later)

        def step(self, x):
            return x * 2

    model = jit.script(Model())
    p = jit._ScriptProfile()
    p.enable()
    model(cresset.ones(2))
    p.disable()
    assert hits(p)["return x * 2"][0] == 2
