"""Writing to saved tensors, checkpoints that keep the results of some operators, names for stretches of code."""

import functools
from contextlib import nullcontext

import pytest

import cresset as torch
from cresset.autograd.graph import allow_mutation_on_saved_tensors
from cresset.autograd.profiler import record_function
from cresset.utils._python_dispatch import TorchDispatchMode
from cresset.utils.checkpoint import (
    SAC_IGNORED_OPS, CheckpointPolicy, SelectiveCheckpointContext, checkpoint, create_selective_checkpoint_contexts,
    set_checkpoint_early_stop,
)  # fmt: skip

aten = torch.ops.aten

# --- writing to saved tensors -----------------------------------------------------------------------------------------------------

# How a saved tensor is written: calls of methods, of functions, of overloads and packets, and of C++ that calls operators itself.
WRITES = {
    "method": lambda a: a.zero_(),
    "operator": lambda a: a.__imul__(0),
    "indexing": lambda a: a.__setitem__(slice(None), 0),
    "out": lambda a: torch.mul(a, 0, out=a),
    "overload": lambda a: aten.mul_.Tensor(a, torch.zeros(())),
    "packet": lambda a: aten.zero_(a),
    "list": lambda a: torch._foreach_zero_([a]),
    "view": lambda a: a[:1].zero_(),
    "fused in C++": lambda a: torch.nn.functional.relu(a, inplace=True).zero_(),
    "a property": lambda a: a.data.zero_(),
    "an optimizer": lambda a: _step(a),
}


def _step(a):
    p = a.detach()
    p.grad = torch.ones_like(p)
    torch.optim.SGD([p], lr=1.0, foreach=True).step()


