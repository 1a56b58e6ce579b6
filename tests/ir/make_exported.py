"""Programs that torch.export writes, with the inputs and outputs of a call, for test_export.py. Run by a Python that has torch."""

import pickle
import sys
import warnings
from collections import namedtuple

import torch
from torch import nn
from torch.export import Dim, export, save

warnings.simplefilter("ignore")
Pair = namedtuple("Pair", ["first", "second"])


class Dynamic(nn.Module):
    """Sizes that vary and are used, a buffer that is written, a constant, nested results with None and a number."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 3)
        self.register_buffer("calls", torch.zeros(1))
        self.scale = torch.ones(3) * 2

    def forward(self, x, d):
        y = self.lin(x) + d["k"]
        self.calls.add_(1)
        n = x.shape[0]
        z = torch.cat([y, y]).reshape(n * 2, -1)
        return {"z": z * self.scale, "t": (y, None), "n": n}, y.view(x.size(0), 3)[: n - 1]


class Several(nn.Module):
    """Keyword inputs, a constant input, operators with several results and lists."""

    def forward(self, a, *, b=None, flag=True):
        parts = [a.split(2), torch.topk(a, 2)[0], a.to(torch.float64) if flag else a]
        return [*parts, torch.arange(a.shape[1], device=a.device), a.amax((0, 1)) + b.sum(), a * torch.inf]


class Condition(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))


class Loop(nn.Module):
    """A loop and a condition in a loop, which use a parameter and what is around them."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.tensor([1.0, 2.0]))

    def forward(self, i, x):
        y = x + 1

        def body(i, x):
            _, x = torch.while_loop(lambda j, x: j < i, lambda j, x: (j + 1, x * self.w + i), (torch.zeros_like(i), x))
            return i + 1, torch.cond(x.sum() > 10, lambda x: x * 0.5, lambda x: x * 2, (x,)) + y

        return torch.while_loop(lambda i, x: (i < 5) & (x.sum() < 1000), body, (i, x))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)

    def forward(self, x):
        return self.layer(self.embed(x))


class Training(nn.Module):
    """Statistics that are written, a write into a view, shared and half-precision weights."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.small = nn.Parameter(torch.ones(3, dtype=torch.bfloat16))
        self.same = self.small

    def forward(self, x):
        x = x.clone()
        x[:, 0] = 1
        return self.norm(x), (self.small + 1).float(), x.dtype == torch.float32


class Linked(nn.Module):
    """Two inputs of one varying size, one of twice the size."""

    def forward(self, a, b):
        return a + b[::2]


class Views(nn.Module):
    """Weights that are no whole storages."""

    def __init__(self):
        super().__init__()
        self.register_buffer("turned", torch.arange(6.0).reshape(2, 3).t())
        self.register_buffer("part", torch.arange(10.0)[2:8:2])

    def forward(self, x):
        return x @ self.turned, self.part


def programs():
    batch = Dim("batch", min=3, max=64)
    dynamic = ({0: batch}, {"k": None})
    first = ((torch.rand(5, 4), {"k": torch.rand(3)}), {})
    other = ((torch.rand(7, 4), {"k": torch.rand(3)}), {})
    yield "dynamic", export(Dynamic(), *first, dynamic_shapes=dynamic), [other, first]
    yield "dynamic_core", export(Dynamic(), *first, dynamic_shapes=dynamic).run_decompositions(), [other]
    several = ((torch.rand(4, 4),), {"b": torch.rand(2), "flag": True})
    yield "several", export(Several(), *several), [several]
    x = torch.rand(4, 4)
    yield "condition", export(Condition(), (x,)), [((x,), {}), ((-x,), {})]
    x = torch.rand(2)
    loop = export(Loop(), (torch.tensor(0), x))
    yield "loop", loop, [((torch.tensor(0), x), {}), ((torch.tensor(3), -x), {}), ((torch.tensor(7), x), {})]
    words = torch.randint(0, 10, (2, 5))
    transformer = export(Transformer().eval(), (words,), dynamic_shapes=({0: Dim("b"), 1: Dim("s")},))
    yield "transformer", transformer, [((torch.randint(0, 10, (3, 7)),), {})]
    yield "transformer_core", transformer.run_decompositions(), [((torch.randint(0, 10, (3, 7)),), {})]
    x = torch.rand(2, 5, 4)
    yield "lstm", export(nn.LSTM(4, 6, 2, batch_first=True).eval(), (x,)), [((x,), {})]
    x = torch.rand(5, 3)
    yield "training", export(Training().train(), (x,)), [((x,), {})]
    n = Dim("n", min=2)
    linked = export(Linked(), (torch.rand(3), torch.rand(6)), dynamic_shapes=({0: n}, {0: 2 * n}))
    yield "linked", linked, [((torch.rand(4), torch.rand(8)), {})]
    yield "views", export(Views(), (torch.rand(4, 3),)), [((torch.rand(4, 3),), {})]
    resnet = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 5))
    x = torch.rand(2, 3, 8, 8)
    yield "cnn_core", export(resnet.eval(), (x,), dynamic_shapes=({0: Dim("b")},)).run_decompositions(), [((torch.rand(3, 3, 8, 8),), {})]


def plain(value):
    """Arrays in place of tensors, with a mark."""
    if isinstance(value, torch.Tensor):
        return ("tensor", value.detach().numpy())
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return type(value)(plain(v) for v in value) if isinstance(value, (list, tuple)) else value


def main(folder):
    torch.manual_seed(0)
    calls = {}
    for name, program, inputs in programs():
        save(program, f"{folder}/{name}.pt2")
        module = program.module()
        calls[name] = [(plain(args), plain(kwargs), plain(module(*args, **kwargs))) for args, kwargs in inputs]
    with open(f"{folder}/calls.pickle", "wb") as f:
        pickle.dump(calls, f)


if __name__ == "__main__":
    main(sys.argv[1])
