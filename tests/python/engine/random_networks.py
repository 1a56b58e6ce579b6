"""Random networks of convolutions, linear layers and what stands between them, by a seed: odd sizes, strides, groups, dilations, paddings, branches, in-place
activations, operands that are broadcast or of other layouts."""

import random

import cresset
from cresset import nn

F = nn.functional

ACTIVATIONS = [
    F.relu,
    F.relu6,
    cresset.sigmoid,
    cresset.tanh,
    F.silu,
    F.hardswish,
    F.hardsigmoid,
    F.gelu,
    lambda x: F.gelu(x, approximate="tanh"),
    lambda x: F.leaky_relu(x, 0.2),
    lambda x: F.leaky_relu(x, -0.3),
    lambda x: F.elu(x, 0.7),
    F.softplus,
    F.mish,
    F.selu,
    F.softsign,
    lambda x: cresset.clamp(x, max=0.25),
    lambda x: cresset.clamp(x, min=-0.25),
    lambda x: cresset.clamp(x, -1, 0.5),
    lambda x: cresset.clamp(x, 0.5, -0.5),
    lambda x: F.hardtanh(x, -0.3, 0.4),
    lambda x: F.threshold(x, 0.1, -0.2),
    lambda x: x.abs(),
    lambda x: x.neg(),
    lambda x: x * x,
    lambda x: x + x,
    lambda x: x * 1.5 - 0.25,
    lambda x: 2 - x,
    lambda x: x / 3,
    lambda x: x.exp().clamp(max=4),
    lambda x: cresset.add(x, x.relu(), alpha=0.5),
    lambda x: x + 1,
    lambda x: cresset.where(x > 0, x, x * 0.1),
]
IN_PLACE = [lambda x: F.relu(x, inplace=True), lambda x: F.silu(x, inplace=True), lambda x: x.add_(0.5), lambda x: x.mul_(0.5), lambda x: F.hardtanh(x, -1, 1, inplace=True), lambda x: x.clamp_(-1, 1)]


