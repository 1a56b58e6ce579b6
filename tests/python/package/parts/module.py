from cresset import nn

from .inner.helpers import twice


class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)
        self.alias = self.linear.weight

    def forward(self, x):
        return twice(self.linear(x))


class Scaled(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        return x * self.scale
