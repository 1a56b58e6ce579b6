"""Linear layers with a ReLU that are quantized dynamically."""

import cresset
from cresset.ao.nn import intrinsic as nni
from cresset.ao.nn.quantized import dynamic as nnqd

__all__ = ["LinearReLU"]


class LinearReLU(nnqd.Linear):
    """A linear layer with weights in int8 or float16, and a ReLU."""

    _FLOAT_MODULE = nni.LinearReLU

    def __init__(self, in_features, out_features, bias=True, dtype=cresset.qint8):
        super().__init__(in_features, out_features, bias, dtype)

    def forward(self, x):
        return self._product(x).relu()

    def _get_name(self):
        return "DynamicQuantizedLinearReLU"

    @classmethod
    def from_reference(cls, ref_qlinear_relu):
        return super().from_reference(ref_qlinear_relu[0])
