"""Models that PyTorch saves, and the check of files that come back. Runs under an interpreter with torch, without cresset.

    torch_models.py names | save FOLDER | check FOLDER
"""

import sys
from pathlib import Path

NAMES = ["linear", "convbn", "lstm", "gru", "attention", "attention_traced", "control", "resnet", "resnet_traced", "bert", "bert_traced"]
NAMES += ["heads", "encoder", "encoder_gelu", "encoder_traced", "decoder", "autocast"]
if sys.argv[1] == "names":
    print(*NAMES)
    sys.exit()

from typing import Dict, List, Optional  # noqa: E402

import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402


class First(nn.Module):
    """Only the first result of a recurrent layer."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        y, _ = self.layer(x)
        return y


class Control(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.arange(6.0).view(2, 3))
        self.turned = self.table.t()
        self.parts = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Identity()})

    def forward(self, x):
        outs: List[torch.Tensor] = []
        for _, m in self.parts.items():
            outs.append(m(x))
        r = torch.stack(outs)
        i = 0
        while True:
            i += 1
            if i > 5:
                break
            if i % 2 == 0:
                continue
            r = r * 1.1
        k = [j * 2 for j in range(i)]
        d: Dict[str, torch.Tensor] = {"a": r, "b": self.table}
        f = torch.jit.fork(scaled, x, 3)
        return r, d["b"].sum(), self.turned @ self.table, scaled(x, k[1]), torch.jit.wait(f), r[:, 0], r[..., 1:], (r > 0).float()


def scaled(x, k: int):
    return x.clamp(min=0) * k


class Residual(nn.Module):
    def __init__(self, i, o, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(i, o, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(o)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(o, o, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(o)
        self.down = nn.Sequential(nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o)) if stride != 1 or i != o else None

    def forward(self, x):
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        if self.down is not None:
            x = self.down(x)
        y += x
        return self.relu(y)


class ResNet(nn.Module):
    """ResNet-18 with a quarter of its channels."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 7, 2, 3, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
        blocks = [Residual(i, o, s) for i, o, s in ((16, 16, 1), (16, 16, 1), (16, 32, 2), (32, 32, 1), (32, 64, 2), (64, 64, 1), (64, 128, 2), (128, 128, 1))]
        self.layers = nn.Sequential(*blocks)
        self.avg = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(128, 10)

    def forward(self, x):
        return self.fc(torch.flatten(self.avg(self.layers(self.stem(x))), 1))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(16, 16) for _ in range(4))
        self.n1, self.n2 = nn.LayerNorm(16), nn.LayerNorm(16)
        self.f, self.g = nn.Linear(16, 64), nn.Linear(64, 16)
        self.heads = 4

    def split(self, x):
        return x.view(x.size(0), x.size(1), self.heads, -1).permute(0, 2, 1, 3)

    def forward(self, h, mask: Optional[torch.Tensor] = None):
        q, k, v = self.split(self.q(h)), self.split(self.k(h)), self.split(self.v(h))
        a = q @ k.transpose(-1, -2) / (q.size(-1) ** 0.5)
        if mask is not None:
            a = a + mask
        c = (a.softmax(-1) @ v).permute(0, 2, 1, 3).contiguous().view(h.size())
        h = self.n1(h + self.o(c))
        return self.n2(h + self.g(nn.functional.gelu(self.f(h))))


class Bert(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(30, 16), nn.Embedding(10, 16)
        self.norm, self.drop = nn.LayerNorm(16), nn.Dropout(0.1)
        self.layers = nn.ModuleList([Layer() for _ in range(3)])
        self.pool = nn.Linear(16, 16)

    def forward(self, ids, mask: Optional[torch.Tensor] = None):
        h = self.drop(self.norm(self.words(ids) + self.places(torch.arange(ids.size(1), device=ids.device)).unsqueeze(0)))
        for layer in self.layers:
            h = layer(h, mask)
        return h, torch.tanh(self.pool(h[:, 0]))


class Masked(nn.Module):
    """A layer of torch's own with masks, which are made from the input."""

    def __init__(self, **options):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, **options)

    def forward(self, x):
        length = x.size(1)
        future = torch.ones(length, length, dtype=torch.bool).triu(1)
        padding = torch.arange(length) >= torch.tensor([[length], [length - 2]])
        return self.layer(x), self.layer(x, future), self.layer(x, None, padding), self.layer(x, future, padding)


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)

    def forward(self, x):
        y, weights = self.attention(x, x, x)
        z, every = self.attention(x, x, x, average_attn_weights=False)
        assert weights is not None and every is not None
        return y, weights, z, every, self.attention(x, x[:, :3], x[:, :3], need_weights=False)[0]


class Decoded(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerDecoderLayer(16, 4, 32, batch_first=True)

    def forward(self, x):
        return self.layer(x, x[:, 1:])


class Precise(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.one(x)
        return y.float(), self.other(x)


def models():
    script, trace = torch.jit.script, torch.jit.trace
    image, words, sequence = torch.randn(1, 3, 64, 64), torch.randint(0, 30, (2, 7)), torch.randn(2, 5, 16)
    yield "linear", script(nn.Linear(4, 3)), torch.randn(2, 4)
    yield "convbn", script(nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))), torch.randn(1, 3, 16, 16)
    yield "lstm", script(First(nn.LSTM(4, 5, 2))), torch.randn(3, 2, 4)
    yield "gru", script(First(nn.GRU(4, 5, 1, batch_first=True, bidirectional=True))), torch.randn(2, 3, 4)
    yield "attention", script(Layer()), sequence
    yield "attention_traced", trace(nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).eval(), sequence, check_trace=False), sequence
    yield "heads", script(Heads()), sequence
    yield "encoder", script(Masked()), sequence
    yield "encoder_gelu", script(Masked(activation="gelu", norm_first=True)), sequence
    with torch.no_grad():
        yield "encoder_traced", trace(nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).eval(), sequence, check_trace=False), sequence
    yield "decoder", script(Decoded()), sequence
    yield "autocast", script(Precise()), torch.randn(2, 4)
    yield "control", script(Control()), torch.randn(2, 3)
    yield "resnet", script(ResNet()), image
    yield "resnet_traced", trace(ResNet().eval(), image), image
    yield "bert", script(Bert()), words
    yield "bert_traced", trace(Bert().eval(), words), words


def flat(value):
    if isinstance(value, dict):
        value = list(value.values())
    return [t for v in value for t in flat(v)] if isinstance(value, (list, tuple)) else [value]


def save(folder):
    torch.manual_seed(0)
    for name, model, x in models():
        model.eval()
        with torch.no_grad():
            results = flat(model(x))
        torch.jit.save(model, str(folder / f"{name}.pt"))
        np.savez(folder / f"{name}.npz", in0=x.numpy(), **{f"out{i}": y.numpy() for i, y in enumerate(results)})


def check(folder):
    """Prints the largest difference of each model."""
    for name in NAMES:
        recorded = np.load(folder / f"{name}.npz")
        model = torch.jit.load(str(folder / f"{name}.back.pt"))
        with torch.no_grad():
            results = flat(model(torch.from_numpy(recorded["in0"])))
        print(name, max(float(np.abs(y.numpy() - recorded[f"out{i}"]).max()) for i, y in enumerate(results)))


{"save": save, "check": check}[sys.argv[1]](Path(sys.argv[2]))
