"""States by names: the same for a model and the same in DistributedDataParallel, got and set, whole and flat, from rank 0 to all."""

import copy

import pytest

import cresset as torch
import cresset.distributed as dist
from cresset import nn
from cresset.distributed.checkpoint import state_dict as sd
from cresset.distributed.checkpoint.state_dict import StateDictOptions
from cresset.nn.parallel import DistributedDataParallel


def model_of(seed=0, frozen=False):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))
    model[0].weight.requires_grad_(not frozen)
    return model


def trained(model, kind=torch.optim.Adam, steps=2, **options):
    optimizer = kind([{"params": model.parameters(), "lr": 0.1}], **options)
    for n in range(steps):
        optimizer.zero_grad()
        model(torch.full((5, 3), float(n + 1)) + torch.arange(5.0)[:, None]).square().sum().backward()
        optimizer.step()
    return optimizer


def same(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return set(a) == set(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def test_names_and_values():
    model = model_of()
    optimizer = trained(model)
    states = sd.get_state_dict(model, optimizer)
    assert same(states[0], dict(model.state_dict()))
    assert list(states[1]["state"]) == [n for n, _ in model.named_parameters()]
    (group,) = states[1]["param_groups"]
    assert group["params"] == [n for n, _ in model.named_parameters()] and group["lr"] == 0.1
    assert same(states[1]["state"]["0.bias"], optimizer.state[model[0].bias])


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("kind, options", [(torch.optim.Adam, {}), (torch.optim.SGD, {"momentum": 0.9}), (torch.optim.SGD, {})])
def test_get_and_set(kind, options, flat):
    asked = StateDictOptions(flatten_optimizer_state_dict=flat)
    model = model_of()
    optimizer = trained(model, kind, **options)
    states = copy.deepcopy(sd.get_state_dict(model, optimizer, options=asked))
    other = model_of(1)
    again = kind([{"params": other.parameters(), "lr": 0.5}], **options)
    missing = sd.set_state_dict(other, again, model_state_dict=states[0], optim_state_dict=states[1], options=asked)
    assert not missing.missing_keys and not missing.unexpected_keys
    assert same(sd.get_state_dict(other, again, options=asked), states)
    assert all(("state.0.bias" in key) <= flat for key in states[1])


def test_a_fresh_optimizer_gets_a_state_and_changes_nothing():
    model = model_of()
    before = copy.deepcopy(model.state_dict())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    found = sd.get_optimizer_state_dict(model, optimizer)
    assert set(found["state"]["0.weight"]) == {"step", "exp_avg", "exp_avg_sq"} and optimizer.param_groups[0]["lr"] == 0.1
    assert same(dict(model.state_dict()), dict(before)) and model[0].weight.grad is None


def test_options():
    model = model_of(frozen=True)
    assert "0.weight" not in sd.get_model_state_dict(model, options=StateDictOptions(ignore_frozen_params=True))
    asked = StateDictOptions(keep_submodule_prefixes=False)
    assert set(sd.get_model_state_dict(model, submodules={model[2]}, options=asked)) == {"weight", "bias"}
    assert set(sd.get_model_state_dict(model, submodules={model[2]})) == {"2.weight", "2.bias"}
    with pytest.raises(RuntimeError, match="Missing key"):
        sd.set_model_state_dict(model, {})
    assert len(sd.set_model_state_dict(model, {}, options=StateDictOptions(strict=False)).missing_keys) == 8
    with pytest.raises(ValueError, match="full_state_dict must be True when broadcast_from_rank0 is True."):
        sd.get_model_state_dict(model, options=StateDictOptions(broadcast_from_rank0=True))
    with pytest.raises(RuntimeError, match="Missing parameter 0.weight in the optimizer's state_dict."):
        sd.set_optimizer_state_dict(model, torch.optim.SGD(model_parameters(model), lr=0.1), {"state": {}, "param_groups": []})
    with pytest.raises(ValueError, match="optimizers: parameters of the model were required"):
        sd.get_optimizer_state_dict(model, torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1))


def model_parameters(model):
    return list(model.parameters())


def wrapped(rank):
    model = model_of()
    parallel = DistributedDataParallel(copy.deepcopy(model))
    optimizer, one = trained(parallel, steps=1), trained(model, steps=1)
    return same(sd.get_state_dict(parallel, optimizer), sd.get_state_dict(model, one))


def test_distributed_data_parallel_has_the_names_of_its_module(pair):
    assert pair.run(wrapped) == [True, True]


def from_first(rank):
    asked = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    model = model_of(rank)
    optimizer = trained(model, steps=rank + 1)
    states = sd.get_state_dict(model, optimizer) if rank == 0 else ({}, {})
    sd.set_state_dict(model, optimizer, model_state_dict=states[0], optim_state_dict=states[1], options=asked)
    everyone = [None, None]
    dist.all_gather_object(everyone, sd.get_state_dict(model, optimizer))
    lean = sd.get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    return same(*everyone), len(lean)


def test_rank_0_tells_all(pair):
    assert pair.run(from_first) == [(True, 9), (True, 0)]
