"""Recurrent layers and cells, computed step by step from linear products."""

import math
import numbers
import warnings

import cresset
from cresset.nn import functional as F
from cresset.nn import init
from cresset.nn.parameter import Parameter

from .module import Module

__all__ = ["RNNBase", "RNN", "LSTM", "GRU", "RNNCellBase", "RNNCell", "LSTMCell", "GRUCell"]

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _step(mode, gates, recurrent, h, c):
    """One step: input part and recurrent part of the gates (N, gates * H), state h (N, H) and for LSTM c -> new (h, c)."""
    if mode == "RNN_TANH":
        return (gates + recurrent).tanh(), None
    if mode == "RNN_RELU":
        return (gates + recurrent).relu(), None
    if mode == "GRU":
        r_i, z_i, n_i = gates.chunk(3, -1)
        r_h, z_h, n_h = recurrent.chunk(3, -1)
        reset, update = (r_i + r_h).sigmoid(), (z_i + z_h).sigmoid()
        new = (n_i + reset * n_h).tanh()
        return (h - new) * update + new, None
    i, f, g, o = (gates + recurrent).chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


class RNNBase(Module):
    """What RNN, LSTM and GRU share: `num_layers` layers, one or both directions, dropout between layers."""

    def __init__(
        self,
        mode,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        proj_size=0,
        device=None,
        dtype=None,
    ):
        super().__init__()
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
                f"greater than 1, but got dropout={dropout} and num_layers={num_layers}",
                stacklevel=3,
            )
        if not isinstance(hidden_size, int):
            raise TypeError(f"hidden_size should be of type int, got: {type(hidden_size).__name__}")
        for name, value in (("hidden_size", hidden_size), ("num_layers", num_layers)):
            if value <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if proj_size >= hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if proj_size and mode != "LSTM":
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        gates = _GATES[mode] * hidden_size
        output = proj_size or hidden_size
        directions = 2 if bidirectional else 1

        def register(name, *shape):
            self.register_parameter(name, Parameter(cresset.empty(shape, device=device, dtype=dtype)))

        for layer in range(num_layers):
            for suffix in self._suffixes(layer):
                register("weight_ih" + suffix, gates, input_size if layer == 0 else output * directions)
                register("weight_hh" + suffix, gates, output)
                if bias:
                    register("bias_ih" + suffix, gates)
                    register("bias_hh" + suffix, gates)
                if proj_size:
                    register("weight_hr" + suffix, proj_size, hidden_size)
        self.reset_parameters()

    def _suffixes(self, layer):
        return [f"_l{layer}", f"_l{layer}_reverse"] if self.bidirectional else [f"_l{layer}"]

    def reset_parameters(self):
        """Draw every parameter from the uniform distribution on ±1/sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def flatten_parameters(self):
        """Nothing to do: parameters need no common memory here."""

    @property
    def all_weights(self):
        """The parameters of each layer and direction as a list of lists."""
        kinds = ["weight_ih", "weight_hh"] + (["bias_ih", "bias_hh"] if self.bias else [])
        kinds += ["weight_hr"] if self.proj_size else []
        return [
            [getattr(self, kind + suffix) for kind in kinds]
            for layer in range(self.num_layers)
            for suffix in self._suffixes(layer)
        ]

    def _initial(self, hx, input, width):
        """A given state (layers * directions, N, width) checked, or zeros."""
        shape = (self.num_layers * (2 if self.bidirectional else 1), input.size(1), width)
        if hx is None:
            return cresset.zeros(shape, dtype=input.dtype, device=input.device)
        if tuple(hx.shape) != shape:
            raise RuntimeError(f"Expected hidden size {shape}, got {list(hx.shape)}")
        return hx

    def _direction(self, x, suffix, h, c):
        """One layer in one direction: x (L, N, in) -> (L, N, H), last h, last c."""
        reverse = suffix.endswith("_reverse")
        weight_hh = getattr(self, "weight_hh" + suffix)
        bias_ih, bias_hh = (
            (getattr(self, "bias_ih" + suffix), getattr(self, "bias_hh" + suffix)) if self.bias else (None, None)
        )
        weight_hr = getattr(self, "weight_hr" + suffix) if self.proj_size else None
        gates = F.linear(x, getattr(self, "weight_ih" + suffix), bias_ih).unbind(0)
        outputs = []
        for g in reversed(gates) if reverse else gates:
            h, c = _step(self.mode, g, F.linear(h, weight_hh, bias_hh), h, c)
            if weight_hr is not None:
                h = F.linear(h, weight_hr)
            outputs.append(h)
        if reverse:
            outputs.reverse()
        return cresset.stack(outputs), h, c

    def forward(self, input, hx=None):
        if not isinstance(input, cresset.Tensor):
            raise TypeError(
                f"{self._get_name()}: input must be a Tensor of padded sequences; got {type(input).__name__}"
            )
        if input.dim() not in (2, 3):
            raise ValueError(f"{self._get_name()}: Expected input to be 2D or 3D, got {input.dim()}D instead")
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )
        lstm = self.mode == "LSTM"
        h0, c0 = (hx if hx is not None else (None, None)) if lstm else (hx, None)
        batched = input.dim() == 3
        if not batched:
            input = input.unsqueeze(1)
            h0, c0 = (None if s is None else s.unsqueeze(1) for s in (h0, c0))
        elif self.batch_first:
            input = input.transpose(0, 1)
        h0 = self._initial(h0, input, self.proj_size or self.hidden_size)
        c0 = self._initial(c0, input, self.hidden_size) if lstm else None
        x, last_h, last_c = input, [], []
        for layer in range(self.num_layers):
            outputs = []
            for suffix in self._suffixes(layer):
                k = len(last_h)
                out, h, c = self._direction(x, suffix, h0[k], c0[k] if lstm else None)
                outputs.append(out)
                last_h.append(h)
                last_c.append(c)
            x = outputs[0] if len(outputs) == 1 else cresset.cat(outputs, -1)
            if self.dropout and layer < self.num_layers - 1:
                x = F.dropout(x, self.dropout, self.training)
        h = cresset.stack(last_h)
        c = cresset.stack(last_c) if lstm else None
        if not batched:
            x, h, c = x.squeeze(1), h.squeeze(1), (c.squeeze(1) if lstm else None)
        elif self.batch_first:
            x = x.transpose(0, 1)
        return x, ((h, c) if lstm else h)

    def extra_repr(self):
        s = f"{self.input_size}, {self.hidden_size}"
        if self.proj_size:
            s += f", proj_size={self.proj_size}"
        if self.num_layers != 1:
            s += f", num_layers={self.num_layers}"
        if self.bias is not True:
            s += f", bias={self.bias}"
        if self.batch_first is not False:
            s += f", batch_first={self.batch_first}"
        if self.dropout:
            s += f", dropout={self.dropout}"
        if self.bidirectional is not False:
            s += f", bidirectional={self.bidirectional}"
        return s


class RNN(RNNBase):
    """h' = tanh (or relu) of two linear maps: input (L, N, in) -> (output (L, N, D H), h (D layers, N, H))."""

    def __init__(
        self,
        input_size,
        hidden_size,
        num_layers=1,
        nonlinearity="tanh",
        bias=True,
        batch_first=False,
        dropout=0.0,
        **kwargs,
    ):
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        mode = "RNN_" + nonlinearity.upper()
        super().__init__(mode, input_size, hidden_size, num_layers, bias, batch_first, dropout, **kwargs)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory: input (L, N, in), (h, c) -> (output (L, N, D H), (h, c))."""

    def __init__(self, input_size, hidden_size, *args, **kwargs):
        super().__init__("LSTM", input_size, hidden_size, *args, **kwargs)


class GRU(RNNBase):
    """Gated recurrent unit: input (L, N, in) -> (output (L, N, D H), h (D layers, N, H))."""

    def __init__(self, input_size, hidden_size, *args, **kwargs):
        super().__init__("GRU", input_size, hidden_size, *args, **kwargs)


class RNNCellBase(Module):
    """What the cells share: two linear maps into `num_chunks` gates."""

    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        new = {"device": device, "dtype": dtype}
        self.weight_ih = Parameter(cresset.empty((num_chunks * hidden_size, input_size), **new))
        self.weight_hh = Parameter(cresset.empty((num_chunks * hidden_size, hidden_size), **new))
        if bias:
            self.bias_ih = Parameter(cresset.empty(num_chunks * hidden_size, **new))
            self.bias_hh = Parameter(cresset.empty(num_chunks * hidden_size, **new))
        else:
            self.register_parameter("bias_ih", None)
            self.register_parameter("bias_hh", None)
        self.reset_parameters()

    def reset_parameters(self):
        """Draw every parameter from the uniform distribution on ±1/sqrt(hidden_size)."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for p in self.parameters():
            init.uniform_(p, -bound, bound)

    def _advance(self, mode, input, h, c=None):
        if input.dim() not in (1, 2):
            raise ValueError(f"{self._get_name()}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        if input.size(-1) != self.input_size:
            raise RuntimeError(f"input has inconsistent input_size: got {input.size(-1)} expected {self.input_size}")
        shape = (*input.shape[:-1], self.hidden_size)
        states = []
        for state in (h, c):
            if state is None:
                state = cresset.zeros(shape, dtype=input.dtype, device=input.device)
            elif tuple(state.shape) != shape:
                raise RuntimeError(f"{self._get_name()}: expected a state of shape {shape}, got {tuple(state.shape)}")
            states.append(state)
        gates = F.linear(input, self.weight_ih, self.bias_ih)
        return _step(mode, gates, F.linear(states[0], self.weight_hh, self.bias_hh), *states)

    def extra_repr(self):
        s = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            s += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            s += f", nonlinearity={self.nonlinearity}"
        return s


class RNNCell(RNNCellBase):
    """One step of an RNN: input (N, in), h (N, H) -> h."""

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._advance("RNN_" + self.nonlinearity.upper(), input, hx)[0]


class LSTMCell(RNNCellBase):
    """One step of an LSTM: input (N, in), (h, c) -> (h, c)."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input, hx=None):
        return self._advance("LSTM", input, *(hx if hx is not None else (None, None)))


class GRUCell(RNNCellBase):
    """One step of a GRU: input (N, in), h (N, H) -> h."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input, hx=None):
        return self._advance("GRU", input, hx)[0]
