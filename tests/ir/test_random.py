"""Random graphs: round trips, copies, the verifier, alias analysis and passes on all of them."""

import pytest
from random_graphs import random_text

from cresset import _C


def check(seed, size):
    text = random_text(seed, size)
    graph = _C.parse_ir(text)
    graph.lint()
    printed = str(graph)
    again = _C.parse_ir(printed)
    assert str(again) == printed, seed
    assert _C._jit_graph_difference(graph, again) is None, seed
    assert str(graph.copy()) == printed, seed
    normal = str(graph.canonicalize())
    assert str(_C.parse_ir(normal).canonicalize()) == normal, seed
    return graph


@pytest.mark.parametrize("block", range(6))
def test_round_trip(block):
    for seed in range(block * 50, block * 50 + 50):
        check(seed, 40)


@pytest.mark.parametrize("block", range(4))
def test_passes_keep_graphs_well_formed(block):
    for seed in range(1000 + block * 25, 1000 + block * 25 + 25):
        graph = check(seed, 60)
        _C._jit_alias_db(graph)
        for name in ("_jit_pass_dce", "_jit_pass_constant_propagation", "_jit_pass_dce"):
            getattr(_C, name)(graph)
            graph.lint()
        once = str(graph)
        _C._jit_pass_dce(graph)
        assert str(graph) == once, seed


def test_moves_keep_graphs_well_formed():
    import random

    for seed in range(2000, 2030):
        rng = random.Random(seed)
        graph = check(seed, 40)
        nodes = list(graph.nodes())
        db = _C._jit_alias_db(graph)
        for _ in range(30):
            a, b = rng.choice(nodes), rng.choice(nodes)
            before = str(graph)
            if not getattr(db, rng.choice(["move_after_topologically_valid", "move_before_topologically_valid"]))(a, b):
                assert str(graph) == before
            graph.lint()


@pytest.mark.slow
def test_ten_thousand_round_trips():
    for seed in range(10000, 20000):
        check(seed, 30)