@pytest.mark.parametrize("write", WRITES)
def test_writes_are_seen(write):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with allow_mutation_on_saved_tensors():
        a = x.clone()
        y = (a**2).sum()
        with torch.no_grad():
            WRITES[write](a)
        y.backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_only_what_is_written_is_cloned():
    x = torch.ones(3, requires_grad=True)
    with allow_mutation_on_saved_tensors() as context:
        a, b = x.clone(), x.clone()
        y = (a * b).sum()
        clones = []

        class Count(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                clones.append(func)
                return func(*args, **(kwargs or {}))

        with torch.no_grad():
            a.add_(1)
        y.backward()
        assert x.grad.tolist() == [2.0] * 3
        z = (a * b).sum()
        context.clear()
        with pytest.raises(AssertionError, match="Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"):
            z.backward()
    with allow_mutation_on_saved_tensors():
        y = (x * x).sum()
        with pytest.raises(RuntimeError, match="allow_mutation_on_saved_tensors contexts cannot be nested"), allow_mutation_on_saved_tensors():
            pass
    with pytest.raises(AssertionError, match="in which the graph was originally recorded"):
        y.backward()


# --- selective checkpoints --------------------------------------------------------------------------------------------------------


class Count(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.calls.append(str(func).split(".")[1])
        return func(*args, **(kwargs or {}))


def function(x, w):
    return torch.sigmoid(torch.matmul(torch.matmul(x, w).sin(), w))


def recomputed(policy, f=function, **options):
    """How often mm, sin and sigmoid run in backward (the gradients of two products are four), and the gradient."""
    torch.manual_seed(0)
    x, w = torch.randn(4, 4, requires_grad=True), torch.randn(4, 4, requires_grad=True)
    contexts = {} if policy is None else {"context_fn": functools.partial(create_selective_checkpoint_contexts, policy, **options)}
    y = checkpoint(f, x, w, use_reentrant=False, **contexts)
    with Count() as count:
        y.sum().backward()
    return [count.calls.count(name) for name in ("mm", "sin", "sigmoid")], x.grad


def by_name(name, answer, otherwise):
    return lambda ctx, op, *args, **kwargs: answer if op is getattr(aten, name).default else otherwise


@pytest.mark.parametrize(
    "policy, expected",
    [
        (None, [6, 1, 1]),
        ([aten.mm.default], [4, 1, 1]),
        (by_name("sin", CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_RECOMPUTE), [6, 0, 1]),
        (by_name("mm", True, False), [4, 1, 1]),
        (by_name("mm", CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_SAVE), [6, 0, 0]),
        (lambda ctx, op, *args, **kwargs: CheckpointPolicy.PREFER_SAVE, [4, 0, 0]),
        (lambda ctx, op, *args, **kwargs: CheckpointPolicy.PREFER_CPU_OFFLOAD, [4, 0, 0]),
        (by_name("sin", CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_RECOMPUTE), [6, 0, 1]),
    ],
)
def test_policies(policy, expected):
    calls, grad = recomputed(policy)
    assert calls == expected and torch.equal(grad, recomputed(None)[1])


def test_what_is_kept_on_the_cpu_comes_back_to_its_device():
    from cresset._subclasses import FakeTensorMode
    from cresset.utils.checkpoint import _VersionWrapper

    with FakeTensorMode():
        kept = _VersionWrapper(torch.ones(2, device="cuda"), on_cpu=True)
        assert kept.val.device.type == "cpu" and kept.get_val(False).device == torch.device("cuda", 0)
        assert _VersionWrapper(torch.ones(2, device="cuda")).val.device.type == "cuda"
    here = torch.ones(2)
    assert _VersionWrapper(here, on_cpu=True).get_val(False) is here


def test_what_policies_see():
    seen = []

    def policy(ctx, op, *args, **kwargs):
        assert isinstance(ctx, SelectiveCheckpointContext)
        seen.append((ctx.is_recompute, str(op), len(args)))
        return CheckpointPolicy.MUST_SAVE

    recomputed(policy)
    assert (False, "aten.mm.default", 2) in seen and not any(again for again, _, _ in seen)  # asked in the first computation only
    assert aten.detach.default in SAC_IGNORED_OPS and not any("detach" in name for _, name, _ in seen)


def test_each_call_of_an_operator_has_a_decision_of_its_own():
    calls = []

    def policy(ctx, op, *args, **kwargs):
        calls.append(str(op))
        return CheckpointPolicy.MUST_SAVE if len(calls) % 2 else CheckpointPolicy.PREFER_RECOMPUTE

    x = torch.ones(2, requires_grad=True)
    contexts = functools.partial(create_selective_checkpoint_contexts, policy)
    checkpoint(lambda v: v.sin().sin().sin().sin(), x, use_reentrant=False, context_fn=contexts).sum().backward()
    expected = torch.autograd.grad(x.sin().sin().sin().sin().sum(), x)[0]
    assert calls == ["aten.sin.default"] * 4 and torch.equal(x.grad, expected)


@pytest.mark.parametrize(
    ("again", "words"),
    [
        (lambda v: v.tanh().cos().sin(), "aten.tanh.default encountered during backward but not found in storage"),
        (lambda v: v.sin().cos().sin().sin().exp(), "aten.sin.default invocation index 2 encountered during backward but not found"),
    ],
)
def test_a_second_computation_that_calls_other_operators(again, words):
    runs = []

    def f(v):
        runs.append(1)
        return v.sin().cos().sin().exp() if len(runs) == 1 else again(v)

    contexts = functools.partial(create_selective_checkpoint_contexts, lambda ctx, op, *a, **k: CheckpointPolicy.MUST_RECOMPUTE)
    x = torch.ones(2, requires_grad=True)
    with set_checkpoint_early_stop(False):
        y = checkpoint(f, x, use_reentrant=False, context_fn=contexts).sum()
    with pytest.raises(RuntimeError, match=words):
        y.backward()


def in_place(x, w):
    return torch.sigmoid(torch.matmul(torch.matmul(x, w).sin_(), w))


def changing():
    calls = []

    def f(x, w):
        calls.append(1)
        return torch.matmul(x, w) if len(calls) == 1 else torch.sin(x) @ w

    return f


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: recomputed([aten.mm.default], in_place), RuntimeError, "Tensor cached during selective activation checkpoint has been mutated"),
        (lambda: recomputed([aten.sin.default], changing()), RuntimeError, "aten.sin.default encountered during backward but not found in storage"),
        (lambda: recomputed([aten.mm]), ValueError, "Expected op in `op_list` to be an OpOverload but got: aten.mm.* change it to `torch.ops.aten.mm.default`"),
        (lambda: recomputed(3), TypeError, "policy_fn_or_list must be either a function or a list of ops"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_mutation_can_be_allowed():
    assert recomputed([aten.mm.default], in_place, allow_cache_entry_mutation=True)[0][0] == 4


def test_context_fn_needs_the_form_that_does_not_reenter():
    with pytest.raises(ValueError, match="only supported when use_reentrant=False"):
        checkpoint(function, torch.ones(2, 2), torch.ones(2, 2), use_reentrant=True, context_fn=lambda: (nullcontext(), nullcontext()))


# --- names ------------------------------------------------------------------------------------------------------------------------


def test_record_function():
    with record_function("name", "args") as block:
        assert block.name == "name" and block.args == "args"

    @record_function("name")
    def f(x):
        return x + 1

    assert f(1) == 2
    with pytest.raises(TypeError, match="record_function: the argument 'name' must be a str, not int"):
        record_function(3)
    with pytest.raises(TypeError, match="record_function: the argument 'args' must be a str, not int"):
        record_function("x", 3)


# --- checkpoints and autocast -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("forward, backward", [("on", "off"), ("off", "on"), ("inside", "off"), ("on", "on")])
def test_a_checkpoint_computes_again_in_the_autocast_it_saw(reentrant, forward, backward):
    """The second computation has the types of the first, wherever backward runs."""
    torch.manual_seed(0)
    layer, x = torch.nn.Linear(4, 4), torch.randn(2, 4, requires_grad=True)
    seen = []

    def block(value):
        with torch.autocast("cpu", torch.bfloat16) if forward == "inside" else nullcontext():
            y = layer(value)
        seen.append((y.dtype, torch.is_autocast_enabled("cpu")))
        return y.relu()

    with torch.autocast("cpu", torch.bfloat16) if forward == "on" else nullcontext():
        y = checkpoint(block, x, use_reentrant=reentrant)
    with torch.autocast("cpu", torch.bfloat16) if backward == "on" else nullcontext():
        y.float().sum().backward()
    assert seen == [(torch.float32 if forward == "off" else torch.bfloat16, forward == "on")] * 2
    have = x.grad
    x.grad = None
    with torch.autocast("cpu", torch.bfloat16) if forward == "on" else nullcontext():
        y = block(x)
    with torch.autocast("cpu", torch.bfloat16) if backward == "on" else nullcontext():
        y.float().sum().backward()
    assert torch.allclose(have, x.grad, rtol=1e-2)


def test_each_pass_over_a_kept_graph_computes_again():
    runs = []

    def f(x):
        runs.append(1)
        return x.sin().cos()

    x = torch.randn(3, requires_grad=True)
    out = checkpoint(f, x, use_reentrant=False).sum()
    first = torch.autograd.grad(out, x, retain_graph=True)
    second = torch.autograd.grad(out, x, retain_graph=True)
    assert len(runs) == 3 and torch.equal(first[0], second[0])


def test_kept_results_are_used_once():
    save_sin = create_selective_checkpoint_contexts
    x = torch.randn(3, requires_grad=True)
    out = checkpoint(lambda x: x.sin().cos().exp(), x, use_reentrant=False, context_fn=lambda: save_sin([torch.ops.aten.sin.default])).sum()
    out.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
        out.backward(retain_graph=True)


def test_a_saved_tensor_is_taken_once_in_a_pass():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.exp()

        @staticmethod
        def backward(ctx, grad):
            ctx.saved_tensors
            return grad * ctx.saved_tensors[0]

    x = torch.randn(3, requires_grad=True)
    out = checkpoint(lambda x: Twice.apply(x.sin()), x, use_reentrant=False).sum()
    with pytest.raises(RuntimeError, match="already unpacked once"):
        out.backward(retain_graph=True)


@pytest.mark.parametrize("early_stop", [True, False])
def test_a_checkpointed_function_may_go_backward_itself(early_stop):
    def f(x):
        y = x.sin().exp().sin()
        torch.autograd.grad(y, x)
        return x.sin() * 2

    def slope(x):
        return torch.autograd.grad(x.sin().exp(), x, create_graph=True)[0]

    x = torch.tensor(0.3, requires_grad=True)
    with set_checkpoint_early_stop(early_stop):
        (g,) = torch.autograd.grad(checkpoint(f, x, use_reentrant=False), x)
        (h,) = torch.autograd.grad(checkpoint(slope, x, use_reentrant=False), x)
    assert torch.allclose(g, 2 * x.cos()) and torch.allclose(h, x.sin().exp() * (x.cos() ** 2 - x.sin()))


@pytest.mark.parametrize("create_graph", [True, False])
def test_inputs_that_are_detached_in_place_later(create_graph):
    a = torch.tensor(1.0, requires_grad=True).clone()
    b, c = a.sin(), a.exp()
    a.detach_()
    with pytest.raises(RuntimeError, match="Trying to use a saved tensor that has been detached in-place"):
        b.backward(create_graph=create_graph)
    c.backward()  # it saved its result


def test_a_recomputation_that_saves_more():
    calls = []

    def run(x):
        calls.append(1)
        return x.sin().exp() if len(calls) == 1 else x.sin().exp().sin()

    with set_checkpoint_early_stop(False), pytest.raises(RuntimeError, match="trying to save more tensors during recomputation than during the original forward pass: 3, and 2"):
        checkpoint(run, torch.ones(1, requires_grad=True), use_reentrant=False).backward()
    calls.clear()
    checkpoint(run, torch.ones(1, requires_grad=True), use_reentrant=False).backward()


def test_hooks_that_a_pass_changes_are_the_pass_s():
    """PyTorch 2.13: a backward pass ends with the hooks of saved tensors that it began with."""
    hooks = torch.autograd.graph.saved_tensors_hooks
    first = hooks(lambda x: x, lambda x: (first.__exit__(), x)[1])
    first.__enter__()
    y = torch.randn(3, requires_grad=True).sin().sum()
    y.backward()
    first.__exit__()
    with pytest.raises(RuntimeError):
        first.__exit__()
    left = hooks(lambda x: x * 0, lambda x: x)
    z = torch.randn(3, requires_grad=True)
    w = z.sin()
    w.register_hook(lambda g: left.__enter__())
    w.sum().backward()
    u = torch.ones(2, requires_grad=True)
    u.pow(2).sum().backward()
    assert u.grad.tolist() == [2.0, 2.0], "hooks pushed in a pass outlived it"


def test_hooks_of_a_saved_tensor_are_functions():
    y = torch.ones(2, requires_grad=True).sin()
    with pytest.raises(TypeError, match="incompatible function arguments"):
        y.grad_fn._raw_saved_self.register_hooks(1, 1)


def test_requires_grad_of_inference_tensors():
    with torch.inference_mode():
        x = torch.ones(2).requires_grad_()
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor outside InferenceMode is not allowed"):
        x.requires_grad_()
