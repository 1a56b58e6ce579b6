"""Forward, pre-forward and backward hooks of modules, local and global."""

import copy
import types
import warnings

import cresset
import pytest
from cresset import nn
from cresset.nn.modules import module as M


def one():
    return nn.Linear(2, 2, bias=False)


X = [[1.0, 2.0], [3.0, 4.0]]


def test_forward_hooks_run_in_order_and_can_be_removed():
    net, calls = one(), []
    a = net.register_forward_hook(lambda m, args, out: calls.append("a"))
    net.register_forward_hook(lambda m, args, out: calls.append("b"))
    net.register_forward_hook(lambda m, args, out: calls.append("first"), prepend=True)
    net.register_forward_pre_hook(lambda m, args: calls.append("pre"))
    net.register_forward_pre_hook(lambda m, args: calls.append("pre first"), prepend=True)
    net(cresset.tensor(X))
    assert calls == ["pre first", "pre", "first", "a", "b"]
    a.remove()
    a.remove()
    calls.clear()
    net(cresset.tensor(X))
    assert calls == ["pre first", "pre", "first", "b"]


def test_handles_are_context_managers():
    net, calls = one(), []
    with net.register_forward_hook(lambda m, args, out: calls.append(1)):
        net(cresset.tensor(X))
    net(cresset.tensor(X))
    assert calls == [1]


def test_hooks_replace_inputs_and_outputs():
    net = nn.Identity()
    net.register_forward_pre_hook(lambda m, args: args[0] + 1)
    net.register_forward_hook(lambda m, args, out: out * 10)
    assert net(cresset.tensor([1.0])).tolist() == [20.0]
    net = nn.Identity()
    net.register_forward_pre_hook(lambda m, args: (args[0] * 2,))
    assert net(cresset.tensor([1.0])).tolist() == [2.0]


def test_with_kwargs():
    class Add(nn.Module):
        def forward(self, x, *, y=0):
            return x + y

    net, seen = Add(), []
    net.register_forward_pre_hook(lambda m, a, k: (a, {**k, "y": k["y"] + 1}), with_kwargs=True)
    net.register_forward_hook(lambda m, a, k, out: seen.append((a, k, out)), with_kwargs=True)
    assert net(1, y=2) == 4
    assert seen == [((1,), {"y": 3}, 4)]
    bad = Add()
    bad.register_forward_pre_hook(lambda m, a, k: 3, with_kwargs=True)
    with pytest.raises(
        RuntimeError, match=r"forward pre-hook must return None or a tuple of \(new_args, new_kwargs\), but got 3"
    ):
        bad(1, y=2)


def test_always_call():
    class Fail(nn.Module):
        def forward(self, x):
            raise ValueError("broken")

    net, calls = Fail(), []
    net.register_forward_hook(lambda m, a, out: calls.append(("always", out)), always_call=True)
    net.register_forward_hook(lambda m, a, out: calls.append("never"))
    with pytest.raises(ValueError, match="broken"):
        net(1)
    assert calls == [("always", None)]

    def also_fails(m, a, out):
        raise KeyError("second")

    net.register_forward_hook(also_fails, always_call=True)
    with (
        pytest.warns(UserWarning, match="silenced as another error was raised in forward"),
        pytest.raises(ValueError, match="broken"),
    ):
        net(1)


