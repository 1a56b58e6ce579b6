"""Places where values become quantized, and real again."""

from cresset import nn

__all__ = ["QuantStub", "DeQuantStub", "QuantWrapper"]


class _Stub(nn.Module):
    def __init__(self, qconfig=None):
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x):
        return x


class QuantStub(_Stub):
    """A place where values become quantized: an observer before `convert`, Quantize after it."""


class DeQuantStub(_Stub):
    """A place where values become real again: gives its input before `convert`, and is DeQuantize after it."""


class QuantWrapper(nn.Module):
    """A module between a QuantStub and a DeQuantStub."""

    quant: QuantStub
    dequant: DeQuantStub
    module: nn.Module

    def __init__(self, module):
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.add_module("quant", QuantStub(qconfig))
        self.add_module("dequant", DeQuantStub(qconfig))
        self.add_module("module", module)
        self.train(module.training)

    def forward(self, X):
        return self.dequant(self.module(self.quant(X)))
