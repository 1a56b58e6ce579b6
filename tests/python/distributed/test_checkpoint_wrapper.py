"""Wrappers of activations: the same gradients, and the names of the module inside."""

import copy
from functools import partial

import pytest

import cresset
from cresset import nn
from cresset.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl, CheckpointWrapper, OffloadWrapper, apply_activation_checkpointing, checkpoint_wrapper, offload_wrapper,
)  # fmt: skip
from cresset.distributed.fsdp.wrap import CustomPolicy, ModuleWrapPolicy

WRAPPERS = {
    "reentrant": partial(checkpoint_wrapper, checkpoint_impl=CheckpointImpl.REENTRANT),
    "not reentrant": checkpoint_wrapper,
    "offload": offload_wrapper,
}


class Counted(nn.Sequential):
    calls = 0

    def forward(self, x, *, scale=None):
        Counted.calls += 1
        return super().forward(x) * (1 if scale is None else scale)


@pytest.mark.parametrize("kind", WRAPPERS)
def test_gradients(kind):
    cresset.manual_seed(0)
    inner = Counted(nn.Linear(3, 4), nn.Tanh(), nn.Dropout(0.5), nn.Linear(4, 2))
    plain, wrapped = copy.deepcopy(inner), WRAPPERS[kind](inner)
    results = []
    for model in (plain, wrapped):
        x, scale = cresset.ones(2, 3, requires_grad=True), cresset.full((2,), 3.0, requires_grad=True)
        cresset.manual_seed(1)
        Counted.calls = 0
        model(x, scale=scale).sum().backward()
        results.append([x.grad, scale.grad, *(p.grad for p in model.parameters())])
    assert Counted.calls == (1 if kind == "offload" else 2)
    assert all(cresset.equal(a, b) for a, b in zip(*results, strict=True))
    assert [n for n, _ in wrapped.named_parameters()] == [n for n, _ in plain.named_parameters()] == list(wrapped.state_dict())
    wrapped.load_state_dict(plain.state_dict())
    plain.load_state_dict(wrapped.state_dict())
    assert wrapped[0] is inner[0] and isinstance(wrapped, (CheckpointWrapper, OffloadWrapper))
    with pytest.raises(AttributeError, match="has no attribute 'strange'"):
        wrapped.strange  # noqa: B018


def test_options():
    seen = []

    def instead(module, *args, strength, **kwargs):
        seen.append(strength)
        return module(*args, **kwargs)

    checkpoint_wrapper(nn.Linear(2, 2), checkpoint_fn=instead, strength=3)(cresset.ones(1, 2))
    assert seen == [3]


@pytest.mark.parametrize("policy", [None, ModuleWrapPolicy({nn.Linear}), CustomPolicy(lambda m: isinstance(m, nn.Linear))])
def test_apply(policy):
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.ReLU(), nn.Linear(2, 2)))
    names = list(model.state_dict())
    apply_activation_checkpointing(model, check_fn=lambda m: isinstance(m, nn.Linear), auto_wrap_policy=policy)
    assert isinstance(model[0], CheckpointWrapper) and isinstance(model[1][1], CheckpointWrapper) and not isinstance(model[1][0], CheckpointWrapper)
    assert list(model.state_dict()) == names
    model(cresset.ones(1, 2)).sum().backward()
