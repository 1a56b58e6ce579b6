"""Models that are exported here and in PyTorch: `exported_models(torch)` gives {name: (class, args, kwargs, in training mode)} of either package.

Run by a Python that has torch, this writes torch_graphs.json anew: placeholders, operators and signatures of PyTorch's programs.
"""

import dataclasses
import json
import sys
from pathlib import Path


def exported_models(torch):
    """The models; inputs and weights are the same numbers in both packages."""
    nn, F = torch.nn, torch.nn.functional
    import importlib

    importlib.import_module(torch.__name__ + ".export")
    reg = torch.export.register_dataclass

    @dataclasses.dataclass
    class In:
        a: object
        b: object

    reg(In, serialized_type_name="tests.In")

    def floats(*s, k=0):
        n = 1
        for q in s:
            n *= q
        return ((torch.arange(n, dtype=torch.float32) * 53 + k * 7) % 97 / 97 - 0.4).reshape(s)

    def ints(hi, *s):
        n = 1
        for q in s:
            n *= q
        return (torch.arange(n) * 7 % hi).reshape(s)

    class MLP(nn.Module):
        def __init__(s):
            super().__init__()
            s.a = nn.Linear(8, 16)
            s.b = nn.Linear(16, 4)

        def forward(s, x):
            return s.b(F.gelu(s.a(x)))

    class ConvBN(nn.Module):
        def __init__(s):
            super().__init__()
            s.c = nn.Conv2d(3, 8, 3, padding=1, bias=False)
            s.n = nn.BatchNorm2d(8)
            s.f = nn.Linear(8, 5)

        def forward(s, x):
            return s.f(F.adaptive_avg_pool2d(F.relu(s.n(s.c(x))), 1).flatten(1))

    class Block(nn.Module):
        def __init__(s, c):
            super().__init__()
            s.c1 = nn.Conv2d(c, c, 3, padding=1)
            s.n1 = nn.BatchNorm2d(c)
            s.c2 = nn.Conv2d(c, c, 3, padding=1)
            s.n2 = nn.BatchNorm2d(c)
            s.r = nn.ReLU(inplace=True)

        def forward(s, x):
            y = s.r(s.n1(s.c1(x)))
            y = s.n2(s.c2(y))
            y += x
            return s.r(y)

    class ResNet(nn.Module):
        def __init__(s):
            super().__init__()
            s.stem = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
            s.l = nn.Sequential(Block(8), Block(8))
            s.p = nn.AdaptiveAvgPool2d((1, 1))
            s.fc = nn.Linear(8, 10)

        def forward(s, x):
            return s.fc(torch.flatten(s.p(s.l(s.stem(x))), 1))

    class MBConv(nn.Module):
        def __init__(s):
            super().__init__()
            s.e = nn.Conv2d(8, 16, 1)
            s.d = nn.Conv2d(16, 16, 3, padding=1, groups=16)
            s.sq = nn.Conv2d(16, 4, 1)
            s.ex = nn.Conv2d(4, 16, 1)
            s.p = nn.Conv2d(16, 8, 1)
            s.act = nn.SiLU()

        def forward(s, x):
            y = s.act(s.d(s.act(s.e(x))))
            g = torch.sigmoid(s.ex(s.act(s.sq(y.mean((2, 3), keepdim=True)))))
            return x + s.p(y * g)

    class ConvNext(nn.Module):
        def __init__(s):
            super().__init__()
            s.d = nn.Conv2d(8, 8, 7, padding=3, groups=8)
            s.norm = nn.LayerNorm(8)
            s.a = nn.Linear(8, 32)
            s.b = nn.Linear(32, 8)
            s.g = nn.Parameter(torch.ones(8))

        def forward(s, x):
            y = s.d(x).permute(0, 2, 3, 1)
            y = s.b(F.gelu(s.a(s.norm(y)))) * s.g
            return x + y.permute(0, 3, 1, 2)

    class Attn(nn.Module):
        def __init__(s):
            super().__init__()
            s.qkv = nn.Linear(16, 48)
            s.p = nn.Linear(16, 16)

        def forward(s, x):
            B, N, C = x.shape
            q, k, v = s.qkv(x).reshape(B, N, 3, 4, C // 4).permute(2, 0, 3, 1, 4).unbind(0)
            x = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(B, N, C)
            return s.p(x)

    class ViT(nn.Module):
        def __init__(s):
            super().__init__()
            s.c = nn.Conv2d(3, 16, 4, 4)
            s.cls = nn.Parameter(torch.zeros(1, 1, 16))
            s.pos = nn.Parameter(torch.zeros(1, 5, 16))
            s.norm1 = nn.LayerNorm(16)
            s.at = Attn()
            s.norm2 = nn.LayerNorm(16)
            s.m = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
            s.h = nn.Linear(16, 3)

        def forward(s, x):
            x = s.c(x).flatten(2).transpose(1, 2)
            x = torch.cat([s.cls.expand(x.shape[0], -1, -1), x], 1) + s.pos
            x = x + s.at(s.norm1(x))
            x = x + s.m(s.norm2(x))
            return s.h(x[:, 0])

    class BertLayer(nn.Module):
        def __init__(s):
            super().__init__()
            s.we = nn.Embedding(30, 16, padding_idx=0)
            s.pe = nn.Embedding(12, 16)
            s.register_buffer("ids", torch.arange(12).expand(1, -1), persistent=False)
            s.norm = nn.LayerNorm(16, eps=1e-12)
            s.q = nn.Linear(16, 16)
            s.k = nn.Linear(16, 16)
            s.v = nn.Linear(16, 16)
            s.o = nn.Linear(16, 16)
            s.norm2 = nn.LayerNorm(16)
            s.dr = nn.Dropout(0.1)

        def forward(s, input_ids, attention_mask=None):
            n = input_ids.size(1)
            x = s.dr(s.norm(s.we(input_ids) + s.pe(s.ids[:, :n])))
            m = (1.0 - attention_mask[:, None, None, :].to(x.dtype)) * torch.finfo(x.dtype).min
            h = lambda t: t.view(*t.shape[:-1], 4, 4).permute(0, 2, 1, 3)
            q, k, v = h(s.q(x)), h(s.k(x)), h(s.v(x))
            a = torch.matmul(q, k.transpose(-1, -2)) / 2.0 + m
            a = s.dr(F.softmax(a, dim=-1))
            y = torch.matmul(a, v).permute(0, 2, 1, 3).contiguous().view(x.size(0), n, 16)
            return s.norm2(s.o(y) + x)

    class GPTLayer(nn.Module):
        def __init__(s):
            super().__init__()
            s.we = nn.Embedding(30, 16)
            s.norm = nn.LayerNorm(16)
            s.at = nn.Linear(16, 48)
            s.p = nn.Linear(16, 16)
            s.f = nn.Linear(16, 32)
            s.f2 = nn.Linear(32, 16)
            s.register_buffer("bias", torch.tril(torch.ones(12, 12, dtype=torch.bool)).view(1, 1, 12, 12))
            s.lm = nn.Linear(16, 30, bias=False)
            s.lm.weight = s.we.weight

        def forward(s, ids):
            b, t = ids.size()
            x = s.we(ids)
            q, k, v = s.at(s.norm(x)).split(16, dim=2)
            h = lambda z: z.view(b, t, 4, 4).transpose(1, 2)
            a = (h(q) @ h(k).transpose(-2, -1)) * 0.5
            a = a.masked_fill(s.bias[:, :, :t, :t] == 0, float("-inf"))
            y = (F.softmax(a, -1) @ h(v)).transpose(1, 2).contiguous().view(b, t, 16)
            x = x + s.p(y)
            x = x + s.f2(F.gelu(s.f(x), approximate="tanh"))
            return s.lm(x)

    class LSTMNet(nn.Module):
        def __init__(s):
            super().__init__()
            s.l = nn.LSTM(4, 6, batch_first=True)
            s.f = nn.Linear(6, 2)

        def forward(s, x):
            y, (h, c) = s.l(x)
            return s.f(y[:, -1]), h

    class GRUNet(nn.Module):
        def __init__(s):
            super().__init__()
            s.g = nn.GRU(4, 5)

        def forward(s, x):
            return s.g(x)

    class Counter(nn.Module):
        def __init__(s):
            super().__init__()
            s.register_buffer("n", torch.zeros(1))
            s.register_buffer("m", torch.zeros(2, 3))

        def forward(s, x):
            s.n.add_(1)
            s.m[:, 0] = x[:, 0]
            return x * s.n + s.m

    class DictIO(nn.Module):
        def forward(s, d):
            return {"sum": d["a"] + d["b"][0], "parts": [d["a"], (d["b"][1],)]}

    class DC(nn.Module):
        def forward(s, i, *, scale):
            return i.a * scale + i.b

    class Kw(nn.Module):
        def forward(s, x, *rest, flag=True, **kw):
            y = x + rest[0] * rest[1]
            return (y if flag else -y) - kw["z"]

    class MHA(nn.Module):
        def __init__(s):
            super().__init__()
            s.a = nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(s, x):
            return s.a(x, x, x, need_weights=False)[0]

    class UNet(nn.Module):
        def __init__(s):
            super().__init__()
            s.d = nn.Conv2d(3, 4, 3, padding=1)
            s.m = nn.Conv2d(4, 4, 3, padding=1)
            s.u = nn.ConvTranspose2d(4, 4, 2, 2)
            s.o = nn.Conv2d(8, 1, 1)

        def forward(s, x):
            a = F.leaky_relu(s.d(x), 0.2)
            b = F.elu(s.m(F.max_pool2d(a, 2)))
            return torch.sigmoid(s.o(torch.cat([a, s.u(b)], 1))), F.interpolate(b, scale_factor=2, mode="nearest"), F.interpolate(b, size=(6, 6), mode="bilinear", align_corners=False)

    class Loss(nn.Module):
        def forward(s, x, t):
            return F.cross_entropy(x, t), F.mse_loss(x, x * 2), F.log_softmax(x, 1).sum(), F.one_hot(t, 5)

    class Index(nn.Module):
        def __init__(s):
            super().__init__()
            s.idx = torch.tensor([2, 0, 1])

        def forward(s, x):
            y = x[s.idx]
            z = x.clone()
            z[0] = 1
            a, b = torch.topk(x, 2)
            return y, z, a, b, x.argmax(-1), torch.where(x > 0, x, torch.zeros_like(x)), x.index_select(0, s.idx)

    class Shape(nn.Module):
        def forward(s, x):
            y = x.reshape(-1, 2)
            z = x.unsqueeze(0).expand(2, -1, -1)
            a, b = x.chunk(2, 1)
            w = torch.stack([a, b])
            return (
                y,
                z,
                w.transpose(0, 1),
                torch.einsum("ij,kj->ik", x, x),
                x.permute(1, 0).contiguous(),
                x.flatten(),
                torch.arange(x.shape[0]),
                x.cumsum(0),
                1 - x,
                2 / x,
                x**2,
                -x,
                x.pow(0.5).clamp(0, 1),
            )

    class Group(nn.Module):
        def __init__(s):
            super().__init__()
            s.c = nn.Conv1d(4, 8, 3)
            s.norm = nn.GroupNorm(2, 8)
            s.pr = nn.PReLU()
            s.i = nn.InstanceNorm1d(8)

        def forward(s, x):
            return s.i(s.pr(s.norm(s.c(x)))), F.avg_pool1d(x, 2), F.pad(x, (1, 1)), F.hardswish(x), F.softplus(x)

    class RMS(nn.Module):
        def __init__(s):
            super().__init__()
            s.w = nn.Parameter(torch.ones(8))
            s.g = nn.Linear(8, 16, bias=False)
            s.u = nn.Linear(8, 16, bias=False)
            s.d = nn.Linear(16, 8, bias=False)
            inv = 1.0 / (10000 ** (torch.arange(0, 4, 2).float() / 4))
            s.register_buffer("inv", inv, persistent=False)

        def forward(s, x, pos):
            v = x.to(torch.float32).pow(2).mean(-1, keepdim=True)
            y = s.w * (x * torch.rsqrt(v + 1e-6)).to(x.dtype)
            f = pos[:, :, None].float() * s.inv[None, None, :]
            e = torch.cat((f, f), -1)
            c, si = e.cos(), e.sin()
            q = y[..., :4]
            r = torch.cat((-q[..., 2:], q[..., :2]), -1)
            q = q * c + r * si
            return s.d(F.silu(s.g(y)) * s.u(y)), q

    class Enc(nn.Module):
        def __init__(s):
            super().__init__()
            s.e = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)

        def forward(s, x):
            return s.e(x)

    return {
        "mlp": (MLP, (floats(2, 8),), {}, False),
        "convbn_eval": (ConvBN, (floats(2, 3, 6, 6),), {}, False),
        "convbn_train": (ConvBN, (floats(2, 3, 6, 6),), {}, True),
        "resnet": (ResNet, (floats(2, 3, 32, 32),), {}, False),
        "resnet_train": (ResNet, (floats(2, 3, 32, 32),), {}, True),
        "mbconv": (MBConv, (floats(1, 8, 5, 5),), {}, False),
        "convnext": (ConvNext, (floats(1, 8, 7, 7),), {}, False),
        "attention": (Attn, (floats(2, 5, 16),), {}, False),
        "vit": (ViT, (floats(2, 3, 8, 8),), {}, False),
        "bert": (BertLayer, (ints(30, 2, 7),), {"attention_mask": ints(2, 2, 7) + 0}, False),
        "gpt": (GPTLayer, (ints(30, 2, 7),), {}, False),
        "lstm": (LSTMNet, (floats(2, 3, 4),), {}, False),
        "gru": (GRUNet, (floats(3, 2, 4),), {}, False),
        "buffers": (Counter, (floats(2, 3),), {}, False),
        "dict": (DictIO, ({"a": floats(2), "b": [floats(2, k=1), floats(3)]},), {}, False),
        "dataclass": (DC, (In(floats(2), floats(2, k=3)),), {"scale": floats(1)}, False),
        "kwargs": (Kw, (floats(2), floats(2, k=1), floats(2, k=2)), {"z": floats(2, k=5), "flag": False}, False),
        "mha": (MHA, (floats(2, 4, 8),), {}, True),
        "unet": (UNet, (floats(1, 3, 8, 8),), {}, False),
        "loss": (Loss, (floats(3, 5), ints(5, 3)), {}, False),
        "index": (Index, (floats(3, 4),), {}, False),
        "shape": (Shape, (floats(4, 2).abs() + 0.1,), {}, False),
        "group": (Group, (floats(2, 4, 8),), {}, True),
        "llama": (RMS, (floats(1, 3, 8), torch.arange(3)[None]), {}, False),
        "encoder": (Enc, (floats(2, 3, 8),), {}, True),
    }


def filled(torch, m):
    """The module with weights that are the same in both packages."""
    with torch.no_grad():
        for k, (n, t) in enumerate([*m.named_parameters(), *m.named_buffers()]):
            if t.is_floating_point():
                v = (torch.arange(t.numel(), dtype=torch.float32) * 37 + k * 11) % 101 / 101
                t.copy_((v - (0.0 if "running_var" in n else 0.5)).reshape(t.shape) * 0.3 + (1 if "running_var" in n else 0))
    return m


def main():
    import torch
    from torch.export import export

    graphs = {}
    for name, (cls, args, kwargs, training) in exported_models(torch).items():
        program = export(filled(torch, cls()).train(training), args, kwargs)
        graphs[name] = {
            "placeholders": [n.name for n in program.graph.nodes if n.op == "placeholder"],
            "operators": [f"{n.name}={n.target}" for n in program.graph.nodes if n.op == "call_function"],
            "signature": str(program.graph_signature).strip().splitlines(),
            "shapes": [list(n.meta["val"].shape) for n in program.graph.nodes if n.op == "call_function" and isinstance(n.meta.get("val"), torch.Tensor)],
        }
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(graph)}" for name, graph in graphs.items())
    Path(sys.argv[1]).write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main()
