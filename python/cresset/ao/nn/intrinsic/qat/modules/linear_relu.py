"""Linear layers with a ReLU that are trained to be quantized."""

from cresset import nn
from cresset.ao.nn import intrinsic as nni
from cresset.ao.nn import qat as nnqat

__all__ = ["LinearReLU"]


class LinearReLU(nnqat.Linear, nni._FusedModule):
    """A linear layer and a ReLU; the weight passes through the fake quantizer of its qconfig."""

    _FLOAT_MODULE = nni.LinearReLU

    def __init__(self, in_features, out_features, bias=True, qconfig=None):
        super().__init__(in_features, out_features, bias, qconfig)

    def forward(self, input):
        return nn.functional.relu(nn.functional.linear(input, self.weight_fake_quant(self.weight), self.bias))

    def to_float(self):
        """The float sequence, with the parameters as they are."""
        made = nni.LinearReLU(super().to_float(), nn.ReLU())
        made.train(self.training)
        return made
