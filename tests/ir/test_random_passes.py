"""Every pass on random graphs: well-formed, truthful, deterministic, the same on a second run, the same answers and writes, marks respected."""

import cresset
import pytest
from cresset import _C, lowering
from runnable_graphs import runnable_text

# Unrolling again unrolls what is left.
NOT_IDEMPOTENT = {"loop_unrolling", "constant_loop_unrolling"}
PASSES = [p.name for p in lowering.passes() if p.name != "drop_unused_nodes"]
# These put one operator for another and must leave marked ones alone (others also remove dead nodes, or copy bodies of loops).
REWRITES = """alias_operators remove_contiguous remove_dropout remove_to remove_nops unpack_addmm unpack_log_softmax unpack_hard_swish
unpack_hard_sigmoid reduce_gelu view_to_reshape linear_to_addmm unpack_std unpack_var unpack_silu fuse_linear fuse_addmm_branches
fuse_flatten_linear""".split()
MARK = "[to_compile=0]"


def inputs(seed):
    cresset.manual_seed(seed)
    return [cresset.randn(3, 3), cresset.randn(3, 3), cresset.randn(3, 3), cresset.randn(3), seed % 4, seed % 3 == 0]


def runs(graph, args):
    try:
        _C._jit_run_graph(graph, [a.clone() if isinstance(a, cresset.Tensor) else a for a in args])
    except RuntimeError:
        return False
    return True


def check(seed, names):
    """Names of the passes that changed the graph."""
    original = _C.parse_ir(runnable_text(seed))
    original.lint()
    args, text = inputs(seed), str(original)
    # A write of dead memory may raise (overlapping elements); without it there is an answer.
    answers, found = runs(original, args), set()
    for name in names:
        graph = original.copy()
        try:
            said = _C._jit_run_pass(name, graph, [])[0]
        except RuntimeError as e:
            assert name == "lower_all_tuples" and "lower_all_tuples: " in str(e), (seed, name, e)
            continue
        graph.lint()
        assert (said == "changed") == (str(graph) != text), (seed, name, said)
        again = original.copy()
        _C._jit_run_pass(name, again, [])
        assert str(again) == str(graph), (seed, name, "not deterministic")
        if said == "unchanged":
            continue
        found.add(name)
        if name in REWRITES:
            assert str(graph).count(MARK) == text.count(MARK), (seed, name, "a marked node was rewritten")
        if answers:
            difference = _C._jit_run_difference(original, graph, args)
            assert difference is None, (seed, name, difference)
        if name not in NOT_IDEMPOTENT:
            once = str(graph)
            said = _C._jit_run_pass(name, graph, [])[0]
            assert said == "unchanged" and str(graph) == once, (seed, name, "changes again")
    return found


@pytest.mark.parametrize("block", range(10))
def test_single_passes(block):
    found = set()
    for seed in range(block * 20, block * 20 + 20):
        found |= check(seed, PASSES)
    assert len(found) > 20, found


def test_the_whole_phase():
    for seed in range(5000, 5100):
        graph = _C.parse_ir(runnable_text(seed))
        original = graph.copy()
        lowering.lower(graph)
        assert not runs(original, inputs(seed)) or _C._jit_run_difference(original, graph, inputs(seed)) is None, seed


def test_new_values_where_destroyed_ones_were():
    """The second run found something to do: the analysis took a new constant for a written tensor that had been at its address."""
    assert "constant_propagation" in check(12787, ["constant_propagation"])


@pytest.mark.slow
@pytest.mark.parametrize("block", range(100))
def test_ten_thousand_graphs(block):
    for seed in range(10000 + block * 100, 10100 + block * 100):
        check(seed, PASSES)
