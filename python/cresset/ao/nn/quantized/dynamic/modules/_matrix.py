"""A matrix of weights in int8 or float16, and its product with an input that is quantized for it."""

import cresset
from cresset import nn
from cresset.backends._quantized import require_engine

_EXACT = 1 << 24  # sums of products up to here are exact in float32


def quantized_input(x):
    """(whole numbers from 0 to 127 as floats, scale, zero point) of a tensor: its range, which has to include 0, over seven bits."""
    if x.numel() == 0:
        return x, 1.0, 0
    low, high = min(x.min().item(), 0.0), max(x.max().item(), 0.0)
    scale = (high - low) / 127
    if not scale or scale != scale or scale == float("inf"):
        scale = 0.1
    zero = min(max(round(-low / scale), 0), 127)
    return ((x / scale).round() + zero).clamp(0, 127), scale, zero


class Matrix(nn.Module):
    """`weight` as int8 with one scale, or one for each row, or as float16; `matrix(x)` is x weightᵀ + bias."""

    def __init__(self, weight, bias, dtype, per_row=False):
        super().__init__()
        require_engine("quantized::linear_prepack")
        self.dtype = dtype
        if str(dtype).endswith("float16"):
            self.register_buffer("values", weight.detach().half())
            self.register_buffer("scale", None)
        else:
            w = weight.detach().float()
            largest = w.abs().amax(1, keepdim=True) if per_row else w.abs().max()
            scale = (largest / 127.5).clamp_min(cresset.finfo(cresset.float32).eps)
            self.register_buffer("values", (w / scale).round().clamp(-128, 127).to(cresset.int8))
            self.register_buffer("scale", scale)
        self.register_buffer("bias", None if bias is None else bias.detach().clone())

    def dequantized(self):
        """The weights as they count, in float32."""
        return self.values.float() if self.scale is None else self.values.float() * self.scale

    def forward(self, x):
        require_engine("quantized::linear_dynamic")
        if self.scale is None:
            return nn.functional.linear(x, self.values.to(x.dtype), self.bias)
        q, scale, zero = quantized_input(x)
        wide = cresset.float32 if 127 * 128 * self.values.shape[1] < _EXACT else cresset.float64
        product = ((q - zero).to(wide) @ self.values.to(wide).mT).to(cresset.float32)
        product = product * (scale * (self.scale if self.scale.dim() == 0 else self.scale.squeeze(1)))
        return product if self.bias is None else product + self.bias

    def extra_repr(self):
        return f"{tuple(self.values.shape)}, dtype={self.dtype}"
