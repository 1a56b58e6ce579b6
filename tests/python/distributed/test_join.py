"""Ranks with different numbers of inputs: Join, and DistributedDataParallel.join beside one process that sees the same batches."""


import pytest

import cresset as torch
import cresset.distributed as dist
from cresset import nn
from cresset.distributed.algorithms.ddp_comm_hooks import default_hooks
from cresset.distributed.algorithms.join import Join, Joinable, JoinHook
from cresset.nn.parallel import DistributedDataParallel

from ranks import RankError


class Counter(Joinable):
    """Sums ones over the ranks that have inputs."""

    def __init__(self):
        super().__init__()
        self.last = None

    def __call__(self):
        Join.notify_join_context(self)
        one = torch.ones(1)
        dist.all_reduce(one)
        return int(one)

    def join_hook(self, **kwargs):
        counter, times = self, kwargs.get("times", 1)

        class Hook(JoinHook):
            def main_hook(self):
                for _ in range(times):
                    dist.all_reduce(torch.zeros(1))

            def post_hook(self, is_last_joiner):
                counter.last = is_last_joiner

        return Hook()

    @property
    def join_device(self):
        return torch.device("cpu")

    @property
    def join_process_group(self):
        return dist.group.WORLD


def counts(rank, inputs, options):
    counter = Counter()
    with Join([counter], **options):
        seen = [counter() for _ in range(inputs[rank])]
    return seen, counter.last


def test_counts(pool):
    size = len(pool.pipes)
    found = pool.run(counts, list(range(1, size + 1)), {})
    assert found == [([size - n for n in range(r + 1)], r == size - 1) for r in range(size)]
    assert pool.run(counts, [2] * size, {}) == [([size, size], True)] * size
    assert pool.run(counts, [2] * size, {"enable": False}) == [([size, size], None)] * size


def test_early_termination(pool):
    with pytest.raises(RankError) as caught:
        pool.run(counts, list(range(1, len(pool.pipes) + 1)), {"throw_on_early_termination": True})
    assert caught.value.errors[0] == "RuntimeError: Rank 0 exhausted all inputs."
    assert caught.value.errors[1] == "RuntimeError: Detected at least one rank that exhausted inputs. Throwing across all ranks."


def test_errors():
    with pytest.raises(ValueError, match="The join context manager requires at least one joinable"):
        Join([])

    class Forgets(Counter):
        def __init__(self):
            pass

    with pytest.raises(AssertionError, match="constructor calls the ``Joinable`` constructor"):
        Join.notify_join_context(Forgets())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second, self.unused = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2), nn.Linear(2, 2)

    def forward(self, x, everything):
        x = self.second(self.norm(self.first(x)))
        return self.unused(x) if everything else x


def batch(rank, n):
    generator = torch.Generator().manual_seed(10 * rank + n)
    return torch.randn(4, 4, generator=generator)


def uneven(rank, by_initial, options, hook):
    """Beside sums of gradients of one model for each batch, in this process; batch norms are out of it (eval)."""
    size = dist.get_world_size()
    torch.manual_seed(0)
    model = DistributedDataParallel(Net().eval(), **options)
    torch.manual_seed(0)
    alone = Net().eval()
    if hook:
        model.register_comm_hook(None, default_hooks.allreduce_hook)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (model, alone)]
    everything = not options.get("find_unused_parameters")
    with model.join(divide_by_initial_world_size=by_initial):
        for n in range(rank + 1):
            optimizers[0].zero_grad()
            model(batch(rank, n), everything).square().mean().backward()
            optimizers[0].step()
    for n in range(size):
        optimizers[1].zero_grad()
        here = [r for r in range(size) if n <= r]
        for r in here:
            (alone(batch(r, n), everything).square().mean() / (size if by_initial else len(here))).backward()
        optimizers[1].step()
    for p, q in zip(model.module.parameters(), alone.parameters()):
        torch.testing.assert_close(p, q)
    return True


@pytest.mark.parametrize("by_initial", [True, False])
@pytest.mark.parametrize("options, hook", [({}, False), ({}, True), ({"find_unused_parameters": True}, False), ({"gradient_as_bucket_view": True}, False),
                                           ({"static_graph": True}, False), ({"bucket_cap_mb": 1e-5}, False)])  # fmt: skip
def test_distributed_data_parallel(pool, by_initial, options, hook):
    by_initial = by_initial or hook  # a hook divides by itself
    assert all(pool.run(uneven, by_initial, options, hook))


def buffers_and_no_sync(rank):
    torch.manual_seed(rank)
    model = DistributedDataParallel(Net())
    with model.join():
        for n in range(2 * rank + 2):
            if n % 2:
                model(batch(rank, n), True).sum().backward()
            else:
                with model.no_sync():
                    model(batch(rank, n), True).sum().backward()
            with torch.no_grad():
                model(batch(rank, n), True)
    everyone = [None] * dist.get_world_size()
    dist.all_gather_object(everyone, [t.tolist() for t in model.state_dict().values()])
    return all(values == everyone[0] for values in everyone)


def test_buffers_accumulation_and_evaluation(pool):
    assert all(pool.run(buffers_and_no_sync))


def early(rank):
    model = DistributedDataParallel(nn.Linear(2, 2))
    with model.join(throw_on_early_termination=True):
        for _ in range(rank + 1):
            model(torch.ones(1, 2)).sum().backward()


def test_distributed_data_parallel_stops_early(pool):
    with pytest.raises(RankError) as caught:
        pool.run(early)
    assert caught.value.errors[0] == "RuntimeError: Rank 0 exhausted all inputs." and "Throwing across all ranks" in caught.value.errors[1]