def test_always_call_hooks_run_once_when_a_later_hook_fails():
    net, calls = nn.Identity(), []
    net.register_forward_hook(lambda m, a, out: calls.append(1), always_call=True)
    net.register_forward_hook(lambda m, a, out: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        net(1)
    assert calls == [1]


def test_removal_during_the_call():
    net, calls = nn.Identity(), []

    def hook(m, a, out):
        calls.append(1)
        handle.remove()

    handle = net.register_forward_hook(hook)
    net(1)
    net(1)
    assert calls == [1]


def test_global_hooks_run_before_local_ones():
    net, calls = nn.Identity(), []
    net.register_forward_pre_hook(lambda m, a: calls.append("local pre"))
    net.register_forward_hook(lambda m, a, out: calls.append("local"))
    handles = [
        M.register_module_forward_pre_hook(lambda m, a: calls.append("global pre")),
        M.register_module_forward_hook(lambda m, a, out: calls.append("global")),
    ]
    try:
        net(1)
    finally:
        for h in handles:
            h.remove()
    assert calls == ["global pre", "local pre", "global", "local"]
    net(1)
    assert len(calls) == 6


def test_global_registration_hooks():
    seen = []
    handles = [
        M.register_module_parameter_registration_hook(lambda m, n, p: seen.append(("parameter", n))),
        M.register_module_buffer_registration_hook(lambda m, n, b: seen.append(("buffer", n))),
        M.register_module_module_registration_hook(lambda m, n, c: seen.append(("module", n))),
    ]
    try:
        net = nn.Module()
        net.w = nn.Parameter(cresset.ones(1))
        net.register_buffer("b", cresset.ones(1))
        net.child = nn.Identity()
        net.add_module("other", nn.Identity())
    finally:
        for h in handles:
            h.remove()
    assert seen == [("parameter", "w"), ("buffer", "b"), ("module", "child"), ("module", "other")]
    net.more = nn.Identity()
    assert len(seen) == 4


def test_full_backward_hook_sees_gradients():
    net, seen = one(), []
    with cresset.no_grad():
        net.weight.copy_(cresset.tensor([[1.0, 2.0], [3.0, 4.0]]))
    net.register_full_backward_hook(lambda m, gi, go: seen.append((m, gi, go)))
    x = cresset.tensor(X, requires_grad=True)
    net(x).sum().backward()
    assert seen[0][0] is net
    assert seen[0][1][0].tolist() == [[4.0, 6.0], [4.0, 6.0]] and len(seen[0][1]) == 1
    assert seen[0][2][0].tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert x.grad.tolist() == [[4.0, 6.0], [4.0, 6.0]]


def test_full_backward_hook_replaces_gradients():
    net = nn.Identity()
    net.register_full_backward_hook(lambda m, gi, go: (gi[0] * 10,))
    net.register_full_backward_hook(lambda m, gi, go: gi[0] + 1)
    x = cresset.ones(2, requires_grad=True)
    net(x).sum().backward()
    assert x.grad.tolist() == [11.0, 11.0]


def test_full_backward_pre_hook():
    net, seen = nn.Identity(), []
    net.register_full_backward_pre_hook(lambda m, go: (go[0] * 2,))
    net.register_full_backward_pre_hook(lambda m, go: seen.append(go[0].tolist()))
    net.register_full_backward_pre_hook(lambda m, go: (go[0] * 3,), prepend=True)
    net.register_full_backward_hook(lambda m, gi, go: seen.append(go[0].tolist()))
    x = cresset.ones(1, requires_grad=True)
    net(x).sum().backward()
    assert x.grad.tolist() == [6.0] and seen == [[6.0], [6.0]]


def test_several_inputs_and_outputs():
    class Two(nn.Module):
        def forward(self, a, n, b):
            return a * n, b * 3

    net, seen = Two(), []
    net.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go)))
    a, b = cresset.ones(1, requires_grad=True), cresset.ones(1)
    x, y = net(a, 2, b)
    (x + y).sum().backward()
    gi, go = seen[0]
    assert [g if g is None else g.tolist() for g in gi] == [[2.0], None, [0.0]]
    assert go[0].tolist() == [1.0] and len(go) == 2
    assert a.grad.tolist() == [2.0] and b.grad is None


def test_hook_without_inputs_that_require_grad():
    net, seen = one(), []
    net.register_full_backward_hook(lambda m, gi, go: seen.append((gi, go[0].tolist())))
    with pytest.warns(UserWarning, match="no inputs require gradients"):
        net(cresset.tensor(X)).sum().backward()
    assert seen == [((None,), [[1.0, 1.0], [1.0, 1.0]])]
    bad = one()
    bad.register_full_backward_hook(lambda m, gi, go: (cresset.ones(2, 2),))
    with (
        pytest.warns(UserWarning),
        pytest.raises(RuntimeError, match="should always return None or None for all gradients"),
    ):
        bad(cresset.tensor(X)).sum().backward()


