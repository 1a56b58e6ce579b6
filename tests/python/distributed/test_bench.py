"""`cresset bench comm`: the fit, the model, and the store with many clients."""

import json
import math

import pytest

from cresset.distributed import _bench


def test_the_fit_finds_a_line():
    start, slope = _bench.fit([(n, 30e-6 + n * 2e-9) for n in _bench.SIZES])
    assert math.isclose(start, 30e-6, rel_tol=1e-6) and math.isclose(slope, 2e-9, rel_tol=1e-6)
    assert _bench.fit([(64, 1e-4)]) == (1e-4, 0.0)
    assert _bench.fit([(1, 2e-3), (1000, 1e-3)])[1] == 0.0  # no time comes back from bytes


def test_the_model_of_a_ring():
    # 2 ranks: 2 steps, each byte once. 4 ranks: 6 steps, each byte 1.5 times.
    assert math.isclose(_bench.project("all_reduce", 20e-6, 1e-9, 2, 1_000_000, 4), 60e-6 + 1.5e-3)
    assert math.isclose(_bench.project("all_reduce", 20e-6, 1e-9, 2, 1000, 2), 21e-6)
    assert math.isclose(_bench.project("broadcast", 10e-6, 0.0, 2, 64, 1024), 100e-6)


def test_the_command(capsys):
    assert _bench.main(["--sizes", "64,4096", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["ranks"] == 2 and told["projected_ranks"] == 1024 and set(told["collectives"]) == set(_bench.COLLECTIVES)
    assert all(seconds > 0 for found in told["collectives"].values() for _, seconds in found["points"])


@pytest.mark.parametrize("sizes", [(8, 16), pytest.param((32, 256), marks=pytest.mark.slow)])
def test_a_store_with_many_clients(sizes):
    few, many = map(_bench.store_growth, sizes)
    # Every client reads what every client wrote: the work grows as the square. Ten times that is a machine that has other things to do.
    assert many < 10 * max(few, 0.02) * (sizes[1] / sizes[0]) ** 2
