"""Whole training scripts whose loss curves are recorded; shared by the recorder and the tests."""

import math


def waves(lib, *shape, step):
    n = math.prod(shape)
    return lib.tensor([math.sin(step * i + 0.5) for i in range(n)]).reshape(shape)


def train(lib, model, optimizer, criterion, x, y, epochs, batch):
    """Losses of every batch of a plain training loop with a shuffling loader."""
    data = lib.utils.data
    loader = data.DataLoader(data.TensorDataset(x, y), batch, shuffle=True)
    losses = []
    for _ in range(epochs):
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def mlp(lib):
    lib.manual_seed(0)
    nn = lib.nn
    model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = lib.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
    x = waves(lib, 24, 4, step=0.37)
    return train(lib, model, optimizer, nn.MSELoss(), x, (x[:, :1] * x[:, 1:2]), 4, 6)


def cnn(lib):
    lib.manual_seed(1)
    nn = lib.nn
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 6, 3), nn.GELU(),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Dropout(0.2), nn.Linear(24, 3),
    )  # fmt: skip
    optimizer = lib.optim.AdamW(model.parameters(), lr=0.01)
    x = waves(lib, 20, 1, 8, 8, step=0.11)
    return train(lib, model, optimizer, nn.CrossEntropyLoss(), x, lib.arange(20) % 3, 4, 5)


def transformer(lib):
    lib.manual_seed(2)
    nn = lib.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(11, 8)
            layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.head = nn.Linear(8, 11)

        def forward(self, tokens):
            return self.head(self.encoder(self.embed(tokens))).flatten(0, 1)

    model = Model()
    optimizer = lib.optim.Adam(model.parameters(), lr=0.005)
    tokens = (lib.arange(12 * 5) * 7 % 11).reshape(12, 5)
    loss = nn.CrossEntropyLoss(label_smoothing=0.1)
    return train(lib, model, optimizer, lambda out, t: loss(out, t.flatten()), tokens, tokens, 3, 4)


SCRIPTS = {"mlp": mlp, "cnn": cnn, "transformer": transformer}
