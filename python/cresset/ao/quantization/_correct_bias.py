"""Bias correction: what quantization adds to the mean of a layer's output is taken from its bias."""

import cresset
from cresset import nn
from cresset.ao.nn import quantized as nnq
from cresset.ao.ns import _numeric_suite as ns

__all__ = ["get_module", "parent_child_names", "get_param", "MeanShadowLogger", "bias_correction"]

_supported_modules = {nn.Linear, nn.Conv2d}
_supported_modules_quantized = {nnq.Linear, nnq.Conv2d}


def get_module(model, name):
    """The module of that name."""
    return dict(model.named_modules())[name]


def parent_child_names(name):
    """("a.b", "c") of "a.b.c" """
    parent, _, child = name.rpartition(".")
    return parent, child


def get_param(module, attr):
    """A weight or bias: an attribute of a float layer, a method of a quantized one."""
    value = getattr(module, attr, None)
    return value() if callable(value) else value


class MeanShadowLogger(ns.Logger):
    """Keeps the means of the quantized and the float outputs of a layer over the batches."""

    def __init__(self):
        super().__init__()
        self.stats["float"], self.stats["quantized"] = None, None
        self.count = 0
        self.float_sum = self.quant_sum = None

    def forward(self, x, y):
        """x of the quantized layer, y of the float one."""
        x = x.dequantize() if x.is_quantized else x
        self.count += 1
        for name, kept, value in (("quantized", "quant_sum", x), ("float", "float_sum", y)):
            before = getattr(self, kept)
            total = value.detach() if before is None else before + value.detach()
            setattr(self, kept, total)
            self.stats[name] = total / self.count

    def clear(self):
        """Forget."""
        self.stats["float"], self.stats["quantized"] = None, None
        self.count, self.float_sum, self.quant_sum = 0, None, None


def bias_correction(float_model, quantized_model, img_data, target_modules=_supported_modules_quantized, neval_batches=None):
    """Correct the biases of the quantized model's layers in place, one after the other, by the means over the batches."""
    ns.prepare_model_with_stubs(float_model, quantized_model, _supported_modules, MeanShadowLogger)
    names = [name for name, module in quantized_model.named_modules() if type(module) in target_modules and get_param(module, "bias") is not None]
    for name in names:
        for count, data in enumerate(img_data, 1):
            with cresset.no_grad():
                quantized_model(data[0])
            if count == neval_batches:
                break
        layer = get_module(quantized_model, name)
        shadow = get_module(quantized_model, parent_child_names(name)[0])
        if get_param(layer, "bias") is not None:
            error = shadow.logger.stats["quantized"] - shadow.logger.stats["float"]
            mean = error.mean([d for d in range(error.dim()) if d != 1])
            corrected = get_param(layer, "bias").data - mean
            if isinstance(layer.bias, cresset.Tensor):
                layer.bias.data = corrected
            else:
                layer.set_weight_bias(get_param(layer, "weight"), corrected)
        for module in quantized_model.modules():
            if isinstance(module, MeanShadowLogger):
                module.clear()
