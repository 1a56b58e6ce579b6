"""torch._C._functorch as far as it exists, and backward() inside of a transform."""

import cresset
import pytest
from cresset import vmap
from cresset._C._functorch import get_unwrapped, is_batchedtensor, maybe_get_bdim, maybe_get_level, reshape_dim_into, reshape_dim_outof
from cresset.func import functionalize, grad, jvp, vjp

X = cresset.arange(6.0).view(2, 3)
F = cresset._C._functorch


def test_questions_about_batched_tensors():
    def f(a, b):
        assert is_batchedtensor(a) and (maybe_get_bdim(a), maybe_get_level(a), F.dlevel(a), F.dlevel(b)) == (1, 1, 1, 0) and not is_batchedtensor(b)
        assert get_unwrapped(a).shape == (2, 3) and (maybe_get_bdim(b), maybe_get_level(b)) == (-1, -1)
        assert F.current_level() == F.maybe_current_level() == 1
        return a + b

    vmap(f, in_dims=(1, None))(X, X[:, 0])
    assert F.maybe_current_level() is None and F.unwrap_if_dead(X) is X and not F.is_functionaltensor(X)
    with pytest.raises(RuntimeError, match="No wrappers present!"):
        get_unwrapped(X)


def test_levels_by_hand():
    number = F._vmap_increment_nesting(2, "error")
    try:
        batched = F._add_batch_dim(X, 0, number)
        assert batched.shape == (3,) and F._unwrap_batched(batched, number)[1] == 0
        out = F._remove_batch_dim(batched * 2, number, 2, 1)
    finally:
        assert F._vmap_decrement_nesting() == number
    assert cresset.equal(out, 2 * X.t())


def test_dimensions():
    t = cresset.zeros(2, 3, 5)
    assert reshape_dim_into(0, 0, t).shape == (6, 5) and reshape_dim_into(0, 1, t).shape == (3, 10) and reshape_dim_into(-1, 0, t).shape == (10, 3)
    assert reshape_dim_outof(0, 2, cresset.zeros(12, 7)).shape == (2, 6, 7) and reshape_dim_outof(-1, 4, cresset.zeros(12, 8)).shape == (12, 4, 2)


def test_operators_without_a_rule_can_be_refused():
    with cresset.library._scoped_library("looped", "FRAGMENT") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CPU")
        assert F._is_vmap_fallback_enabled()
        F._set_vmap_fallback_enabled(False)
        try:
            with pytest.raises(RuntimeError, match="Batching rule not implemented for looped::twice"):
                vmap(cresset.ops.looped.twice)(X)
        finally:
            F._set_vmap_fallback_enabled(True)
        F._set_vmap_fallback_warning_enabled(False)
        try:
            assert cresset.equal(vmap(cresset.ops.looped.twice)(X), 2 * X)
        finally:
            F._set_vmap_fallback_warning_enabled(True)


def test_warnings_about_loops_by_the_older_names():
    before = cresset._C._debug_only_are_vmap_fallback_warnings_enabled()
    try:
        for display in (False, True):
            cresset._C._debug_only_display_vmap_fallback_warnings(display)
            assert cresset._C._debug_only_are_vmap_fallback_warnings_enabled() is display
    finally:
        cresset._C._debug_only_display_vmap_fallback_warnings(before)


def test_backward_inside_of_a_transform_is_refused():
    w = cresset.ones(3, requires_grad=True)

    def tensor_method(x):
        (w * x).sum().backward()
        return x.sum()

    def function(x):
        cresset.autograd.backward((w * x).sum())
        return x.sum()

    for f in (tensor_method, function):
        for transformed in (vmap(f), grad(f), lambda x, f=f: vjp(f, x), lambda x, f=f: jvp(f, (x,), (x,))):
            with pytest.raises(RuntimeError, match=r"backward\(\) called inside a functorch transform"):
                transformed(X)
    assert w.grad is None
    functionalize(lambda x: x * 2)(X)
    assert grad(lambda x: cresset.autograd.grad((x * x).sum(), x, create_graph=True)[0].sum())(X[0]).tolist() == [2, 2, 2]
