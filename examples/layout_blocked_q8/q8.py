"""Linear layers with blocked 8-bit weights: `Q8Linear.from_linear(layer)`. Loads the library whose path is in Q8_LIBRARY."""

import os

import cresset
from cresset import nn

cresset.ops.load_library(os.environ["Q8_LIBRARY"])
from_dense, to_dense = cresset.ops.q8.from_dense, cresset.ops.q8.to_dense


class Q8Linear(nn.Module):
    """y = x @ w.t() + bias with a quantised, fixed w; gradients go to x and bias. `state_dict` holds codes and scales."""

    def __init__(self, weight, bias=None):
        super().__init__()
        self.weight = weight  # no parameter: it cannot be trained
        self.bias = None if bias is None else nn.Parameter(bias.detach().clone())

    @classmethod
    def from_linear(cls, layer):
        return cls(from_dense(layer.weight.detach()), layer.bias)

    def forward(self, x):
        return nn.functional.linear(x, self.weight, self.bias)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "weight.codes"], destination[prefix + "weight.scales"] = cresset.ops.q8.parts(self.weight)

    def _load_from_state_dict(self, state_dict, prefix, *args):
        codes, scales = state_dict.pop(prefix + "weight.codes"), state_dict.pop(prefix + "weight.scales")
        self.weight = cresset.ops.q8.from_parts(codes, scales, self.weight.shape[1])
        super()._load_from_state_dict(state_dict, prefix, *args)
