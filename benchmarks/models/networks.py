"""The networks of the model benchmarks, written once for Cresset and PyTorch: `networks_of(torch)` gives their classes for either module.

Sources: ResNet (He et al. 2016, arXiv:1512.03385), MobileNetV2 (Sandler et al. 2018, arXiv:1801.04381), MobileNetV3 (Howard et al. 2019, arXiv:1905.02244),
EfficientNet (Tan and Le 2019, arXiv:1905.11946), ViT (Dosovitskiy et al. 2021,
arXiv:2010.11929), BERT (Devlin et al. 2019, arXiv:1810.04805), GPT-2 (Radford et al. 2019), U-Net (Ronneberger et al. 2015,
arXiv:1505.04597), LSTM language models (Zaremba et al. 2014, arXiv:1409.2329), DQN (Mnih et al. 2015),
Wide & Deep (Cheng et al. 2016, arXiv:1606.07792).
"""

from types import SimpleNamespace


def networks_of(torch) -> SimpleNamespace:
    nn, F = torch.nn, torch.nn.functional

    class Bottleneck(nn.Module):
        """1x1, 3x3, 1x1 convolutions around a shortcut; `expansion` 1 is ResNet-18's block of two 3x3."""

        def __init__(self, channels, width, stride, expansion):
            super().__init__()
            out = width * expansion
            kernels = [1, 3, 1] if expansion > 1 else [3, 3]
            sizes = [channels, *[width] * (len(kernels) - 1), out]
            strided = 1 if expansion > 1 else 0
            self.convs = nn.ModuleList(nn.Conv2d(sizes[i], sizes[i + 1], k, stride if i == strided else 1, k // 2, bias=False) for i, k in enumerate(kernels))
            self.norms = nn.ModuleList(nn.BatchNorm2d(size) for size in sizes[1:])
            self.shortcut = nn.Sequential() if stride == 1 and channels == out else nn.Sequential(
                nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))  # fmt: skip

        def forward(self, x):
            y = x
            for i, (conv, norm) in enumerate(zip(self.convs, self.norms)):
                y = norm(conv(y))
                if i + 1 < len(self.convs):
                    y = F.relu(y)
            return F.relu(y + self.shortcut(x))

    class ResNet(nn.Module):
        def __init__(self, depths, expansion):
            super().__init__()
            self.stem = nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1))
            blocks, channels = [], 64
            for stage, depth in enumerate(depths):
                for i in range(depth):
                    blocks.append(Bottleneck(channels, 64 << stage, 2 if i == 0 and stage else 1, expansion))
                    channels = (64 << stage) * expansion
            self.blocks = nn.Sequential(*blocks)
            self.head = nn.Linear(channels, 1000)

        def forward(self, x):
            return self.head(self.blocks(self.stem(x)).mean((2, 3)))

    class InvertedResidual(nn.Module):
        """Expansion, depthwise convolution, squeeze and excitation, projection (MobileNetV3, figure 4)."""

        def __init__(self, channels, hidden, out, kernel, stride, squeeze, hard):
            super().__init__()
            act = nn.Hardswish if hard else nn.ReLU
            self.expand = nn.Sequential() if hidden == channels else nn.Sequential(nn.Conv2d(channels, hidden, 1, bias=False), nn.BatchNorm2d(hidden), act())
            self.depthwise = nn.Sequential(nn.Conv2d(hidden, hidden, kernel, stride, kernel // 2, groups=hidden, bias=False), nn.BatchNorm2d(hidden), act())
            narrow = max(8, hidden // 4 // 8 * 8)
            self.squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(hidden, narrow, 1), nn.ReLU(), nn.Conv2d(narrow, hidden, 1), nn.Hardsigmoid()) if squeeze else None
            self.project = nn.Sequential(nn.Conv2d(hidden, out, 1, bias=False), nn.BatchNorm2d(out))
            self.same = stride == 1 and channels == out

        def forward(self, x):
            y = self.depthwise(self.expand(x))
            if self.squeeze is not None:
                y = y * self.squeeze(y)
            y = self.project(y)
            return x + y if self.same else y

    class MobileNetV3(nn.Module):
        """The large one (table 1): kernel, hidden, out, squeeze, hard-swish, stride."""

        ROWS = [(3, 16, 16, 0, 0, 1), (3, 64, 24, 0, 0, 2), (3, 72, 24, 0, 0, 1), (5, 72, 40, 1, 0, 2), (5, 120, 40, 1, 0, 1), (5, 120, 40, 1, 0, 1),
                (3, 240, 80, 0, 1, 2), (3, 200, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1), (3, 480, 112, 1, 1, 1), (3, 672, 112, 1, 1, 1),
                (5, 672, 160, 1, 1, 2), (5, 960, 160, 1, 1, 1), (5, 960, 160, 1, 1, 1)]  # fmt: skip

        def __init__(self):
            super().__init__()
            layers, channels = [nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.Hardswish()], 16
            for kernel, hidden, out, squeeze, hard, stride in self.ROWS:
                layers.append(InvertedResidual(channels, hidden, out, kernel, stride, squeeze, hard))
                channels = out
            self.features = nn.Sequential(*layers, nn.Conv2d(160, 960, 1, bias=False), nn.BatchNorm2d(960), nn.Hardswish())
            self.head = nn.Sequential(nn.Linear(960, 1280), nn.Hardswish(), nn.Linear(1280, 1000))

        def forward(self, x):
            return self.head(self.features(x).mean((2, 3)))

    class InvertedResidualV2(nn.Module):
        """Expansion, depthwise convolution, linear projection (Sandler et al. 2018, table 1)."""

        def __init__(self, channels, out, stride, factor):
            super().__init__()
            hidden = channels * factor
            expand = [nn.Conv2d(channels, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6()] if factor > 1 else []
            self.layers = nn.Sequential(*expand, nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6(),
                                        nn.Conv2d(hidden, out, 1, bias=False), nn.BatchNorm2d(out))  # fmt: skip
            self.same = stride == 1 and channels == out

        def forward(self, x):
            return x + self.layers(x) if self.same else self.layers(x)

    class MobileNetV2(nn.Module):
        """Table 2: factor, channels, repetitions, stride."""

        ROWS = [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]

        def __init__(self):
            super().__init__()
            layers, channels = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6()], 32
            for factor, out, count, stride in self.ROWS:
                for i in range(count):
                    layers.append(InvertedResidualV2(channels, out, stride if i == 0 else 1, factor))
                    channels = out
            self.features = nn.Sequential(*layers, nn.Conv2d(320, 1280, 1, bias=False), nn.BatchNorm2d(1280), nn.ReLU6())
            self.head = nn.Linear(1280, 1000)

        def forward(self, x):
            return self.head(self.features(x).mean((2, 3)))

    class MBConv(nn.Module):
        """Expansion, depthwise convolution, squeeze and excitation of a quarter of the block's input, projection (Tan and Le 2019)."""

        def __init__(self, channels, out, kernel, stride, factor):
            super().__init__()
            hidden = channels * factor
            self.expand = nn.Sequential() if factor == 1 else nn.Sequential(nn.Conv2d(channels, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.SiLU())
            self.depthwise = nn.Sequential(nn.Conv2d(hidden, hidden, kernel, stride, kernel // 2, groups=hidden, bias=False), nn.BatchNorm2d(hidden), nn.SiLU())
            narrow = max(1, channels // 4)
            self.squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(hidden, narrow, 1), nn.SiLU(), nn.Conv2d(narrow, hidden, 1), nn.Sigmoid())
            self.project = nn.Sequential(nn.Conv2d(hidden, out, 1, bias=False), nn.BatchNorm2d(out))
            self.same = stride == 1 and channels == out

        def forward(self, x):
            y = self.depthwise(self.expand(x))
            y = self.project(y * self.squeeze(y))
            return x + y if self.same else y

    class EfficientNetB0(nn.Module):
        """Table 1: factor, channels, repetitions, stride, kernel."""

        ROWS = [(1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5), (6, 192, 4, 2, 5), (6, 320, 1, 1, 3)]

        def __init__(self):
            super().__init__()
            layers, channels = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.SiLU()], 32
            for factor, out, count, stride, kernel in self.ROWS:
                for i in range(count):
                    layers.append(MBConv(channels, out, kernel, stride if i == 0 else 1, factor))
                    channels = out
            self.features = nn.Sequential(*layers, nn.Conv2d(320, 1280, 1, bias=False), nn.BatchNorm2d(1280), nn.SiLU())
            self.head = nn.Linear(1280, 1000)

        def forward(self, x):
            return self.head(self.features(x).mean((2, 3)))

    class Block(nn.Module):
        """Attention and a perceptron of four times the width; the norms stand in front of both, or behind (`post`, as in BERT)."""

        def __init__(self, width, heads, causal=False, post=False):
            super().__init__()
            self.heads, self.causal, self.post = heads, causal, post
            self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def attend(self, x, cache=None):
            """`cache`, a list of keys and values of shape (batch, heads, past, width / heads), grows by x's."""
            batch, length, width = x.shape
            q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
            if cache is not None:
                if cache:
                    k, v = torch.cat((cache[0], k), 2), torch.cat((cache[1], v), 2)
                cache[:] = [k, v]
            y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal and bool(length > 1))
            return self.out(y.transpose(1, 2).reshape(batch, length, width))

        def forward(self, x, cache=None):
            if self.post:
                x = self.norm1(x + self.attend(x))
                return self.norm2(x + self.mlp(x))
            x = x + self.attend(self.norm1(x), cache)
            return x + self.mlp(self.norm2(x))

    class ViT(nn.Module):
        """ViT-B/16 for 224 x 224."""

        def __init__(self, width=768, depth=12, heads=12):
            super().__init__()
            self.patches = nn.Conv2d(3, width, 16, 16)
            self.token, self.position = nn.Parameter(torch.zeros(1, 1, width)), nn.Parameter(torch.zeros(1, 197, width))
            self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 1000)

        def forward(self, x):
            x = self.patches(x).flatten(2).transpose(1, 2)
            x = torch.cat((self.token.expand(x.size(0), -1, -1), x), 1) + self.position
            return self.head(self.norm(self.blocks(x))[:, 0])

    class Bert(nn.Module):
        def __init__(self, width=768, depth=12, heads=12):
            super().__init__()
            self.words, self.positions = nn.Embedding(30522, width), nn.Embedding(512, width)
            self.norm = nn.LayerNorm(width)
            self.blocks = nn.Sequential(*(Block(width, heads, post=True) for _ in range(depth)))
            self.pool = nn.Linear(width, width)

        def forward(self, ids):
            x = self.norm(self.words(ids) + self.positions(torch.arange(ids.size(1))))
            return torch.tanh(self.pool(self.blocks(x)[:, 0]))

    class GPT(nn.Module):
        def __init__(self, vocabulary=50257, context=1024, width=768, depth=12, heads=12):
            super().__init__()
            self.words, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
            self.blocks = nn.ModuleList(Block(width, heads, causal=True) for _ in range(depth))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)

        def forward(self, ids, caches=None, past=0):
            """Logits of shape (batch, length, vocabulary); with `caches`, a list for each block, those of the last token only."""
            x = self.words(ids) + self.positions(torch.arange(past, past + ids.size(1)))
            for i, block in enumerate(self.blocks):
                x = block(x, None if caches is None else caches[i])
            return self.head(self.norm(x if caches is None else x[:, -1:]))

    class LanguageLSTM(nn.Module):
        def __init__(self, width, vocabulary=10000):
            super().__init__()
            self.words, self.lstm, self.head = nn.Embedding(vocabulary, width), nn.LSTM(width, width, 2), nn.Linear(width, vocabulary)

        def forward(self, ids):
            return self.head(self.lstm(self.words(ids))[0])

    class UNet(nn.Module):
        def __init__(self, width=32, depth=3):
            super().__init__()
            sizes = [width << i for i in range(depth + 1)]
            self.down = nn.ModuleList(self.double(a, b) for a, b in zip([3, *sizes], sizes))
            self.up = nn.ModuleList(nn.ConvTranspose2d(2 * s, s, 2, 2) for s in reversed(sizes[:-1]))
            self.join = nn.ModuleList(self.double(2 * s, s) for s in reversed(sizes[:-1]))
            self.head = nn.Conv2d(width, 2, 1)

        @staticmethod
        def double(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())

        def forward(self, x):
            kept = []
            for i, layer in enumerate(self.down):
                x = layer(F.max_pool2d(x, 2) if i else x)
                kept.append(x)
            for up, join, skip in zip(self.up, self.join, reversed(kept[:-1])):
                x = join(torch.cat((up(x), skip), 1))
            return self.head(x)

    def mlp(*sizes):
        layers = [layer for a, b in zip(sizes, sizes[1:]) for layer in (nn.Linear(a, b), nn.ReLU())]
        return nn.Sequential(*layers[:-1])

    class Decode(nn.Module):
        """GPT-2 small over one token, behind caches of shape (blocks, 2, batch, heads, past, width / heads): its logits."""

        def __init__(self):
            super().__init__()
            self.gpt = GPT()

        def forward(self, caches):
            ids = torch.full((caches.size(2), 1), 464, dtype=torch.int64)
            return self.gpt(ids, [[cache[0], cache[1]] for cache in caches], caches.size(4))[:, -1]

    class Prompt(nn.Module):
        """GPT-2 small over a prompt: the logits of its last token."""

        def __init__(self):
            super().__init__()
            self.gpt = GPT()

        def forward(self, ids):
            return self.gpt(ids)[:, -1]

    class Recommender(nn.Module):
        """26 words of 1,000 each, and a perceptron over their embeddings (Cheng et al. 2016, figure 4)."""

        def __init__(self, words=1000, fields=26, width=16):
            super().__init__()
            self.tables = nn.ModuleList(nn.Embedding(words, width) for _ in range(fields))
            self.layers = mlp(fields * width, 1024, 512, 256, 1)

        def forward(self, ids):
            return torch.sigmoid(self.layers(torch.cat([table(ids[:, i]) for i, table in enumerate(self.tables)], 1)))

    return SimpleNamespace(ResNet=ResNet, MobileNetV2=MobileNetV2, MobileNetV3=MobileNetV3, EfficientNetB0=EfficientNetB0, ViT=ViT, Bert=Bert, GPT=GPT,
                           Decode=Decode, Prompt=Prompt, LanguageLSTM=LanguageLSTM, UNet=UNet, Recommender=Recommender, mlp=mlp)  # fmt: skip
