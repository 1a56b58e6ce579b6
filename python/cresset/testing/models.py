"""Small models with the shape of well-known ones: what a new backend should run first.

`MODELS` maps names to functions; each returns a module, the inputs of one call, and a function from output to loss. All are small enough
for an interpreter: the point is which operators they need, not what they learn.
"""

import cresset
from cresset import nn
from cresset.nn import functional as F

__all__ = ["MODELS", "build", "train_step"]


class Mlp(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 4))

    def forward(self, x):
        return self.layers(x)


class Cnn(nn.Module):
    """The network of the digits example."""

    def __init__(self):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.conv2, self.norm2 = nn.Conv2d(4, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.dropout, self.fc = nn.Dropout(0.25), nn.Linear(8 * 2 * 2, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.norm2(self.conv2(x))), 2)
        return self.fc(self.dropout(x.flatten(1)))


class ResidualBlock(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False), nn.BatchNorm2d(outside)
        self.conv2, self.bn2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False), nn.BatchNorm2d(outside)
        same = stride == 1 and inside == outside
        self.shortcut = nn.Identity() if same else nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + self.shortcut(x))


class ResNet18(nn.Module):
    """Four stages of two blocks, as in ResNet-18, on few channels."""

    def __init__(self, width=4):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
        widths = [width, width, 2 * width, 4 * width, 8 * width]
        self.stages = nn.Sequential(*[
            nn.Sequential(ResidualBlock(widths[i], widths[i + 1], 1 if i == 0 else 2), ResidualBlock(widths[i + 1], widths[i + 1], 1))
            for i in range(4)
        ])
        self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(8 * width, 10)

    def forward(self, x):
        return self.fc(cresset.flatten(self.pool(self.stages(self.stem(x))), 1))


class TransformerEncoder(nn.Module):
    """Two encoder layers over embedded words."""

    def __init__(self, words=20, width=16):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        layer = nn.TransformerEncoderLayer(width, nhead=2, dim_feedforward=32, batch_first=True)
        self.encoder, self.fc = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(width, 4)

    def forward(self, words):
        return self.fc(self.encoder(self.embedding(words)).mean(1))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.fc = nn.LSTM(6, 8, num_layers=2, batch_first=True), nn.Linear(8, 4)

    def forward(self, x):
        return self.fc(self.lstm(x)[0][:, -1])


class GptBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attend, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in self.attend(self.norm1(x)).split(width, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.project(y.transpose(1, 2).contiguous().view(batch, length, width))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    """Causal language model: embeddings of words and places, two blocks, the word embedding again as last layer."""

    def __init__(self, words=20, length=8, width=16):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks, self.norm = nn.Sequential(GptBlock(width, 2), GptBlock(width, 2)), nn.LayerNorm(width)

    def forward(self, words):
        x = self.words(words) + self.places(cresset.arange(words.shape[1], device=words.device))
        return F.linear(self.norm(self.blocks(x)), self.words.weight).mean(1)


class UNet(nn.Module):
    """Two steps down and up with connections across."""

    def __init__(self, width=4):
        super().__init__()
        self.down1, self.down2 = self._block(1, width), self._block(width, 2 * width)
        self.bottom = self._block(2 * width, 4 * width)
        self.rise2, self.up2 = nn.ConvTranspose2d(4 * width, 2 * width, 2, 2), self._block(4 * width, 2 * width)
        self.rise1, self.up1 = nn.Upsample(scale_factor=2, mode="nearest"), self._block(3 * width, width)
        self.last = nn.Conv2d(width, 1, 1)

    @staticmethod
    def _block(inside, outside):
        return nn.Sequential(nn.Conv2d(inside, outside, 3, padding=1), nn.GroupNorm(2, outside), nn.SiLU())

    def forward(self, x):
        a = self.down1(x)
        b = self.down2(F.max_pool2d(a, 2))
        c = self.bottom(F.max_pool2d(b, 2))
        b = self.up2(cresset.cat([self.rise2(c), b], 1))
        return self.last(self.up1(cresset.cat([self.rise1(b), a], 1)))


def _classes(output):
    return F.cross_entropy(output, cresset.arange(output.shape[0], device=output.device) % output.shape[1])


def _words(*shape):
    return cresset.randint(0, 20, shape)


MODELS = {
    "mlp": lambda: (Mlp(), (cresset.randn(4, 8),), _classes),
    "cnn": lambda: (Cnn(), (cresset.randn(4, 1, 8, 8),), _classes),
    "resnet18": lambda: (ResNet18(), (cresset.randn(2, 3, 32, 32),), _classes),
    "transformer": lambda: (TransformerEncoder(), (_words(2, 6),), _classes),
    "lstm": lambda: (Lstm(), (cresset.randn(2, 5, 6),), _classes),
    "gpt": lambda: (Gpt(), (_words(2, 8),), _classes),
    "unet": lambda: (UNet(), (cresset.randn(2, 1, 8, 8),), lambda output: F.mse_loss(output, cresset.zeros_like(output))),
}


def build(name, device="cpu"):
    """(module, inputs, loss function) of an example model on a device. The same numbers on every device."""
    with cresset.random.fork_rng(devices=[]):
        cresset.manual_seed(0)
        model, inputs, loss = MODELS[name]()
    return model.to(device), tuple(x.to(device) for x in inputs), loss


def train_step(model, inputs, loss):
    """One forward and backward pass and one step of SGD with momentum; the loss. Everything runs on the calling thread, where modes of
    the caller see it."""
    optimizer = cresset.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    optimizer.zero_grad()
    value = loss(model(*inputs))
    with cresset.autograd.set_multithreading_enabled(False):
        value.backward()
    optimizer.step()
    return value
