from answers import show
import itertools

import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info
from torch.utils.data.datapipes.iter import IterableWrapper as Pipe
from torchdata.nodes import Batcher, IterableWrapper, Loader, MultiNodeWeightedSampler, ParallelMapper, Prefetcher, SamplerWrapper, Unbatcher
from torchdata.stateful_dataloader import StatefulDataLoader
from torchdata.stateful_dataloader.sampler import RandomSampler, StatefulDistributedSampler


class Squares(Dataset):
    def __len__(self):
        return 23

    def __getitem__(self, i):
        return {"x": torch.tensor([i, i * i], dtype=torch.float32), "random": torch.rand(()) if get_worker_info() else torch.tensor(0.0)}


class Stream(IterableDataset):
    def __init__(self, n):
        self.n, self.at = n, 0

    def __iter__(self):
        info = get_worker_info()
        step, first = (info.num_workers, info.id) if info else (1, 0)
        while self.at < self.n:
            i, self.at = self.at, self.at + 1
            if i % step == first:
                yield torch.tensor(i)
        self.at = 0

    def state_dict(self):
        return {"at": self.at}

    def load_state_dict(self, state):
        self.at = state["at"]


class Fails(Squares):
    def __getitem__(self, i):
        if i == 7:
            raise ValueError("seven")
        return i


def loader(stream, workers):
    if stream:
        return StatefulDataLoader(Stream(21), batch_size=4, num_workers=workers)
    return StatefulDataLoader(Squares(), batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(3), num_workers=workers)


for workers, stream in itertools.product((0, 2), (False, True)):
    first = loader(stream, workers)
    batches = iter(first)
    show("batches", list(itertools.islice(batches, 3)))
    state = first.state_dict()
    show("the others", list(batches))
    again = loader(stream, workers)
    again.load_state_dict(state)
    show("resumed", list(again))
    show("second pass", list(again))
show("persistent", [list(each) for each in [StatefulDataLoader(Squares(), batch_size=5, num_workers=2, persistent_workers=True)] * 2])
try:
    list(StatefulDataLoader(Fails(), num_workers=1))
except ValueError as error:
    show("error", str(error).splitlines()[0])
show("pipe", [sorted(int(v) for b in StatefulDataLoader(Pipe(range(12)).shuffle().sharding_filter(), batch_size=3, num_workers=w) for v in b) for w in (0, 2)])
sampler = StatefulDistributedSampler(list(range(11)), num_replicas=2, rank=1, seed=3)
indices = iter(sampler)
show("sampler", [next(indices), next(indices), sampler.state_dict()])


def nodes():
    return Loader(Prefetcher(Batcher(ParallelMapper(IterableWrapper(range(13)), lambda v: v * 2.5, num_workers=2, method="thread"), 3, drop_last=False), 2))


source = nodes()
batches = iter(source)
show("nodes", [next(batches), next(batches)])
more = nodes()
more.load_state_dict(source.state_dict())
show("resumed nodes", list(more))
show("mixed", list(Loader(MultiNodeWeightedSampler({"a": IterableWrapper(range(5)), "b": IterableWrapper(range(10, 20))}, {"a": 0.3, "b": 0.7}, seed=2))))
numbers = SamplerWrapper(RandomSampler(list(range(9)), generator=torch.Generator().manual_seed(1)))
show("sampled", list(Loader(Unbatcher(Batcher(numbers, 2, drop_last=False)))))
