"""Convolutions with weights in int8, whose inputs are quantized as they come."""

import warnings

from cresset import nn
from cresset.ao.nn.quantized.modules import conv as nnq
from cresset.ao.nn.quantized.modules._conv_forward import FORWARDS

__all__ = [f"Conv{transposed}{n}d" for transposed in ("", "Transpose") for n in (1, 2, 3)]


class _Dynamic:
    """Mixed into a quantized convolution: it takes and gives real numbers. As with PyTorch, the result has the range and the steps of the input."""

    def __init__(self, *args, **kwargs):
        warnings.warn(f"The current implementation of the {self._get_name()} module has poor numerical accuracy and its use is not recommended", stacklevel=2)
        super().__init__(*args, **kwargs)

    def _get_name(self):
        return "Dynamic" + super()._get_name()

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantized form of a float layer that has a qconfig."""
        watched, mod.__dict__["activation_post_process"] = mod._modules.pop("activation_post_process", None), None
        try:
            return super().from_float(mod, use_precomputed_fake_quant)
        finally:
            del mod.__dict__["activation_post_process"]
            if watched is not None:
                mod.activation_post_process = watched


def _classes():
    for name in __all__:
        body = {"__module__": __name__, "__doc__": f"nn.{name} with a weight in int8, whose input is quantized as it comes.", "_FLOAT_MODULE": getattr(nn, name),
                "forward": FORWARDS[name.lower().replace("transpose", "_transpose") + "_dynamic"]}  # fmt: skip
        yield name, type(name, (_Dynamic, getattr(nnq, name)), body)


globals().update(_classes())