class Networks:
    """Draws layers for a value of some shape; a drawn layer is a function of the value, or None where it does not fit."""

    def __init__(self, seed):
        self.random, self.modules = random.Random(seed), nn.ModuleList()
        cresset.manual_seed(seed)

    def one(self, *choices):
        return self.random.choice(choices)

    def maybe(self, part=0.5):
        return self.random.random() < part

    def module(self, m):
        self.modules.append(m)
        return m

    # ---- layers of images: (N, C, H, W)

    def convolution(self, x):
        channels = x.shape[1]
        groups = self.one(*(g for g in (1, 1, 1, 2, 3, 4, channels) if channels % g == 0))
        pair = lambda *choices: (self.one(*choices), self.one(*choices)) if self.maybe(0.3) else self.one(*choices)  # noqa: E731
        kernel, same = pair(1, 1, 2, 3, 3, 5), self.maybe(0.15)
        options = dict(stride=1 if same else pair(1, 1, 2, 3), padding="same" if same else pair(0, 1, 1, 2, 3), dilation=pair(1, 1, 1, 2, 3), groups=groups, bias=self.maybe(0.7))
        if not same and self.maybe(0.1):
            options["padding_mode"] = self.one("reflect", "replicate", "circular")
        return self.module(nn.Conv2d(channels, groups * self.one(1, 2, 3, 4, 8, 11), kernel, **options))

    def transposed(self, x):
        stride = self.one(1, 2)
        groups = self.one(1, 1, 2) if x.shape[1] % 2 == 0 else 1
        return self.module(nn.ConvTranspose2d(x.shape[1], groups * self.one(2, 3, 5), self.one(1, 2, 3), stride, padding=self.one(0, 0, 1), output_padding=self.one(0, stride - 1), groups=groups, bias=self.maybe()))

    def norm(self, x):
        channels = x.shape[1]
        made = self.one(lambda: nn.BatchNorm2d(channels, affine=self.maybe(0.8)), lambda: nn.GroupNorm(self.one(1, channels), channels), lambda: nn.InstanceNorm2d(channels), lambda: nn.LocalResponseNorm(3))()
        if isinstance(made, nn.BatchNorm2d):
            made.running_mean.uniform_(-0.5, 0.5)
            made.running_var.uniform_(0.3, 2)
            if made.affine:
                nn.init.uniform_(made.weight, -1, 2)
                nn.init.uniform_(made.bias, -1, 1)
        return self.module(made)

    def pool(self, x):
        size, stride, ceil = self.one(2, 3), self.one(1, 2), self.maybe()
        return self.one(
            lambda x: F.max_pool2d(x, size, stride, padding=size // 2, ceil_mode=ceil),
            lambda x: F.avg_pool2d(x, size, stride, padding=1, ceil_mode=ceil, count_include_pad=not ceil),
            lambda x: F.adaptive_avg_pool2d(x, (3, 2)),
            lambda x: F.adaptive_max_pool2d(x, 2),
            lambda x: F.interpolate(x, scale_factor=2, mode="nearest"),
            lambda x: F.interpolate(x, size=(7, 5), mode="bilinear", align_corners=ceil),
        )

    def gate(self, x):
        """Squeeze and excitation."""
        channels = x.shape[1]
        down, up = self.module(nn.Conv2d(channels, 3, 1)), self.module(nn.Conv2d(3, channels, 1))
        close = self.one(cresset.sigmoid, F.hardsigmoid)
        flip = self.maybe()

        def run(x):
            g = close(up(F.relu(down(F.adaptive_avg_pool2d(x, 1)))))
            return g * x if flip else x * g

        return run

    def residual(self, x):
        channels = x.shape[1]
        a = self.module(nn.Conv2d(channels, channels, 3, padding=1, groups=self.one(1, channels)))
        b = self.module(nn.Conv2d(channels, channels, self.one(1, 3), padding="same", bias=self.maybe()))
        inner, last = self.one(*ACTIVATIONS, *IN_PLACE), self.one(*ACTIVATIONS, lambda x: x)
        kind = self.one("add", "add", "in_place", "mul", "sub", "double", "alpha")

        def run(x):
            y = b(inner(a(x)))
            z = {"add": lambda: y + x, "in_place": lambda: y.add_(x), "mul": lambda: x * y, "sub": lambda: x - y, "double": lambda: y + x + y, "alpha": lambda: cresset.add(x, y, alpha=2)}[kind]()
            return last(z)

        return run

    def branches(self, x):
        parts = [self.module(nn.Conv2d(x.shape[1], self.one(2, 3, 8), k, padding=k // 2)) for k in (1, 3, 5)[: self.one(2, 3)]]
        functions = [self.one(*ACTIVATIONS) for _ in parts]
        return lambda x: cresset.cat([f(p(x)) for f, p in zip(functions, parts)], 1)

    def shuffle(self, x):
        channels = x.shape[1]
        groups = self.one(*(g for g in (1, 2, 3, 4) if channels % g == 0))
        return self.one(
            lambda x: x.view(x.size(0), groups, channels // groups, x.size(2), x.size(3)).transpose(1, 2).reshape(x.size(0), -1, x.size(2), x.size(3)),
            lambda x: x.flip(1),
            lambda x: x.transpose(2, 3),
            lambda x: x[:, :, 1:] if x.shape[2] > 1 else x,
            lambda x: F.pad(x, (1, 0, 2, 1), value=0.5),
            lambda x: x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2),
            lambda x: cresset.cat(x.chunk(2, 1)[::-1], 1),
            lambda x: x.roll(1, 2),
        )

    def reduction(self, x):
        return self.one(
            lambda x: x - x.mean(1, keepdim=True),
            lambda x: x * x.amax((2, 3), keepdim=True).sigmoid(),
            lambda x: F.softmax(x, 1),
            lambda x: F.normalize(x, dim=1),
            lambda x: x + x.sum((0, 2), keepdim=True) * 0.01,
            lambda x: F.log_softmax(x, -1),
        )

    # ---- layers of rows: (N, …, C)

    def linear(self, x):
        return self.module(nn.Linear(x.shape[-1], self.one(1, 3, 7, 16, 33), bias=self.maybe(0.7)))

    def linear_residual(self, x):
        a, b = self.module(nn.Linear(x.shape[-1], 17)), self.module(nn.Linear(17, x.shape[-1]))
        f, before, kind = self.one(*ACTIVATIONS, *IN_PLACE), self.maybe(), self.one("add", "mul", "row", "column")
        row = self.module(nn.Linear(1, x.shape[-1]))

        def run(x):
            y = b(f(a(x)))
            other = {"add": x, "mul": x, "row": row.bias, "column": x.mean(-1, keepdim=True)}[kind]
            y = y * other if kind in ("mul", "column") else other + y
            return y if before else F.relu(y)

        return run

    def rows(self, x):
        size = x.shape[-1]
        return self.one(
            self.module(nn.LayerNorm(size, elementwise_affine=self.maybe(0.8))),
            lambda x: F.softmax(x, -1),
            lambda x: x - x.mean(-1, keepdim=True),
            lambda x: x * cresset.sigmoid(x.amax(-1, keepdim=True)),
            lambda x: F.normalize(x, dim=-1),
            lambda x: cresset.cat([x, x.relu()], -1),
            lambda x: F.glu(x, -1) if x.shape[-1] % 2 == 0 else x,
            lambda x: x.unsqueeze(1).expand(-1, 2, *[-1] * (x.dim() - 1)) if x.dim() < 4 else x,
            lambda x: cresset.stack([x, x * 2], 0).sum(0),
        )

    def to_rows(self, x):
        return self.one(lambda x: x.flatten(1), lambda x: x.mean((2, 3)), lambda x: x.flatten(2).transpose(1, 2), lambda x: F.adaptive_avg_pool2d(x, 2).view(x.size(0), -1), lambda x: x.permute(0, 2, 3, 1))


class Network(nn.Module):
    """A network for `example`, which its sizes are drawn for. `image`: (N, C, H, W), else (N, …, C)."""

    def __init__(self, seed, example):
        super().__init__()
        drawn = Networks(seed)
        self.parts, self.steps, self.keep = drawn.modules, [], drawn.maybe(0.3)
        image, x, left = example.dim() == 4, example, drawn.random.randint(2, 9)
        images = [drawn.convolution] * 4 + [drawn.norm, drawn.pool, drawn.gate, drawn.residual, drawn.residual, drawn.branches, drawn.shuffle, drawn.reduction, drawn.transposed]
        rows = [drawn.linear] * 3 + [drawn.linear_residual, drawn.linear_residual, drawn.rows]
        for i in range(left):
            if image and i + 2 >= left and drawn.maybe(0.7):
                make, image = drawn.to_rows, False
            elif drawn.maybe(0.3):
                make = lambda x: drawn.one(*ACTIVATIONS, *(IN_PLACE if self.steps else []))  # noqa: E731
            else:
                make = drawn.one(*(images if image else rows))
            self.try_step(make, x, drawn)
            x = self.run(example)[-1]
        self.requires_grad_(False)
        self.eval()

    def try_step(self, make, x, drawn):
        """Layers that do not fit the value (a kernel beyond it, say) are not taken."""
        count = len(drawn.modules)
        step = make(x)
        self.steps.append(step)
        for m in drawn.modules[count:]:
            m.eval()
        try:
            with cresset.no_grad():
                y = step(x.clone())
            fits = 0 < y.numel() < 40000 and bool(y.isfinite().all()) and float(y.abs().max()) < 1e3
        except (RuntimeError, ValueError):
            fits = False
        if not fits:
            self.steps.pop()

    def run(self, x):
        values = [x]
        for step in self.steps:
            values.append(step(values[-1]))
        return values

    def forward(self, x):
        values = self.run(x)
        # In-place steps write to values in front of them, which is part of the answer.
        return (values[-1], values[len(values) // 2] * 1.0) if self.keep else values[-1]
