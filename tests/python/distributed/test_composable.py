"""Functions that change modules in place: their contract, checkpoints, and averages of gradients beside those of one process."""

import copy
import re

import pytest

import cresset as torch
import cresset.distributed as dist
from cresset import nn
from cresset.distributed._composable import _get_registry, checkpoint, contract, replicate
from cresset.nn import functional as F

from ranks import RankError


def test_a_function_keeps_state_and_is_applied_once():
    @contract()
    def mark(module, word):
        mark.state(module).word = word
        return module

    @contract()
    def together(modules):
        return modules

    model = nn.Sequential(*[nn.Linear(2, 2) for _ in range(4)])
    assert mark(model[0], "first") is model[0] and mark.state(model[0]).word == "first" and mark.state(model[1]) is None
    together([model[0], model[1]])
    together([model[2]])
    assert together.state(model[0]) is together.state(model[1]) is not together.state(model[2])
    assert list(_get_registry(model[0])) == ["mark", "together"] and _get_registry(model[3]) is None
    with pytest.raises(AssertionError, match="mark has already been applied to the following module:"):
        mark(model[0], "again")


def test_names_stay():
    class Wrapper(nn.Module):
        def __init__(self, module):
            super().__init__()
            self.inside = module

    @contract()
    def wrap(module):
        return Wrapper(module)

    words = "Checking parameters: Composable distributed API implementations cannot modify FQNs. wrap: ['bias', 'weight'] are gone, ['inside.bias', 'inside.weight'] are new."
    with pytest.raises(RuntimeError, match=re.escape(words)):
        wrap(nn.Linear(2, 2))


class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.calls, self.fails = nn.Linear(3, 3), 0, 0

    def forward(self, x, scale=1.0):
        self.calls += 1
        if self.calls == self.fails:
            raise ValueError("no")
        return F.dropout(self.linear(x).tanh() * scale, 0.5)


def test_a_checkpoint_in_place_computes_again_with_the_same_numbers():
    torch.manual_seed(0)
    plain = Noisy()
    again = copy.deepcopy(plain)
    assert checkpoint(again) is again and sorted(again.state_dict()) == sorted(plain.state_dict())
    x = torch.randn(4, 3)
    for model in (plain, again):
        torch.manual_seed(1)
        model(x, scale=2.0).sum().backward()
    assert (plain.calls, again.calls) == (1, 2)
    for p, q in zip(plain.parameters(), again.parameters()):
        assert torch.equal(p.grad, q.grad)
    for fails in (1, 2):
        model = Noisy()
        model.fails = fails
        checkpoint(model)
        with pytest.raises(ValueError, match="no"):
            model(x).sum().backward()
        assert checkpoint.state(model)._ac_generator is None and checkpoint.state(model).enabled
    with pytest.raises(NotImplementedError, match="use_reentrant=True is not supported in composable checkpoint"):
        checkpoint(Noisy(), use_reentrant=True)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: depth"):
        checkpoint(Noisy(), depth=3)


def averaged(rank, whole):
    """One module, or its parts one by one, trained in ranks as in one process."""
    torch.manual_seed(0)
    size = dist.get_world_size()
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    x, y = torch.randn(6, 3), torch.randn(6, 2)
    parts = copy.deepcopy(model)
    if rank:
        for p in parts.parameters():  # rank 0's are everybody's
            p.data.zero_()
    if whole:
        assert replicate(parts, bucket_cap_mb=1, gradient_as_bucket_view=True) is parts
    else:
        replicate(parts[0])
        replicate(parts[2])
    for _ in range(3):
        for each, rows in ((model, slice(None)), (parts, slice(rank * 6 // size, (rank + 1) * 6 // size))):
            F.mse_loss(each(x[rows]), y[rows]).backward()
            with torch.no_grad():
                for p in each.parameters():
                    p -= 0.1 * p.grad
                    p.grad = None
    assert list(parts.state_dict()) == list(model.state_dict())
    for p, q in zip(parts.parameters(), model.parameters()):
        torch.testing.assert_close(p, q)
    return True


@pytest.mark.parametrize("whole", [True, False])
def test_gradients_are_averaged_in_place(pool, whole):
    assert all(pool.run(averaged, whole))


def left_out(rank):
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    replicate(model, ignored_modules=[model[0]])
    model(torch.full((1, 2), float(rank + 1))).sum().backward()
    same = []
    for linear in model:
        gathered = [torch.empty(2, 2) for _ in range(2)]
        dist.all_gather(gathered, linear.weight.grad)
        same.append(torch.equal(*gathered))
    return same, hasattr(model, "_ddp_params_and_buffers_to_ignore")


def test_ignored_modules_are_left_to_each_rank(pair):
    assert pair.run(left_out) == [([False, True], False)] * 2


def refused(rank, case):
    model = nn.Linear(2, 2)
    if case == "copy":
        replicate(model)
        copy.deepcopy(model)
    if case == "sharded":
        replicate(dist.fsdp.fully_shard(model, mesh=dist.init_device_mesh("cpu", (2,))))
    replicate(model, **({"device_id": [0]} if case == "device" else {"mixed_precision": 1}))


@pytest.mark.parametrize("case, words", [
    ("device", "Expected device_id to be int or torch.device"), ("precision", "replicate: mixed_precision is not part of Cresset"),
    ("sharded", "Cannot apply `replicate()` on a Module already managed by `fully_shard`"), ("copy", "replicate: a module that is replicated cannot be copied"),
])  # fmt: skip
def test_refusals(pair, case, words):
    with pytest.raises(RankError, match=re.escape(words)):
        pair.run(refused, case)
