"""LSTM layers that are made of layers which can be quantized."""

import numbers
import warnings

import cresset
from cresset import nn
from cresset.ao.nn.quantized.modules.functional_modules import FloatFunctional

__all__ = ["LSTMCell", "LSTM"]


def _zero_state(shape, is_quantized, qparams=(1.0, 0), dtype=cresset.quint8):
    state = cresset.zeros(shape)
    return cresset.quantize_per_tensor(state, *qparams, dtype) if is_quantized else state


class LSTMCell(nn.Module):
    """nn.LSTMCell of two linear layers, four activations and five functional modules."""

    _FLOAT_MODULE = nn.LSTMCell

    def __init__(self, input_dim, hidden_dim, bias=True, device=None, dtype=None):
        super().__init__()
        self.input_size, self.hidden_size, self.bias = input_dim, hidden_dim, bias
        self.igates = nn.Linear(input_dim, 4 * hidden_dim, bias=bias, device=device, dtype=dtype)
        self.hgates = nn.Linear(hidden_dim, 4 * hidden_dim, bias=bias, device=device, dtype=dtype)
        self.gates = FloatFunctional()
        self.input_gate, self.forget_gate, self.cell_gate, self.output_gate = nn.Sigmoid(), nn.Sigmoid(), nn.Tanh(), nn.Sigmoid()
        self.fgate_cx, self.igate_cgate, self.fgate_cx_igate_cgate, self.ogate_cy = (FloatFunctional() for _ in range(4))
        self.initial_hidden_state_qparams = self.initial_cell_state_qparams = (1.0, 0)
        self.hidden_state_dtype = self.cell_state_dtype = cresset.quint8

    def forward(self, x, hidden=None):
        if hidden is None or hidden[0] is None or hidden[1] is None:
            hidden = self.initialize_hidden(x.shape[0], x.is_quantized)
        hx, cx = hidden
        gates = self.gates.add(self.igates(x), self.hgates(hx))
        inward, forget, cell, outward = gates.chunk(4, 1)
        kept = self.fgate_cx.mul(self.forget_gate(forget), cx)
        new = self.igate_cgate.mul(self.input_gate(inward), self.cell_gate(cell))
        cy = self.fgate_cx_igate_cgate.add(kept, new)
        return self.ogate_cy.mul(self.output_gate(outward), cresset.tanh(cy)), cy

    def initialize_hidden(self, batch_size, is_quantized=False):
        """(hidden state, cell state) of zeros."""
        shape = (batch_size, self.hidden_size)
        return (
            _zero_state(shape, is_quantized, self.initial_hidden_state_qparams, self.hidden_state_dtype),
            _zero_state(shape, is_quantized, self.initial_cell_state_qparams, self.cell_state_dtype),
        )

    def _get_name(self):
        return "QuantizableLSTMCell"

    @classmethod
    def from_params(cls, wi, wh, bi=None, bh=None):
        """A cell with these weights and biases."""
        if (bi is None) != (bh is None):
            raise AssertionError("bi and bh must both be None or both have values")
        made = cls(wi.shape[1], wh.shape[1], bias=bi is not None)
        for layer, weight, bias in ((made.igates, wi, bi), (made.hgates, wh, bh)):
            layer.weight = nn.Parameter(weight)
            if bias is not None:
                layer.bias = nn.Parameter(bias)
        return made

    @classmethod
    def from_float(cls, other, use_precomputed_fake_quant=False):
        """Of an nn.LSTMCell, with its qconfig."""
        if type(other) is not cls._FLOAT_MODULE:
            raise AssertionError(f"type mismatch: {type(other)}; {cls._FLOAT_MODULE.__name__} was required")
        if not hasattr(other, "qconfig"):
            raise AssertionError("The float module must have 'qconfig'")
        made = cls.from_params(other.weight_ih, other.weight_hh, other.bias_ih, other.bias_hh)
        made.qconfig = made.igates.qconfig = made.hgates.qconfig = other.qconfig
        return made


class _LSTMSingleLayer(nn.Module):
    """One direction of one layer."""

    def __init__(self, input_dim, hidden_dim, bias=True, device=None, dtype=None):
        super().__init__()
        self.cell = LSTMCell(input_dim, hidden_dim, bias=bias, device=device, dtype=dtype)

    def forward(self, x, hidden=None):
        result = []
        for step in x:
            hidden = self.cell(step, hidden)
            result.append(hidden[0])
        return cresset.stack(result, 0), hidden


