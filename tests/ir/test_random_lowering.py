"""Each pass alone on random graphs that run: same answers, same writes, well formed, the same text from the same graph, settled after one run."""

import pytest
from lowering_graphs import lowering_graph

import cresset
from cresset import _C

PASSES = """alias_operators remove_contiguous remove_dropout remove_to remove_nops unpack_addmm unpack_log_softmax unpack_hard_swish
unpack_hard_sigmoid reduce_gelu view_to_reshape linear_to_addmm unpack_std unpack_var unpack_silu fuse_linear fuse_addmm_branches
fuse_flatten_linear drop_unused_nodes""".split()
GRAPHS = 40


def inputs(seed):
    cresset.manual_seed(seed)
    return [cresset.randn(3, 3), cresset.randn(3, 3), cresset.randn(3, 3), cresset.randn(3), bool(seed % 2), seed % 3]


def runs(graph, seed):
    try:
        _C._jit_run_graph(graph, inputs(seed))
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize("start", range(0, 200, GRAPHS))
def test_passes_on_random_graphs(start):
    found = set()
    for seed in range(start, start + GRAPHS):
        text = lowering_graph(seed)
        graph = _C.parse_ir(text)
        graph.lint()
        if not runs(graph.copy(), seed):
            continue  # writes to memory that overlaps itself
        for name in PASSES:
            after, again = graph.copy(), graph.copy()
            if _C._jit_run_pass(name, after, [])[0] == "unchanged":
                assert str(after) == str(graph)
                continue
            found.add(name)
            after.lint()
            assert _C._jit_run_difference(graph, after, inputs(seed)) is None, f"{name} on graph {seed}:\n{graph}\n{after}"
            _C._jit_run_pass(name, again, [])
            assert str(again) == str(after), f"{name} on graph {seed}"
            once = str(after)
            assert _C._jit_run_pass(name, after, [])[0] == "unchanged" and str(after) == once, f"{name} twice on graph {seed}"
    assert len(found) > 12, found
