"""Linear layers with blocked weights of 8 or 4 bits: `Q8Linear.from_linear(layer, bits=4)`, or `quantize(model, bits=4)` for all of a model.
Loads the library whose path is in Q8_LIBRARY."""

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
    def from_linear(cls, layer, bits=8):
        return cls(from_dense(layer.weight.detach(), bits), layer.bias)

    def forward(self, x):
        return nn.functional.linear(x, self.weight, self.bias)

    def _save_to_state_dict(self, destination, prefix, keep_vars):
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "weight.codes"], destination[prefix + "weight.scales"] = cresset.ops.q8.parts(self.weight)

    def _load_from_state_dict(self, state_dict, prefix, *args):
        codes, scales = state_dict.pop(prefix + "weight.codes"), state_dict.pop(prefix + "weight.scales")
        self.weight = cresset.ops.q8.from_parts(codes, scales, self.weight.shape[1])
        super()._load_from_state_dict(state_dict, prefix, *args)


def quantize(model, bits=8):
    """Replaces the Linear layers of a model by those with quantised weights; gives the model."""
    for name, child in model.named_children():
        if type(child) is nn.Linear:
            setattr(model, name, Q8Linear.from_linear(child, bits))
        else:
            quantize(child, bits)
    return model
