"""Optimizers inside of backward, and optimizers whose state has names, beside plain ones."""

import copy

import pytest

import cresset as torch
from cresset import nn
from cresset.distributed.optim import _apply_optimizer_in_backward, _get_in_backward_optimizers, _NamedOptimizer


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def test_steps_inside_of_backward_are_those_after_it():
    plain, inside = model(), model()
    _apply_optimizer_in_backward(torch.optim.SGD, inside.parameters(), {"lr": 0.1, "momentum": 0.9})
    _apply_optimizer_in_backward(torch.optim.SGD, [inside[0].weight], {"lr": 0.01})
    optimizers = [torch.optim.SGD(plain.parameters(), lr=0.1, momentum=0.9), torch.optim.SGD([plain[0].weight], lr=0.01)]
    for step in range(3):
        x = torch.full((2, 3), float(step + 1))
        plain(x).square().sum().backward()
        inside(x).square().sum().backward()
        for optimizer in optimizers:
            optimizer.step()
        plain.zero_grad()
        for p, q in zip(plain.parameters(), inside.parameters()):
            assert q.grad is None
            torch.testing.assert_close(q, p)
    assert len(_get_in_backward_optimizers(inside)) == 5 and _get_in_backward_optimizers(plain) == []


def test_several_optimizers_of_a_parameter_step_one_after_the_other():
    p, q = nn.Parameter(torch.ones(2)), nn.Parameter(torch.ones(2))
    _apply_optimizer_in_backward(torch.optim.SGD, [p, p], {"lr": 0.5})  # as torch.optim.SGD([p, p]) would
    _apply_optimizer_in_backward(torch.optim.SGD, [p], {"lr": 0.25})
    _apply_optimizer_in_backward(torch.optim.SGD, [q], {"lr": 0.5}, register_hook=False)
    (p * 2 + q).sum().backward()
    assert p.tolist() == [-1.5, -1.5] and q.tolist() == [1, 1] and q.grad.tolist() == [1, 1] and p._optimizer_kwargs == [{"lr": 0.5}, {"lr": 0.5}, {"lr": 0.25}]


def trained(net, optimizer, steps=2):
    for _ in range(steps):
        optimizer.zero_grad()
        net(torch.ones(2, 3)).square().sum().backward()
        optimizer.step()
    return [p.detach().clone() for p in net.parameters()]


def test_state_has_names():
    one, other = model(), model()
    named = _NamedOptimizer(one.named_parameters(), torch.optim.Adam, [{"params": one[0].parameters()}, {"params": one[2].weight, "lr": 0.5}], lr=0.1)
    plain = torch.optim.Adam([{"params": other[0].parameters()}, {"params": other[2].weight, "lr": 0.5}], lr=0.1)
    for p, q in zip(trained(one, named), trained(other, plain)):
        torch.testing.assert_close(p, q)
    state = named.state_dict()
    assert sorted(state["state"]) == ["0.bias", "0.weight", "2.weight"]
    assert [g["params"] for g in state["param_groups"]] == [["0.bias", "0.weight"], ["2.weight"]] and state["param_groups"][1]["lr"] == 0.5
    assert torch.equal(state["state"]["0.bias"]["exp_avg"], plain.state_dict()["state"][1]["exp_avg"])
    named.add_param_group({"params": one[2].bias, "lr": 0.25})
    assert named.param_groups[2]["lr"] == 0.25 and len(named.param_groups) == 3
    with pytest.raises(ValueError, match="some parameters are not in the module"):
        named.add_param_group({"params": [torch.ones(1, requires_grad=True)]})
    with pytest.raises(KeyError, match="some parameters are not in the module"):
        _NamedOptimizer({"w": one[0].weight}, torch.optim.SGD, [{"params": [one[0].bias]}], lr=1.0)


def test_state_is_loaded_by_names():
    first, second = model(), model()
    source = _NamedOptimizer(first.named_parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
    trained(first, source)
    saved = copy.deepcopy(source.state_dict())
    target = _NamedOptimizer(dict(reversed(list(second.named_parameters()))), torch.optim.SGD, lr=0.1, momentum=0.9)
    with pytest.raises(ValueError, match="Expects the optim to be initialized before load but found not initialized"):
        target.load_state_dict(saved)
    before = [p.detach().clone() for p in second.parameters()]
    target.init_state()
    assert all(torch.equal(p, b) for p, b in zip(second.parameters(), before)) and target.param_groups[0]["lr"] == 0.1
    target.load_state_dict(saved)
    second.load_state_dict(first.state_dict())
    for p, q in zip(trained(first, source), trained(second, target)):
        torch.testing.assert_close(p, q)
    saved["state"]["0.bias"]["momentum_buffer"] = torch.ones(7)
    with pytest.raises(ValueError, match=r"Expects momentum_buffer of parameter 0.bias of the size \[4\]; \[7\] was given"):
        target.load_state_dict(saved)
