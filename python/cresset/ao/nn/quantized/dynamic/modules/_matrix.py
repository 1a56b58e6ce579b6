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

    _version = 3  # of its part of state dicts

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

    def weight(self):
        """The weights: a quantized tensor of qint8, or the float16 numbers in float32."""
        if self.scale is None:
            return self.values.float()
        if self.scale.dim() == 0:
            return cresset._make_per_tensor_quantized_tensor(self.values, self.scale.item(), 0)
        scale = self.scale.flatten()
        return cresset._make_per_channel_quantized_tensor(self.values, scale, cresset.zeros(len(scale), dtype=cresset.int64), 0)

    def take(self, weight, bias):
        """Other weights, as `weight()` gives them, and another bias."""
        if self.scale is None or not weight.is_quantized:
            self.values, self.scale = weight.detach().half(), None
        else:
            several = weight.qscheme() is not cresset.per_tensor_affine
            self.values = weight.int_repr()
            self.scale = weight.q_per_channel_scales().float().unsqueeze(1) if several else cresset.tensor(weight.q_scale(), dtype=cresset.float32)
        self.bias = None if bias is None else bias.detach()

    # A state dict has what PyTorch's has: the dtype, and the weights and the bias in one tuple.
    def _save_to_state_dict(self, destination, prefix, keep_vars):
        bias = self.bias if self.bias is None or keep_vars else self.bias.detach()
        destination[prefix + "dtype"] = self.dtype
        destination[prefix + "_packed_params"] = (self.weight(), bias)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        if prefix + "values" in state_dict:  # as Cresset wrote it before
            super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
            return
        known = (prefix + "dtype", prefix + "_packed_params")
        missing_keys += [name for name in known if name not in state_dict]
        unexpected_keys += [name for name in state_dict if name.startswith(prefix) and name not in known] if strict else []
        if known[0] in state_dict:
            self.dtype = state_dict[known[0]]
        if known[1] in state_dict:
            weight, bias = state_dict[known[1]]
            if tuple(weight.shape) != tuple(self.values.shape):
                error_msgs.append(f"size mismatch for {known[1]}: weights of {tuple(weight.shape)} do not fit {tuple(self.values.shape)}.")
                return
            self.take(weight, bias)

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
