"""The layers by kind."""

import cresset
from cresset import nn

from .activation import ELU, Hardswish, LeakyReLU, PReLU, ReLU6, Sigmoid, Softmax
from .batchnorm import BatchNorm2d, BatchNorm3d
from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .dropout import Dropout
from .embedding_ops import Embedding, EmbeddingBag
from .functional_modules import FloatFunctional, FXFloatFunctional, QFunctional
from .linear import Linear
from .normalization import GroupNorm, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, LayerNorm

__all__ = [
    "BatchNorm2d", "BatchNorm3d", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "DeQuantize", "ELU", "Embedding",
    "EmbeddingBag", "GroupNorm", "Hardswish", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d", "LayerNorm", "LeakyReLU", "Linear", "LSTM",
    "MultiheadAttention", "Quantize", "ReLU6", "Sigmoid", "Softmax", "Dropout", "PReLU", "FloatFunctional", "FXFloatFunctional", "QFunctional",
]  # fmt: skip


class Quantize(nn.Module):
    """Quantizes its input by one scale and zero point."""

    scale: cresset.Tensor
    zero_point: cresset.Tensor

    def __init__(self, scale, zero_point, dtype, factory_kwargs=None):
        super().__init__()
        self.register_buffer("scale", cresset.tensor([scale], **(factory_kwargs or {})))
        self.register_buffer("zero_point", cresset.tensor([zero_point], dtype=cresset.long, **{k: v for k, v in (factory_kwargs or {}).items() if k != "dtype"}))
        self.dtype = dtype

    def forward(self, X):
        return cresset.quantize_per_tensor(X, float(self.scale), int(self.zero_point), self.dtype)

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """Of a QuantStub whose input was watched."""
        if not hasattr(mod, "activation_post_process"):
            raise AssertionError("Input float module must have observer attached")
        scale, zero = mod.activation_post_process.calculate_qparams()
        return Quantize(scale.float().item(), zero.long().item(), mod.activation_post_process.dtype)

    def extra_repr(self):
        return f"scale={self.scale}, zero_point={self.zero_point}, dtype={self.dtype}"


class DeQuantize(nn.Module):
    """The real numbers of a quantized tensor."""

    def forward(self, Xq):
        return Xq.dequantize()

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """Of a DeQuantStub."""
        return DeQuantize()


class MaxPool2d(nn.MaxPool2d):
    """nn.MaxPool2d of whole numbers."""

    def forward(self, input):
        return nn.functional.max_pool2d(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices)

    def _get_name(self):
        return "QuantizedMaxPool2d"

    @staticmethod
    def from_float(mod, use_precomputed_fake_quant=False):
        """Of an nn.MaxPool2d."""
        return MaxPool2d(mod.kernel_size, mod.stride, mod.padding, mod.dilation, mod.return_indices, mod.ceil_mode)


_LATER = {"LSTM": "rnn", "MultiheadAttention": "_attention"}  # they are made of layers of this module


def __getattr__(name):
    if name in _LATER:
        import importlib

        return getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
