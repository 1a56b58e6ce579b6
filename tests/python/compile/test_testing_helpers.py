"""Helpers of cresset._dynamo.testing, and fx structures of results with named fields."""

import unittest

import cresset
from cresset._dynamo import testing
from cresset.fx.experimental.proxy_tensor import make_fx


class _Settings:
    value = 1


def cases():
    class _Cases(unittest.TestCase):
        limit = 3

        def test_limit(self):
            self.seen.append(_Settings.value)

        def test_fails(self):
            raise AssertionError

        test_fails.known = True
        seen = []

    return _Cases


def test_classes_under_patches():
    _Cases = cases()
    made = testing.make_test_cls_with_patches(_Cases, "Patched", "_patched", (_Settings, "value", 5), xfail_prop="known")
    assert made.__name__ == "Patched_Cases" and made.limit == 3 and not hasattr(made, "test_limit")
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(made).run(result)
    assert result.testsRun == 2 and not result.failures and len(result.expectedFailures) == 1
    assert _Cases.seen == [5] and _Settings.value == 1


def test_counters():
    counter = testing.CompileCounter()
    f = cresset.compile(lambda x: x.sin() + 1, backend=counter)
    assert cresset.equal(f(cresset.ones(2)), cresset.ones(2).sin() + 1)
    assert (counter.frame_count, counter.op_count) == (1, 2)
    assert cresset._dynamo.is_dynamo_supported()


def test_rand_strided_and_same():
    x = testing.rand_strided((2, 3), (1, 4), extra_size=2)
    assert x.stride() == (1, 4) and x.untyped_storage().nbytes() == (1 + 1 + 8 + 2) * 4
    assert testing.same([x, 2], [x.clone(), 2]) and not testing.same([x, 2], [x + 1, 2]) and not testing.same(x, x.double())


def test_named_results_in_traced_structures():
    from cresset.fx import _pytree
    from cresset.utils import _pytree as pytree

    pair = cresset.max(cresset.ones(2, 2), 0)
    leaves, spec = pytree.tree_flatten(pair)
    assert len(leaves) == 2 and all(a is b for a, b in zip(_pytree.tree_flatten_spec(pair, spec), leaves))


def test_notes_of_values_do_not_follow_later_changes():
    def f(x):
        y = x.clone()
        y.unsqueeze_(0)
        return y

    for mode in ("real", "fake"):
        graph = make_fx(f, tracing_mode=mode)(cresset.ones(3)).graph
        assert [tuple(n.meta["val"].shape) for n in graph.nodes if "val" in n.meta] == [(3,), (3,), (1, 3)]