@pytest.mark.parametrize(
    "which, words", [("hook", "grad_input, got 2, but expected 1"), ("pre_hook", "grad_output, got 2, but expected 1")]
)
def test_wrong_number_of_gradients(which, words):
    net = one()
    getattr(net, f"register_full_backward_{which}")(lambda m, *g: (cresset.ones(2, 2),) * 2)
    x = cresset.tensor(X, requires_grad=True)
    with pytest.raises(RuntimeError, match=words):
        net(x).sum().backward()


def test_full_and_old_hooks_do_not_mix():
    net = one()
    net.register_backward_hook(lambda *a: None)
    with pytest.raises(
        RuntimeError, match="Cannot use both regular backward hooks and full backward hooks on a single Module"
    ):
        net.register_full_backward_hook(lambda *a: None)
    net = one()
    net.register_full_backward_hook(lambda *a: None)
    with pytest.raises(
        RuntimeError, match="Cannot use both regular backward hooks and full backward hooks on a single Module"
    ):
        net.register_backward_hook(lambda *a: None)


def test_old_backward_hook_sees_the_last_node():
    class Square(nn.Module):
        def forward(self, x):
            return x * x

    net, seen = Square(), []
    net.register_backward_hook(lambda m, gi, go: seen.append((m, go[0].tolist())))
    x = cresset.tensor([3.0], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        net(x).sum().backward()
    assert seen == [(net, [1.0])] and x.grad.tolist() == [6.0]


def test_in_place_after_a_backward_hook_raises():
    net = one()
    net.register_full_backward_hook(lambda m, gi, go: None)
    y = net(cresset.tensor(X, requires_grad=True))
    with pytest.raises(RuntimeError, match="BackwardHookFunction.* is a view and is being modified inplace"):
        y.add_(1)


def test_global_backward_hooks():
    seen = []
    handles = [
        M.register_module_full_backward_hook(lambda m, gi, go: seen.append("after")),
        M.register_module_full_backward_pre_hook(lambda m, go: seen.append("before")),
    ]
    try:
        with pytest.raises(RuntimeError, match="Cannot use both"):
            M.register_module_backward_hook(lambda *a: None)
        net = nn.Identity()
        net.register_full_backward_hook(lambda m, gi, go: seen.append("local"))
        net(cresset.ones(1, requires_grad=True)).sum().backward()
    finally:
        for h in handles:
            h.remove()
        M._hooks._global_is_full_backward_hook = None
    assert seen == ["before", "after", "local"]


def test_without_grad_backward_hooks_do_nothing():
    net = nn.Identity()
    net.register_full_backward_hook(lambda m, gi, go: 1 / 0)
    x = cresset.ones(1, requires_grad=True)
    with cresset.no_grad():
        assert net(x) is x


def test_calls_are_surrounded_by_a_replaced_call_impl():
    """As libraries do that note which module calls an operator."""
    seen = []

    def surrounded(module, *args, **kwargs):
        seen.append(type(module).__name__)
        return type(module)._call_impl(module, *args, **kwargs)

    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    x = cresset.ones(1, 2)
    plain = model(x)
    model[0].register_forward_hook(lambda module, args, output: seen.append("hook"))
    for module in model.modules():
        module._call_impl = types.MethodType(surrounded, module)
    assert cresset.equal(model(x), plain) and seen == ["Sequential", "Linear", "hook", "ReLU"]
    for module in model.modules():
        module.__dict__.pop("_call_impl")
    seen.clear()
    again = copy.deepcopy(model)
    assert cresset.equal(model(x), plain) and cresset.equal(again(x), plain) and seen == ["hook"] * 2
    assert "_compiled_call_impl" not in model.__dict__ and "_compiled_call_impl" not in again[1].__dict__


def test_classes_with_a_call_impl_of_their_own():
    class Twice(nn.Linear):
        def _call_impl(self, *args, **kwargs):
            return super()._call_impl(*args, **kwargs) * 2

    class Four(Twice):
        def _call_impl(self, *args, **kwargs):
            return super()._call_impl(*args, **kwargs) * 2

    x, layer = cresset.ones(1, 2), Four(2, 1)
    assert cresset.equal(layer(x), 4 * layer.forward(x)) and cresset.equal(nn.Linear(2, 1)._call_impl(x).detach() * 0, cresset.zeros(1, 1))
