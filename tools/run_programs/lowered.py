"""Small models that converters of graphs take: `made(name)` gives a module with fixed weights and its input."""

import torch
import torch.nn.functional as F
from torch import nn


class Convolutions(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.pool, self.out = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.MaxPool2d(2), nn.Linear(8 * 16 * 16, 10)

    def forward(self, x):
        return self.out(torch.flatten(self.pool(F.relu(self.norm(self.conv(x)))), 1))


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)
        self.depthwise, self.up = nn.Conv2d(4, 4, 3, padding=1, groups=4), nn.ConvTranspose2d(4, 2, 2, stride=2)

    def forward(self, x):
        y = F.hardswish(self.norm(self.conv(x))) + x
        y = F.relu6(self.depthwise(y)) * torch.sigmoid(F.adaptive_avg_pool2d(y, 1))
        return F.interpolate(self.up(y), scale_factor=2.0, mode="bilinear", align_corners=False), y.mean(dim=[2, 3])


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.gru = nn.LSTM(8, 6, 2, batch_first=True, bidirectional=True), nn.GRU(12, 5)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        return self.gru(y)[0], h, c


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.attend, self.norm = nn.Embedding(20, 8), nn.MultiheadAttention(8, 2, batch_first=True), nn.LayerNorm(8)
        self.wide, self.narrow = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, words):
        x = self.embed(words)
        x = self.norm(x + self.attend(x, x, x, need_weights=False)[0])
        return x + self.narrow(F.gelu(self.wide(x)))


class Causal(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, 2, 8).transpose(1, 2) for t in self.qkv(self.norm(x)).split(16, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(y.transpose(1, 2).contiguous().view(batch, length, width))


class Shapes(nn.Module):
    def forward(self, x):
        a, b = torch.chunk(x, 2, 1)
        y = torch.cat([a.transpose(1, 2), b.permute(0, 2, 1)], dim=1)
        y = y.reshape(y.size(0), -1, 4)[:, 1:, ::2]
        z = torch.stack([y, y * 2], dim=0).squeeze(1).unsqueeze(0)
        powers = torch.clamp(y, min=0.1, max=2.0).pow(2).sum(dim=1, keepdim=True)
        return F.softmax(z, dim=-1), powers, F.pad(x, (1, 1)), torch.where(x > 0.5, x, x.new_zeros(x.shape))


class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.group, self.instance, self.prelu, self.pool = nn.GroupNorm(2, 4), nn.InstanceNorm2d(4, affine=True), nn.PReLU(4), nn.AvgPool2d(2, ceil_mode=True)

    def forward(self, x):
        y = self.prelu(self.instance(self.group(x)))
        y = F.elu(self.pool(y)) + F.leaky_relu(F.softplus(self.pool(y)), 0.2)
        return torch.logsumexp(y, dim=(2, 3)), y.argmax(1), torch.einsum("bchw,bdhw->bcd", y, y)


class Places(nn.Module):
    def forward(self, x):
        y = x.clone()
        y[:, 0] = 0
        y[:, 1:3] += 1
        y = torch.roll(y, 1, 1)
        z = y[:, torch.tensor([0, 2])]
        spread = y.expand(2, -1, -1, -1).reshape(-1, 4).float().std(0)
        return z, torch.cumsum(y, 1), torch.norm(y, dim=1), y.masked_fill(y > 0.5, -1.0), torch.arange(y.shape[1]) * 2, spread


class Numbers(nn.Module):
    def forward(self, x):
        even, odd = (x * 10).long() & 1, ((x * 10).long() >> 1) | 4
        return even, odd, x.var(1, keepdim=True), torch.std_mean(x, 0)[0], x.std(dim=1, correction=0), (x // 0.3), torch.remainder(x, 0.3), -x.abs().log()


CASES = {
    "convolutions": (Convolutions, (1, 3, 32, 32)), "residual": (Residual, (1, 4, 8, 8)), "recurrent": (Recurrent, (2, 5, 8)),
    "attention": (Attention, (2, 5)), "causal": (Causal, (2, 6, 16)), "shapes": (Shapes, (1, 4, 8)), "norms": (Norms, (2, 4, 6, 6)),
    "places": (Places, (2, 5, 4)), "numbers": (Numbers, (4, 6)),
}  # fmt: skip


def made(name):
    cls, size = CASES[name]
    module = cls().eval()
    with torch.no_grad():
        for at, (_, p) in enumerate([*module.named_parameters(), *module.named_buffers()]):
            if p.is_floating_point():
                p.copy_(torch.sin(torch.arange(p.numel()) * 0.37 + at).reshape(p.shape) * 0.3 + (0.8 if p.dim() == 1 else 0))
    x = (torch.arange(10).reshape(2, 5) * 7) % 20 if cls is Attention else torch.sin(torch.arange(torch.Size(size).numel()) * 0.71).reshape(size).abs() + 0.01
    return module, x


def answers(show, kind, convert):
    """Shows what convert(module, x) gives, arrays or what the converter raised, for all models."""
    for name in CASES:
        try:
            show(f"{name} {kind}", [torch.as_tensor(v) for v in convert(*made(name))])
        except Exception as error:
            show(f"{name} {kind}", type(error).__name__)
