"""The convolutional network of the digits example: 8 x 8 scans in, ten classes out."""

import cresset
from cresset import nn


class DigitsNet(nn.Module):
    """Two convolution blocks and a linear layer; `activation` may be any function of a tensor."""

    def __init__(self, activation=cresset.relu):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(32)
        self.dropout = nn.Dropout(0.25)
        self.fc = nn.Linear(32 * 2 * 2, 10)
        self.activation = activation

    def forward(self, x):
        x = nn.functional.max_pool2d(self.activation(self.norm1(self.conv1(x))), 2)
        x = nn.functional.max_pool2d(self.activation(self.norm2(self.conv2(x))), 2)
        return self.fc(self.dropout(x.flatten(1)))
