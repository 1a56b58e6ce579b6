"""Recurrent layers with rounded weights."""

import cresset
from cresset import nn

from .utils import WeightFacts, facts_of, quantized_weight, real_weight

__all__ = ["RNNCellBase", "RNNCell", "LSTMCell", "GRUCell", "RNNBase", "LSTM", "GRU", "get_quantized_weight"]


def get_quantized_weight(module, wn):
    """The weight of that name, quantized."""
    return quantized_weight(getattr(module, wn), *facts_of(module, wn + "_"))


class _Rounded:
    """Mixed into a float recurrent layer or cell: all weights are rounded as quantization rounds them, by `weight_qparams_dict`."""

    _IS_REFERENCE = True

    def _take_facts(self, weight_qparams_dict, device):
        for name, _ in list(self.named_parameters()):
            if name.startswith("weight"):
                WeightFacts(self, (weight_qparams_dict or {}).get(name), device, name + "_")

    def _real(self, name):
        return real_weight(getattr(self, name), *facts_of(self, name + "_"))

    def _with_real_weights(self, input, hx):
        """The float layer's result with rounded weights in the places of the weights."""
        names = [name for name, _ in self.named_parameters() if name.startswith("weight")]
        return cresset.func.functional_call(self, {name: self._real(name) for name in names}, (input, hx), {"_rounded": True})

    def forward(self, input, hx=None, _rounded=False):
        return super().forward(input, hx) if _rounded else self._with_real_weights(input, hx)

    def _get_name(self):
        return f"QuantizedReference{type(self).__name__}" if not isinstance(self, nn.RNNCellBase) else f"QuantizedRNN{type(self).__name__}(Reference)"

    def __getattr__(self, name):
        if name.startswith("get_weight_") or name.startswith("get_quantized_weight_"):
            quantized = name.startswith("get_quantized_")
            weight = name.removeprefix("get_quantized_" if quantized else "get_")
            return lambda: get_quantized_weight(self, weight) if quantized else self._real(weight)
        return super().__getattr__(name)

    @classmethod
    def from_float(cls, mod, weight_qparams_dict):
        """Of a float layer, with its parameters."""
        made = cls._of(mod, weight_qparams_dict)
        for name, value in mod.named_parameters():
            if name in made._parameters:
                made._parameters[name] = nn.Parameter(value.detach().clone())
        return made


class RNNCellBase(_Rounded):
    """A cell with rounded weights."""

    def __init__(self, input_size, hidden_size, bias=True, *rest, device=None, dtype=None, weight_qparams_dict=None, **named):
        super().__init__(input_size, hidden_size, bias, *rest, device=device, dtype=dtype, **named)
        self._take_facts(weight_qparams_dict, device)

    @classmethod
    def _of(cls, mod, facts):
        return cls(mod.input_size, mod.hidden_size, mod.bias, *([mod.nonlinearity] if hasattr(mod, "nonlinearity") else []), weight_qparams_dict=facts)


class RNNBase(_Rounded):
    """A layer with rounded weights."""

    def __init__(self, *args, device=None, dtype=None, weight_qparams_dict=None, **named):
        super().__init__(*args, device=device, dtype=dtype, **named)
        self._take_facts(weight_qparams_dict, device)

    @classmethod
    def _of(cls, mod, facts):
        return cls(mod.input_size, mod.hidden_size, mod.num_layers, mod.bias, mod.batch_first, mod.dropout, mod.bidirectional, weight_qparams_dict=facts)


class RNNCell(RNNCellBase, nn.RNNCell):
    """nn.RNNCell with rounded weights."""


class LSTMCell(RNNCellBase, nn.LSTMCell):
    """nn.LSTMCell with rounded weights."""

    @classmethod
    def from_float(cls, mod, weight_qparams_dict, use_precomputed_fake_quant=False):
        return super().from_float(mod, weight_qparams_dict)


class GRUCell(RNNCellBase, nn.GRUCell):
    """nn.GRUCell with rounded weights."""


class LSTM(RNNBase, nn.LSTM):
    """nn.LSTM with rounded weights."""


class GRU(RNNBase, nn.GRU):
    """nn.GRU with rounded weights."""