class _LSTMLayer(nn.Module):
    """One layer, in one direction or both."""

    def __init__(self, input_dim, hidden_dim, bias=True, batch_first=False, bidirectional=False, device=None, dtype=None):
        super().__init__()
        self.batch_first, self.bidirectional = batch_first, bidirectional
        self.layer_fw = _LSTMSingleLayer(input_dim, hidden_dim, bias, device, dtype)
        if bidirectional:
            self.layer_bw = _LSTMSingleLayer(input_dim, hidden_dim, bias, device, dtype)

    def forward(self, x, hidden=None):
        x = x.transpose(0, 1) if self.batch_first else x
        states = [(None, None)] * 2 if hidden is None else [(hidden[0][d], hidden[1][d]) if self.bidirectional else tuple(hidden) for d in range(1 + self.bidirectional)]
        result, (h, c) = self.layer_fw(x, states[0] if hidden is not None else None)
        if self.bidirectional:
            backward, (hb, cb) = self.layer_bw(x.flip(0), states[1] if hidden is not None else None)
            result = cresset.cat([result, backward.flip(0)], result.dim() - 1)
            h, c = cresset.stack([h, hb], 0), cresset.stack([c, cb], 0)
        return result.transpose(0, 1) if self.batch_first else result, (h, c)

    def _take(self, other, layer, qconfig):
        """The weights of a layer of an nn.LSTM."""
        for suffix, part in (("", "layer_fw"), ("_reverse", "layer_bw"))[: 1 + self.bidirectional]:
            biases = [getattr(other, f"bias_{w}_l{layer}{suffix}", None) for w in ("ih", "hh")] if other.bias else [None, None]
            single = getattr(self, part)
            single.cell = LSTMCell.from_params(*(getattr(other, f"weight_{w}_l{layer}{suffix}") for w in ("ih", "hh")), *biases)
            single.qconfig = single.cell.qconfig = qconfig
        self.qconfig = qconfig


class LSTM(nn.Module):
    """nn.LSTM of layers that can be quantized (without projections)."""

    _FLOAT_MODULE = nn.LSTM

    def __init__(self, input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False, device=None, dtype=None):
        super().__init__()
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional, self.training = batch_first, float(dropout), bidirectional, False
        if not isinstance(dropout, numbers.Number) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
            raise ValueError("dropout should be a number in range [0, 1] representing the probability of an element being zeroed")
        if dropout > 0:
            warnings.warn("dropout option for quantizable LSTM is ignored. If you are training, please, use nn.LSTM version followed by `prepare` step.", stacklevel=2)
            if num_layers == 1:
                warnings.warn(
                    "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers greater than 1, but got "
                    f"dropout={dropout} and num_layers={num_layers}", stacklevel=2,
                )  # fmt: skip
        sizes = [input_size] + [hidden_size * (2 if bidirectional else 1)] * (num_layers - 1)
        self.layers = nn.ModuleList(_LSTMLayer(size, hidden_size, bias, False, bidirectional, device, dtype) for size in sizes)

    def forward(self, x, hidden=None):
        x = x.transpose(0, 1) if self.batch_first else x
        directions = 2 if self.bidirectional else 1
        shape = (self.num_layers, directions, x.shape[1], self.hidden_size)
        if hidden is None:
            h = c = _zero_state(shape, x.is_quantized)
        else:
            h, c = (state.reshape(shape) for state in hidden)
        last = []
        for i, layer in enumerate(self.layers):
            state = (h[i], c[i]) if self.bidirectional else (h[i].squeeze(0), c[i].squeeze(0))
            x, new = layer(x, state)
            x = nn.functional.dropout(x, p=self.dropout, training=self.training and i < self.num_layers - 1)
            last.append(new)
        h, c = (cresset.stack([state[k] for state in last], 0) for k in (0, 1))
        h, c = (s.reshape(-1, *s.shape[-2:]) for s in (h, c))
        return x.transpose(0, 1) if self.batch_first else x, (h, c)

    def _get_name(self):
        return "QuantizableLSTM"

    @classmethod
    def from_float(cls, other, qconfig=None):
        """Of an nn.LSTM that has a qconfig, with observers."""
        if not isinstance(other, cls._FLOAT_MODULE):
            raise AssertionError(f"type mismatch: {type(other)}; {cls._FLOAT_MODULE.__name__} was required")
        if not (hasattr(other, "qconfig") or qconfig):
            raise AssertionError("Either the float module or the call must have 'qconfig'")
        made = cls(other.input_size, other.hidden_size, other.num_layers, other.bias, other.batch_first, other.dropout, other.bidirectional)
        made.qconfig = getattr(other, "qconfig", qconfig)
        for i, layer in enumerate(made.layers):
            layer._take(other, i, made.qconfig)
        if other.training:
            made.train()
            return cresset.ao.quantization.prepare_qat(made, inplace=True)
        made.eval()
        return cresset.ao.quantization.prepare(made, inplace=True)

    @classmethod
    def from_observed(cls, other):
        """Raises NotImplementedError: it is not quantized itself; quantized.LSTM is made of it."""
        raise NotImplementedError("Converting a non-quantizable module to a quantizable module is not supported yet.")
