"""Recurrent layers and cells with weights in int8 or float16."""

import cresset
from cresset import nn
from cresset.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from ._matrix import Matrix

__all__ = ["LSTM", "GRU", "LSTMCell", "RNNCell", "GRUCell"]


def _lstm(gates_x, gates_h, state):
    i, f, g, o = (gates_x + gates_h).chunk(4, -1)
    c = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


def _gru(gates_x, gates_h, state):
    (rx, zx, nx), (rh, zh, nh) = gates_x.chunk(3, -1), gates_h.chunk(3, -1)
    reset, update = (rx + rh).sigmoid(), (zx + zh).sigmoid()
    new = (nx + reset * nh).tanh()
    return (new + update * (state[0] - new),)


def _rnn(activation):
    return lambda gates_x, gates_h, state: (getattr(gates_x + gates_h, activation)(),)


class _Quantized(nn.Module):
    """Made of a float module of the class `_FLOAT_MODULE`, by `from_float`."""

    def __init__(self, *args, dtype=None, **kwargs):
        self.__dict__.update(type(self).from_float(self._FLOAT_MODULE(*args, **kwargs)).__dict__)

    def _get_name(self):
        return f"DynamicQuantized{self._FLOAT_MODULE.__name__}"

    def __repr__(self):
        return f"{self._get_name()}({self.extra_repr()})"


class _Layers(_Quantized):
    """All layers and directions of an LSTM or GRU."""

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantized form of the float layer, by its `qconfig` where it has one; NotImplementedError for projections."""
        from cresset.ao.quantization.qconfig import weight_kind

        if getattr(mod, "proj_size", 0):
            raise NotImplementedError(f"{cls.__name__}.from_float: layers with projections (proj_size) are not supported.")
        dtype, per_row = weight_kind(getattr(mod, "qconfig", None))
        made = cls.__new__(cls)
        nn.Module.__init__(made)
        for name in ("input_size", "hidden_size", "num_layers", "bias", "batch_first", "dropout", "bidirectional"):
            setattr(made, name, getattr(mod, name))
        made.dtype, made.training = dtype, mod.training
        cells = []
        for layer in range(mod.num_layers):
            for suffix in ("", "_reverse")[: 1 + mod.bidirectional]:
                for part in ("ih", "hh"):
                    bias = getattr(mod, f"bias_{part}_l{layer}{suffix}") if mod.bias else None
                    cells.append(Matrix(getattr(mod, f"weight_{part}_l{layer}{suffix}"), bias, dtype, per_row))
        made._all_weight_values = nn.ModuleList(cells)
        return made

    def extra_repr(self):
        text = f"{self.input_size}, {self.hidden_size}"
        for name, usual in (("num_layers", 1), ("bias", True), ("batch_first", False), ("dropout", 0.0), ("bidirectional", False)):
            if getattr(self, name) != usual:
                text += f", {name}={getattr(self, name)}"
        return text

    def _direction(self, x, state, ih, hh, lengths, backward):
        """One direction of one layer over x [time, batch, features]; steps beyond a sequence's length change nothing."""
        gates, out = ih(x), [None] * x.shape[0]
        for t in reversed(range(x.shape[0])) if backward else range(x.shape[0]):
            new = self._step(gates[t], hh(state[0]), state)
            if lengths is not None:
                alive = (t < lengths).unsqueeze(1)
                new = tuple(cresset.where(alive, n, s) for n, s in zip(new, state))
            state, out[t] = new, new[0]
        return (cresset.stack(out) if out else x.new_zeros(0, x.shape[1], self.hidden_size)), state

    def forward(self, input, hx=None):
        packed = isinstance(input, PackedSequence)
        lengths = None
        if packed:
            x, lengths = pad_packed_sequence(input)
        else:
            flat = input.dim() == 2
            x = input.unsqueeze(1) if flat else input.transpose(0, 1) if self.batch_first else input
        directions = 1 + self.bidirectional
        shape = (self.num_layers * directions, x.shape[1], self.hidden_size)
        if hx is None:
            states = [x.new_zeros(shape)] * self._states
        else:
            states = [s.unsqueeze(1) if not packed and flat else s for s in (hx if self._states > 1 else (hx,))]
        matrices, last = iter(self._all_weight_values), []
        for layer in range(self.num_layers):
            outputs = []
            for d in range(directions):
                at = layer * directions + d
                out, state = self._direction(x, tuple(s[at] for s in states), next(matrices), next(matrices), lengths, d == 1)
                outputs.append(out)
                last.append(state)
            x = outputs[0] if directions == 1 else cresset.cat(outputs, -1)
            if self.dropout and self.training and layer < self.num_layers - 1:
                x = nn.functional.dropout(x, self.dropout)
        final = [cresset.stack(values) for values in zip(*last)]
        if packed:
            x = pack_padded_sequence(x, lengths, enforce_sorted=False)
        elif flat:
            x, final = x.squeeze(1), [s.squeeze(1) for s in final]
        elif self.batch_first:
            x = x.transpose(0, 1)
        return x, tuple(final) if self._states > 1 else final[0]


class LSTM(_Layers):
    """nn.LSTM with weights in int8 or float16 (without projections)."""

    _FLOAT_MODULE, _states = nn.LSTM, 2
    _step = staticmethod(_lstm)


class GRU(_Layers):
    """nn.GRU with weights in int8 or float16."""

    _FLOAT_MODULE, _states = nn.GRU, 1
    _step = staticmethod(_gru)


class _Cell(_Quantized):
    """One step of a recurrent layer."""

    @classmethod
    def from_float(cls, mod, use_precomputed_fake_quant=False):
        """The quantized form of the float cell."""
        from cresset.ao.quantization.qconfig import weight_kind

        dtype, per_row = weight_kind(getattr(mod, "qconfig", None))
        made = cls.__new__(cls)
        nn.Module.__init__(made)
        made.input_size, made.hidden_size, made.bias, made.dtype = mod.input_size, mod.hidden_size, mod.bias, dtype
        made.nonlinearity = getattr(mod, "nonlinearity", None)
        made.training = mod.training
        biases = (mod.bias_ih, mod.bias_hh) if mod.bias else (None, None)
        made._packed_weight_ih, made._packed_weight_hh = (Matrix(w, b, dtype, per_row) for w, b in zip((mod.weight_ih, mod.weight_hh), biases))
        return made

    def extra_repr(self):
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")

    def forward(self, input, hx=None):
        zero = input.new_zeros(*input.shape[:-1], self.hidden_size)
        state = (zero,) * self._states if hx is None else hx if self._states > 1 else (hx,)
        step = _rnn(self.nonlinearity) if self._step is None else self._step
        new = step(self._packed_weight_ih(input), self._packed_weight_hh(state[0]), state)
        return new if self._states > 1 else new[0]


class LSTMCell(_Cell):
    """nn.LSTMCell with weights in int8 or float16."""

    _FLOAT_MODULE, _states = nn.LSTMCell, 2
    _step = staticmethod(_lstm)


class GRUCell(_Cell):
    """nn.GRUCell with weights in int8 or float16."""

    _FLOAT_MODULE, _states = nn.GRUCell, 1
    _step = staticmethod(_gru)


class RNNCell(_Cell):
    """nn.RNNCell with weights in int8 or float16."""

    _FLOAT_MODULE, _states, _step = nn.RNNCell, 1, None
