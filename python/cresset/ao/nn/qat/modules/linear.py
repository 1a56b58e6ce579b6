"""Linear layers that are trained to be quantized."""

from cresset import nn
from cresset.ao.nn import intrinsic as nni
from cresset.nn.utils.parametrize import is_parametrized, type_before_parametrizations
from cresset.nn.utils.parametrize import transfer_parametrizations_and_params as _transfer

from ._source import check_source

__all__ = ["Linear"]


class Linear(nn.Linear):
    """nn.Linear whose weight passes through the fake quantizer of its qconfig."""

    _FLOAT_MODULE = nn.Linear

    def __init__(self, in_features, out_features, bias=True, qconfig=None, device=None, dtype=None):
        super().__init__(in_features, out_features, bias, device=device, dtype=dtype)
        if not qconfig:
            raise AssertionError("qconfig must be provided for QAT module")
        self.qconfig = qconfig
        self.weight_fake_quant = qconfig.weight(factory_kwargs={"device": device, "dtype": dtype})

    def forward(self, input):
        return nn.functional.linear(input, self.weight_fake_quant(self.weight), self.bias)

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The form for training of a float layer that has a qconfig, with its parameters."""
        kind = type_before_parametrizations(mod)
        check_source(cls, mod, kind)
        qconfig = mod.qconfig
        if kind is nni.LinearReLU:
            mod = mod[0]
        made = cls(mod.in_features, mod.out_features, bias=mod.bias is not None, qconfig=qconfig)
        for name in ("weight", "bias"):
            if is_parametrized(mod, name):
                _transfer(mod, made, name)
            else:
                setattr(made, name, getattr(mod, name))
        return made

    def to_float(self):
        """The float layer, with the parameters as they are."""
        made = nn.Linear(self.in_features, self.out_features, self.bias is not None)
        made.weight = nn.Parameter(self.weight.detach())
        if self.bias is not None:
            made.bias = nn.Parameter(self.bias.detach())
        made.train(self.training)
        return made
