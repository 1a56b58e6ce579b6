"""A layer and its batch norm, trained as they will be quantized: the weight is scaled by the batch norm's running numbers before it is rounded, and
what comes out is scaled back for the batch norm itself."""

import cresset
from cresset import nn


class WithBatchNorm:
    """Mixed into a layer with a weight: `bn`, its switches, and the forward of both. `_products(input, weight)` is the layer without its bias."""

    def _set_batch_norm(self, bn, freeze_bn, qconfig):
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig, self.freeze_bn = qconfig, freeze_bn if self.training else True
        self.bn = bn
        self.weight_fake_quant = qconfig.weight()
        self.reset_bn_parameters()
        if self.training:
            if freeze_bn:
                self.freeze_bn_stats()
            else:
                self.update_bn_stats()
        else:
            self.freeze_bn_stats()

    def reset_running_stats(self):
        """Forget the batch norm's running numbers."""
        self.bn.reset_running_stats()

    def reset_bn_parameters(self):
        """A batch norm as a new one."""
        self.bn.reset_running_stats()
        nn.init.uniform_(self.bn.weight)
        nn.init.zeros_(self.bn.bias)

    def update_bn_stats(self):
        """The batch norm learns its running numbers from now on."""
        self.freeze_bn = False
        self.bn.training = True
        return self

    def freeze_bn_stats(self):
        """The batch norm keeps its running numbers from now on."""
        self.freeze_bn = True
        self.bn.training = False
        return self

    def train(self, mode=True):
        """Training mode; the batch norm follows unless it is frozen."""
        self.training = mode
        if not self.freeze_bn:
            for module in self.children():
                module.train(mode)
        return self

    def _forward(self, input):
        deviation = cresset.sqrt(self.bn.running_var + self.bn.eps)
        factor = self.bn.weight / deviation
        if getattr(self, "_enable_slow_path_for_better_numerical_stability", False):
            factor = cresset.where(factor == 0, 1.0, factor)  # there is no way back from 0
        by_output = [-1] + [1] * (self.weight.dim() - 1)
        by_channel = [1] * (self._channel_dim(input)) + [-1] + [1] * (self.weight.dim() - 2)
        weight = self.weight_fake_quant(self.weight * factor.reshape(by_output))
        result = self._products(input, weight) / factor.reshape(by_channel)
        if self.bias is not None:
            result = result + self.bias.reshape(by_channel)
        return self.bn(result)

    def _channel_dim(self, input):
        return 1
