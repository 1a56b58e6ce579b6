"""Linear layers with batch norms that are trained to be quantized."""

from cresset import nn
from cresset.ao.nn import intrinsic as nni
from cresset.ao.nn.qat.modules._source import check_source
from cresset.nn.utils.fusion import fuse_linear_bn_weights

from ._batch_norm import WithBatchNorm

__all__ = ["LinearBn1d"]


class LinearBn1d(WithBatchNorm, nn.Linear, nni._FusedModule):
    """A linear layer and its batch norm, trained as they will be quantized."""

    _FLOAT_MODULE = nni.LinearBn1d

    def __init__(self, in_features, out_features, bias=True, eps=1e-05, momentum=0.1, freeze_bn=False, qconfig=None):
        nn.Linear.__init__(self, in_features, out_features, bias)
        self._set_batch_norm(nn.BatchNorm1d(out_features, eps, momentum, True, True), freeze_bn, qconfig)

    def _products(self, input, weight):
        return nn.functional.linear(input, weight)

    def _channel_dim(self, input):
        return input.dim() - 1

    def forward(self, input):
        return self._forward(input)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The form for training of a float sequence that has a qconfig, with its parameters and running numbers."""
        check_source(cls, mod)
        linear, bn = mod[0], mod[1]
        made = cls(linear.in_features, linear.out_features, linear.bias is not None, bn.eps, bn.momentum, False, mod.qconfig)
        made.weight, made.bias = linear.weight, linear.bias
        for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
            setattr(made.bn, name, getattr(bn, name))
        return made

    def to_float(self):
        """The float layer with the batch norm in its weight."""
        bn, made = self.bn, nn.Linear(self.in_features, self.out_features)
        weight, bias = fuse_linear_bn_weights(self.weight, self.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
        made.weight, made.bias = nn.Parameter(weight.detach()), nn.Parameter(bias.detach())
        made.train(self.training)
        return made
