"""Linear layers that are trained to be quantized dynamically."""

import importlib

from cresset.ao.nn.qat.modules import linear

__all__ = ["Linear"]


class Linear(linear.Linear):
    """qat.Linear with a qconfig whose activations are quantized as they come."""

    def __init__(self, in_features, out_features, bias=True, qconfig=None, device=None, dtype=None):
        super().__init__(in_features, out_features, bias, qconfig, device, dtype)
        if not importlib.import_module("cresset.ao.quantization.qconfig")._activation_is_memoryless(qconfig):
            raise ValueError("Dynamic QAT requires a memoryless observer.This means a MovingAverage observer with averaging constant equal to 1")
